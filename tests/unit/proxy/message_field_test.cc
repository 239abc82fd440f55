// A field read from the wire, against protobuf itself: its unknown fields, which know no types either, and
// DynamicMessage.
#include "proxy/message_field.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "base/hash.h"
#include "base/random.h"
#include "support/field_oracle.h"

namespace sluice::proxy {
namespace {

namespace pb = google::protobuf;
using Kind = FieldValue::Kind;
using Numbers = std::vector<uint32_t>;
using Pieces = std::vector<base::Slice>;

constexpr size_t kAll = 1 << 20;

uint64_t Seed() {
  const char* given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
}

std::string Prefixed(std::string_view message, size_t length, char flag = 0) {
  std::string out(1, flag);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift & 0xff);
  return out.append(message);
}
std::string Prefixed(std::string_view message) { return Prefixed(message, message.size()); }

// Each piece is a copy of its own, so that ASan sees a read beyond one.
Pieces Cut(std::string_view bytes, base::Random& random) {
  Pieces out;
  while (!bytes.empty()) {
    const size_t size =
        random.Below(4) == 0 ? 0 : 1 + random.Below(std::min<size_t>(bytes.size(), 1 + random.Below(40)));
    out.push_back(base::Slice::Copy(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  return out;
}
Pieces Whole(std::string_view bytes) { return {base::Slice::Copy(bytes)}; }

// As one text: "7", "'abc'", or the kind.
std::string Text(const FieldValue& value) {
  switch (value.kind) {
    case Kind::kFound:
      return value.delimited ? "'" + std::string(value.bytes()) + "'" : std::to_string(value.number);
    case Kind::kAbsent:
      return "absent";
    case Kind::kMalformed:
      return "malformed";
    case Kind::kCompressed:
      return "compressed";
    case Kind::kTruncated:
      return "truncated";
  }
  return "";
}
std::string Read(std::string_view message, const Numbers& numbers, size_t bytes_max = kAll) {
  const Pieces pieces = Whole(Prefixed(message));
  return Text(ReadField(pieces, numbers, bytes_max));
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string out;
  for (int byte : bytes) out += static_cast<char>(byte);
  return out;
}
// Field `number` < 16 with a delimited value of less than 128 bytes.
std::string Field(int number, const std::string& value) {
  return Bytes({number << 3 | 2, static_cast<int>(value.size())}) + value;
}

TEST(MessageField, EveryWireTypeOfALeaf) {
  const std::string message = Bytes({0x08, 0x96, 0x01}) +                   // 1: varint 150
                              Bytes({0x11, 1, 2, 3, 4, 5, 6, 7, 8}) +       // 2: fixed64
                              Field(3, "abc") + Bytes({0x25, 1, 2, 3, 4});  // 4: fixed32
  EXPECT_EQ(Read(message, {1}), "150");
  EXPECT_EQ(Read(message, {2}), std::to_string(0x0807060504030201ull));
  EXPECT_EQ(Read(message, {3}), "'abc'");
  EXPECT_EQ(Read(message, {4}), std::to_string(0x04030201));
  EXPECT_EQ(Read(message, {5}), "absent");
  EXPECT_EQ(Read("", {1}), "absent");
}

TEST(MessageField, TheLastOccurrenceWinsOverAllItsMessages) {
  EXPECT_EQ(Read(Field(1, "a") + Field(2, "x") + Field(1, "b"), {1}), "'b'");
  // Submessages merge: a later one without the field does not take it back.
  EXPECT_EQ(Read(Field(3, Field(1, "a")) + Field(3, Field(2, "x")), {3, 1}), "'a'");
  EXPECT_EQ(Read(Field(3, Field(1, "a")) + Field(3, Field(1, "b")) + Field(3, ""), {3, 1}), "'b'");
  EXPECT_EQ(Read(Field(1, "a") + Bytes({0x08, 9}), {1}), "9");
  EXPECT_EQ(Read(Bytes({0x08, 9}) + Field(1, ""), {1}), "''");
}

TEST(MessageField, OnTheWayDownOnlyMessagesCount) {
  EXPECT_EQ(Read(Bytes({0x18, 9}) + Field(3, Field(1, "a")), {3, 1}), "'a'");
  EXPECT_EQ(Read(Bytes({0x18, 9}), {3, 1}), "absent");
  EXPECT_EQ(Read(Field(1, "abc"), {3, 1}), "absent");  // field 1 of the outer one is another
}

TEST(MessageField, GroupsAreSkippedAndNotLookedInto) {
  const std::string group = Bytes({0x1b, 0x08, 7, 0x1c});  // 3: group { 1: 7 }
  EXPECT_EQ(Read(group + Bytes({0x08, 8}), {1}), "8");
  EXPECT_EQ(Read(group, {1}), "absent");
  EXPECT_EQ(Read(group, {3, 1}), "absent");
  EXPECT_EQ(Read(group, {3}), "absent");
  EXPECT_EQ(Read(Bytes({0x1b, 0x13, 0x1c, 0x14}), {1}), "malformed");  // ends crossed
  EXPECT_EQ(Read(Bytes({0x1b, 0x08, 7}), {1}), "malformed");           // no end
  EXPECT_EQ(Read(Bytes({0x1c}), {1}), "malformed");                    // no begin
}

TEST(MessageField, GroupsAreBoundedInDepth) {
  const auto nested = [](size_t depth) { return std::string(depth, 0x1b) + std::string(depth, 0x1c); };
  EXPECT_EQ(Read(nested(kGroupDepthMax) + Bytes({0x08, 8}), {1}), "8");
  EXPECT_EQ(Read(nested(kGroupDepthMax + 1), {1}), "malformed");
  EXPECT_EQ(Read(std::string(kGroupDepthMax + 1, 0x1b), {1}), "malformed");
  EXPECT_EQ(Read(std::string(60000, 0x1b), {1}), "malformed");
}

TEST(MessageField, WhatIsNoMessageIsMalformed) {
  const std::string ten(10, '\xff');
  EXPECT_EQ(Read(Bytes({0x00, 1}), {1}), "malformed");                                   // field number 0
  EXPECT_EQ(Read(Bytes({0x0e}), {1}), "malformed");                                      // wire type 6
  EXPECT_EQ(Read(Bytes({0x0f}), {1}), "malformed");                                      // wire type 7
  EXPECT_EQ(Read(Bytes({0x08}) + ten + "\x01", {1}), "malformed");                       // a varint of 11 bytes
  EXPECT_EQ(Read(Bytes({0x10}) + ten + "\x01", {1}), "malformed");                       // also beside the field
  EXPECT_EQ(Read(Bytes({0x88, 0x80, 0x80, 0x80, 0x80, 0, 1}), {1}), "malformed");        // a tag of 6 bytes
  EXPECT_EQ(Read(Bytes({0x0a, 0x81, 0x80, 0x80, 0x80, 0x80, 0, 1}), {1}), "malformed");  // a length of 6
  EXPECT_EQ(Read(Bytes({0x08}), {1}), "malformed");                                      // the message ends in a field
  EXPECT_EQ(Read(Bytes({0x08, 0x80}), {1}), "malformed");
  EXPECT_EQ(Read(Bytes({0x0d, 1, 2, 3}), {1}), "malformed");
  EXPECT_EQ(Read(Bytes({0x0a, 3, 'a', 'b'}), {1}), "malformed");
  // A field may not run over the end of the message that it lies in, though bytes follow.
  EXPECT_EQ(Read(Bytes({0x1a, 2, 0x0a, 3, 'a', 'b', 'c'}), {3, 1}), "malformed");
  EXPECT_EQ(Read(Field(1, "good") + Bytes({0x00}), {1}), "malformed");  // the backend refuses it as a whole
}

TEST(MessageField, OnlyTheFirstBytesAreLookedAt) {
  const std::string message = Field(1, "abc") + Field(2, std::string(100, 'x')) + Field(1, "later");
  EXPECT_EQ(Read(message, {1}), "'later'");
  EXPECT_EQ(Read(message, {1}, message.size() - 1), "'abc'");
  EXPECT_EQ(Read(message, {1}, 5), "'abc'");
  EXPECT_EQ(Read(message, {1}, 4), "truncated");  // cut off in the value
  EXPECT_EQ(Read(message, {1}, 1), "truncated");
  EXPECT_EQ(Read(message, {2}, 50), "truncated");
  EXPECT_EQ(Read(message, {7}, 50), "truncated");
  const Pieces pieces = Whole(Prefixed(message));
  EXPECT_TRUE(ReadField(pieces, Numbers{1}, 5).complete);
}

TEST(MessageField, MoreBytesAreAwaitedUntilTheResultIsComplete) {
  const std::string bytes = Prefixed(Field(1, "abc") + Field(2, "x"));
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const Pieces pieces = Whole(std::string_view(bytes).substr(0, size));
    const FieldValue value = ReadField(pieces, Numbers{1}, kAll);
    EXPECT_EQ(Text(value), size < 10 ? "truncated" : "'abc'") << size;
    EXPECT_EQ(value.complete, size == bytes.size()) << size;
    EXPECT_EQ(FieldBytesWanted(pieces, kAll), size < 5 ? 5u : bytes.size());
    EXPECT_EQ(FieldBytesWanted(pieces, 3), size < 5 ? 5u : 8u);
  }
}

TEST(MessageField, WhatFollowsTheFirstMessageIsAnotherOne) {
  const Pieces pieces = Whole(Prefixed(Field(1, "abc")) + Prefixed(Field(1, "def")));
  EXPECT_EQ(Text(ReadField(pieces, Numbers{1}, kAll)), "'abc'");
  const Pieces empty = Whole(Prefixed("") + Prefixed(Field(1, "def")));
  EXPECT_EQ(Text(ReadField(empty, Numbers{1}, kAll)), "absent");
}

TEST(MessageField, ACompressedMessageIsNotLookedInto) {
  const Pieces pieces = Whole(Prefixed(Field(1, "abc"), 5, 1));
  const FieldValue value = ReadField(pieces, Numbers{1}, kAll);
  EXPECT_EQ(value.kind, Kind::kCompressed);
  EXPECT_TRUE(value.complete);
  EXPECT_FALSE(value.HasKey());
  EXPECT_EQ(FieldBytesWanted(pieces, kAll), 5u);
}

TEST(MessageField, AMessageLongerThanMemoryCostsWhatIsThere) {
  const Pieces pieces = Whole(Prefixed(Field(1, "abc") + Bytes({0x12, 0xff, 0xff, 0xff, 0x7f}), 0xffffffff));
  EXPECT_EQ(Text(ReadField(pieces, Numbers{1}, kAll)), "'abc'");
  EXPECT_EQ(Text(ReadField(pieces, Numbers{2}, kAll)), "truncated");
}

TEST(MessageField, ADefaultWrittenOutHasTheKeyOfOneLeftOut) {
  const auto key = [](std::string_view message) {
    const Pieces pieces = Whole(Prefixed(message));
    return HashField(ReadField(pieces, Numbers{1}, kAll), 42);
  };
  const uint64_t absent = key("");
  EXPECT_EQ(key(Bytes({0x08, 0})), absent);
  EXPECT_EQ(key(Bytes({0x08, 0x80, 0})), absent);
  EXPECT_EQ(key(Field(1, "")), absent);
  EXPECT_EQ(key(Bytes({0x0d, 0, 0, 0, 0})), absent);
  EXPECT_EQ(key(Field(1, "a") + Field(1, "")), absent);
  EXPECT_EQ(key(Bytes({0x08, 9}) + Field(1, "")), absent);
  EXPECT_NE(key(Bytes({0x08, 1})), absent);
  EXPECT_NE(key(Field(1, "a")), absent);
  EXPECT_EQ(key(Bytes({0x08, 0x81, 0})), key(Bytes({0x08, 1})));  // of the value, not of its spelling
  EXPECT_NE(key(Field(1, "a")), key(Field(1, "b")));
}

TEST(MessageField, TheKeyDependsOnTheSeedAndNotOnTheCut) {
  base::Random random(Seed());
  const std::string bytes = Prefixed(Field(3, Field(1, "0123456789012345678901234567890123456789")));
  const Pieces whole = Whole(bytes);
  const FieldValue value = ReadField(whole, Numbers{3, 1}, kAll);
  for (int i = 0; i < 100; ++i) {
    const Pieces pieces = Cut(bytes, random);
    EXPECT_EQ(HashField(ReadField(pieces, Numbers{3, 1}, kAll), 1), HashField(value, 1));
  }
  EXPECT_NE(HashField(value, 1), HashField(value, 2));
}

TEST(MessageField, TheFieldOfAMethodIsFoundByItsPath) {
  HashBy by;
  EXPECT_EQ(FindMethodField(by, "/p.S/A"), nullptr);
  by.fields = {{"/p.S/A", {1}}, {"/p.S/C", {2}}};
  EXPECT_EQ(FindMethodField(by, "/p.S/A"), &by.fields[0]);
  EXPECT_EQ(FindMethodField(by, "/p.S/C"), &by.fields[1]);
  for (const char* path : {"", "/p.S/", "/p.S/B", "/p.S/D"}) EXPECT_EQ(FindMethodField(by, path), nullptr);
  by.fields = {{"", {3}}};
  EXPECT_EQ(FindMethodField(by, "/p.S/B"), &by.fields[0]);
}

// A message with fields 1 to 5 of all kinds, so that short paths meet something.
std::string RandomMessage(base::Random& random, int depth) {
  pb::UnknownFieldSet fields;
  for (uint64_t n = random.Below(6); n > 0; --n) {
    const int number = static_cast<int>(1 + random.Below(5));
    switch (random.Below(6)) {
      case 0:
        fields.AddVarint(number, random.Next() >> random.Below(64));
        break;
      case 1:
        fields.AddFixed32(number, static_cast<uint32_t>(random.Next()));
        break;
      case 2:
        fields.AddFixed64(number, random.Next());
        break;
      case 3:
        fields.AddLengthDelimited(number, std::string(random.Below(200), 'x'));
        break;
      case 4:
        if (depth < 4) fields.AddGroup(number)->ParseFromString(RandomMessage(random, depth + 1));
        break;
      default:
        if (depth < 4) fields.AddLengthDelimited(number, RandomMessage(random, depth + 1));
    }
  }
  std::string out;
  fields.SerializeToString(&out);
  return out;
}

Numbers RandomNumbers(base::Random& random) {
  Numbers out(1 + random.Below(3));
  for (uint32_t& number : out) number = static_cast<uint32_t>(1 + random.Below(5));
  return out;
}

TEST(MessageField, ReadsWhatProtobufReads) {
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(Seed()));
  base::Random random(Seed());
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string message = RandomMessage(random, 0);
    const Numbers numbers = RandomNumbers(random);
    const Pieces pieces = Cut(Prefixed(message), random);
    const std::string expected = test::FieldOracle::Read(message, numbers);
    ASSERT_EQ(Text(ReadField(pieces, numbers, kAll)), expected) << i;
    found += expected != "absent";
  }
  EXPECT_GT(found, 2000);
}

TEST(MessageField, JudgesHostileBytesAsProtobufDoes) {
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(Seed()));
  base::Random random(Seed() + 1);
  int malformed = 0, found = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string message = RandomMessage(random, 0);
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      const size_t at = random.Below(message.size() + 1);
      const uint64_t what = random.Below(4);
      if (what == 0) message.insert(at, 1, static_cast<char>(random.Next()));
      if (what == 1) message.insert(at, random.Below(12), '\xff');
      if (what == 2 && at < message.size()) message[at] = static_cast<char>(random.Next());
      if (what == 3) message.resize(at);
    }
    const Numbers numbers = RandomNumbers(random);
    const Pieces pieces = Cut(Prefixed(message), random);
    const std::string expected = test::FieldOracle::Read(message, numbers);
    ASSERT_EQ(Text(ReadField(pieces, numbers, kAll)), expected) << i;
    malformed += expected == "malformed";
    found += expected != "malformed" && expected != "absent";
    // In a smaller window it may see less, but nothing else.
    const size_t window = random.Below(message.size() + 1);
    (void)ReadField(pieces, numbers, window);
    // A prefix that lies about the length.
    const Pieces lying = Cut(Prefixed(message, random.Below(2) * (random.Next() >> 32)), random);
    (void)ReadField(lying, numbers, random.Below(300));
  }
  EXPECT_GT(malformed, 10000);  // both sides must have been met
  EXPECT_GT(found, 1000);
}

TEST(MessageField, FindsTheFieldsOfADynamicMessage) {
  pb::FileDescriptorProto file;
  ASSERT_TRUE(pb::TextFormat::ParseFromString(
      R"pb(
        name: "t.proto"
        package: "t"
        syntax: "proto3"
        message_type {
          name: "User"
          field { name: "id" number: 7 type: TYPE_SINT64 label: LABEL_OPTIONAL }
          field { name: "name" number: 1000 type: TYPE_STRING label: LABEL_OPTIONAL }
        }
        message_type {
          name: "Request"
          field { name: "other" number: 1 type: TYPE_STRING label: LABEL_REPEATED }
          field { name: "user" number: 536870911 type: TYPE_MESSAGE type_name: ".t.User" label: LABEL_OPTIONAL }
        })pb",
      &file));
  pb::DescriptorPool pool;
  ASSERT_NE(pool.BuildFile(file), nullptr);
  pb::DynamicMessageFactory factory;
  const pb::Descriptor* type = pool.FindMessageTypeByName("t.Request");
  std::unique_ptr<pb::Message> request(factory.GetPrototype(type)->New());
  base::Random random(Seed());
  for (int i = 0; i < 1000; ++i) {
    request->Clear();
    const std::string name(random.Below(300), 'n');
    const pb::Reflection& r = *request->GetReflection();
    for (int n = 0; n < 3; ++n)
      r.AddString(request.get(), type->FindFieldByName("other"), std::string(random.Below(50), 'o'));
    pb::Message* user = r.MutableMessage(request.get(), type->FindFieldByName("user"));
    user->GetReflection()->SetString(user, user->GetDescriptor()->FindFieldByName("name"), name);
    user->GetReflection()->SetInt64(user, user->GetDescriptor()->FindFieldByName("id"), -int64_t{i});
    const Pieces pieces = Cut(Prefixed(request->SerializeAsString()), random);
    ASSERT_EQ(Text(ReadField(pieces, Numbers{536870911, 1000}, kAll)), name.empty() ? "absent" : "'" + name + "'");
    ASSERT_EQ(Text(ReadField(pieces, Numbers{536870911, 7}, kAll)),
              i == 0 ? "absent" : std::to_string(2 * i - 1));  // zigzag
  }
}

// The table in docs/hash-ring.md: which values have the hash of a header with their text.
TEST(MessageField, TheXdsKeyIsThatOfAHeaderForTextAndForNumbersAboveZero) {
  const auto key = [](std::string_view message) {
    return XxHashField(ReadField(Whole(Prefixed(message)), Numbers{1}, kAll));
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(key("\x0a\x03"
                "abc"sv),
            base::XxHash64("abc"));
  EXPECT_EQ(key("\x08\xac\x02"sv), base::XxHash64("300")) << "uint32, int64, an enum";
  EXPECT_EQ(key("\x0d\x07\0\0\0"sv), base::XxHash64("7")) << "fixed32";
  EXPECT_EQ(key("\x09\x07\0\0\0\0\0\0\0"sv), base::XxHash64("7")) << "fixed64";
  EXPECT_EQ(key("\x08\x01"sv), base::XxHash64("1")) << "true; sint32 -1";
  EXPECT_EQ(key("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv), base::XxHash64("18446744073709551615"))
      << "int32 -1";
  EXPECT_EQ(key("\x0d\xff\xff\xff\xff"sv), base::XxHash64("4294967295")) << "sfixed32 -1";
  EXPECT_EQ(key("\x09\0\0\0\0\0\0\xf0\x3f"sv), base::XxHash64("4607182418800017408")) << "double 1";
  for (const std::string_view zero : {""sv, "\x08\0"sv, "\x0d\0\0\0\0"sv, "\x0a\0"sv})
    EXPECT_EQ(key(zero), base::XxHash64("")) << zero.size();
}

}  // namespace
}  // namespace sluice::proxy
