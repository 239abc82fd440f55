// Header lists between two intern tables: what arrives is equal, and what repeats takes two bytes.
#include "proxy/handoff/field_mirror.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::proxy {
namespace {

using http2::Field;
using http2::HeaderList;
using http2::Indexing;
using http2::InternTable;
using http2::Token;

struct Flat {
  std::string name, value;
  Indexing indexing;
  Token token;
  uint16_t static_name_index, static_index;
  bool operator==(const Flat&) const = default;
};
std::vector<Flat> Flatten(const HeaderList& list) {
  std::vector<Flat> out;
  for (const Field* f : list) {
    out.push_back({std::string(f->name()), std::string(f->value()), f->indexing, f->token, f->static_name_index,
                   f->static_index});
  }
  return out;
}

class FieldMirrorTest : public ::testing::Test {
 protected:
  HeaderList Pass(const HeaderList& list) {
    std::vector<uint64_t> memory((MirrorSender::BytesMax(list) + 7) / 8);
    auto* bytes = reinterpret_cast<uint8_t*>(memory.data());
    written = sender.Write(list, bytes);
    EXPECT_LE(written, MirrorSender::BytesMax(list));
    EXPECT_EQ(written % 8, 0u);
    return receiver.Read(bytes);
  }
  HeaderList Here() { return HeaderList(&here); }
  void AddInterned(HeaderList& list, std::string_view name, std::string_view value) {
    list.AddInterned(here.Intern(name, value));
  }

  InternTable here, there;
  MirrorSender sender;
  MirrorReceiver receiver{there};
  size_t written = 0;
};

TEST_F(FieldMirrorTest, EveryKindOfFieldArrivesEqual) {
  HeaderList list = Here();
  list.AddInterned(InternTable::Static(3));  // :method POST
  AddInterned(list, ":path", "/pkg.Service/Method");
  list.Add("x-request-id", "17");
  list.Add("authorization", "secret", Indexing::kNever);
  list.Add("content-type", "application/grpc", Indexing::kIndexed);  // a field of the proxy
  list.Add("empty", "");
  for (int round = 0; round < 3; ++round) {
    HeaderList got = Pass(list);
    EXPECT_EQ(Flatten(got), Flatten(list));
    EXPECT_EQ(got.hpack_size(), list.hpack_size());
    EXPECT_EQ(got[0].id, list[0].id);
    EXPECT_NE(got[1].id, list[1].id);  // the other worker's own
    EXPECT_TRUE(got[1].counted());
    EXPECT_FALSE(got[2].interned());
  }
}

TEST_F(FieldMirrorTest, ARepeatedFieldTakesTwoBytes) {
  HeaderList list = Here();
  for (int i = 0; i < 10; ++i) AddInterned(list, "name-" + std::to_string(i), std::string(100, 'v'));
  Pass(list);
  EXPECT_GT(written, 1000u);
  Pass(list);
  EXPECT_EQ(written, 24u);  // the count and ten codes
}

TEST_F(FieldMirrorTest, FieldsThatShareASlotPushEachOtherOut) {
  // Ids are consecutive, so one in 256 comes to the same slot.
  std::vector<HeaderList> lists;
  for (int i = 0; i < 600; ++i) {
    lists.push_back(Here());
    AddInterned(lists.back(), "n", std::to_string(i));
  }
  for (int round = 0; round < 2; ++round) {
    for (const HeaderList& list : lists) EXPECT_EQ(Flatten(Pass(list)), Flatten(list));
  }
  EXPECT_LE(there.size(), 256u);
}

TEST_F(FieldMirrorTest, FieldsTooLargeForASlotAreNotMirrored) {
  HeaderList list = Here();
  AddInterned(list, "n", std::string(1000, 'v'));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Flatten(Pass(list)), Flatten(list));
    EXPECT_GT(written, 1000u);
  }
  EXPECT_EQ(there.size(), 0u);
}

TEST_F(FieldMirrorTest, AFieldThatEndedAndAnotherInItsPlaceAreNotMistaken) {
  for (int i = 0; i < 1000; ++i) {
    HeaderList list = Here();
    AddInterned(list, "n", std::to_string(i));  // freed at the end of the round; its memory may be used again
    EXPECT_EQ(Flatten(Pass(list)), Flatten(list));
  }
}

TEST_F(FieldMirrorTest, AnEmptyListIsOne) {
  EXPECT_TRUE(Pass(HeaderList()).empty());
  EXPECT_EQ(written, 8u);
}

}  // namespace
}  // namespace sluice::proxy
