// Fields, the intern table and header lists.
#include "http2/fields/header.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "http2/error_code.h"
#include "http2/fields/static_table.h"

namespace sluice::http2 {
namespace {

std::vector<std::string> Spell(const HeaderList& list) {
  std::vector<std::string> lines;
  for (const Field* field : list) lines.push_back(std::string(field->name()) + "=" + std::string(field->value()));
  return lines;
}

size_t SumOfSizes(const HeaderList& list) {
  size_t sum = 0;
  for (const Field* field : list) sum += field->hpack_size();
  return sum;
}

using Lines = std::vector<std::string>;

TEST(Token, KnowsItsNamesAndNothingElse) {
  EXPECT_EQ(TokenOf(":path"), Token::kPath);
  EXPECT_EQ(TokenOf(":protocol"), Token::kProtocol);
  EXPECT_EQ(TokenOf("te"), Token::kTe);
  EXPECT_EQ(TokenOf("via"), Token::kVia);
  EXPECT_EQ(TokenOf("grpc-timeout"), Token::kGrpcTimeout);
  EXPECT_EQ(TokenOf("grpc-previous-rpc-attempts"), Token::kGrpcPreviousRpcAttempts);
  for (const char* ours : {"sluice-reason", "sluice-processed", "sluice-limit", "sluice-waited", "sluice-cache",
                           "sluice-call-id", "sluice-mirrored"})
    EXPECT_EQ(TokenOf(ours), Token::kSluice) << ours;
  EXPECT_EQ(TokenOf("sluice-other"), Token::kOther);
  EXPECT_EQ(TokenOf("cache-control"), Token::kCacheControl);
  EXPECT_EQ(TokenOf("grpc-accept-encoding"), Token::kGrpcAcceptEncoding);
  EXPECT_EQ(TokenOf(":unheard"), Token::kUnknownPseudo);
  EXPECT_EQ(TokenOf(":"), Token::kUnknownPseudo);
  EXPECT_EQ(TokenOf(""), Token::kOther);
  EXPECT_EQ(TokenOf("t"), Token::kOther);
  EXPECT_EQ(TokenOf("tf"), Token::kOther);
  EXPECT_EQ(TokenOf("accept"), Token::kOther);
  // Same length and ends as a known name.
  EXPECT_EQ(TokenOf("grpc-tomeout"), Token::kOther);
  EXPECT_EQ(TokenOf("Host"), Token::kOther);
  for (Token token : {Token::kMethod, Token::kStatus, Token::kUnknownPseudo}) EXPECT_TRUE(IsPseudo(token));
  for (Token token : {Token::kOther, Token::kConnection, Token::kGrpcStatus}) EXPECT_FALSE(IsPseudo(token));
}

TEST(StaticTable, EveryEntryIsFoundByItsNameAndValue) {
  for (size_t i = 1; i <= kStaticCount; ++i) {
    const Field* field = InternTable::Static(i);
    const NameClass cls = ClassifyName(field->name());
    EXPECT_EQ(field->id, i);
    EXPECT_EQ(cls.token, field->token);
    EXPECT_EQ(cls.static_name_index, field->static_name_index);
    EXPECT_EQ(StaticIndex(cls.static_name_index, field->value()), i);
    EXPECT_EQ(InternTable::Static(cls.static_name_index)->name(), field->name());
  }
  EXPECT_EQ(StaticIndex(ClassifyName(":status").static_name_index, "201"), 0);
  EXPECT_EQ(InternTable::Static(61)->name(), "www-authenticate");
  EXPECT_EQ(InternTable::Static(16)->value(), "gzip, deflate");
}

TEST(InternTable, EqualFieldsAreOneFieldUntilTheLastHolderGoes) {
  InternTable table;
  const Field* a = table.Intern("x-a", "1");
  const Field* b = table.Intern("x-a", "1");
  const Field* c = table.Intern("x-", "a1");  // the same bytes, cut elsewhere
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(table.size(), 2u);
  const uint64_t id = a->id;
  table.Unref(a);
  EXPECT_EQ(table.size(), 2u);
  table.Unref(b);
  table.Unref(c);
  EXPECT_EQ(table.size(), 0u);
  const Field* again = table.Intern("x-a", "1");
  EXPECT_NE(again->id, id) << "an id is never used again";
  table.Unref(again);
}

TEST(InternTable, StaticEntriesAreReturnedAsTheyAre) {
  InternTable table;
  const Field* field = table.Intern(":method", "POST");
  EXPECT_EQ(field, InternTable::Static(3));
  InternTable::Ref(field);
  table.Unref(field);
  table.Unref(field);
  table.Unref(field);
  EXPECT_EQ(field->refs, 0u);
  EXPECT_EQ(table.size(), 0u);
}

TEST(InternTable, IdsOfTwoTablesDiffer) {
  InternTable one, two;
  const Field* a = one.Intern("x", "y");
  const Field* b = two.Intern("x", "y");
  EXPECT_NE(a->id, b->id);
  one.Unref(a);
  two.Unref(b);
}

TEST(InternTable, HoldsManyFieldsOfAllSizes) {
  InternTable table;
  std::vector<const Field*> fields;
  for (int i = 0; i < 3000; ++i) fields.push_back(table.Intern("n" + std::to_string(i), std::string(i, 'v')));
  EXPECT_EQ(table.size(), 3000u);
  for (int i = 0; i < 3000; ++i) {
    const Field* found = table.Intern("n" + std::to_string(i), std::string(i, 'v'));
    EXPECT_EQ(found, fields[i]);
    table.Unref(found);
    table.Unref(found);
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(HeaderList, AddClassifiesAndCopies) {
  HeaderList list;
  std::string value = "/svc/M";
  const Field* path = list.Add(":path", value);
  value = "######";
  EXPECT_EQ(path->value(), "/svc/M");
  EXPECT_EQ(path->token, Token::kPath);
  EXPECT_EQ(path->static_name_index, 4);
  EXPECT_EQ(path->static_index, 0);
  EXPECT_FALSE(path->interned());
  EXPECT_EQ(list.Add(":status", "200")->static_index, 8);
  EXPECT_EQ(list.Add({}, {})->token, Token::kOther);
  EXPECT_EQ(list.hpack_size(), SumOfSizes(list));
}

TEST(HeaderList, GrowsFarBeyondItsFirstChunk) {
  HeaderList list;
  for (int i = 0; i < 500; ++i) list.Add("name" + std::to_string(i), std::string(i * 7 % 3000, 'v'));
  ASSERT_EQ(list.size(), 500u);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(list[i].name(), "name" + std::to_string(i));
    EXPECT_EQ(list[i].value(), std::string(i * 7 % 3000, 'v'));
  }
  EXPECT_EQ(list.hpack_size(), SumOfSizes(list));
  list.Clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.hpack_size(), 0u);
  list.Add("again", "1");
  EXPECT_EQ(Spell(list), Lines{"again=1"});
}

TEST(HeaderList, SetReplacesTheFirstAndRemovesTheOthers) {
  InternTable table;
  {
    HeaderList list(&table);
    list.Add("a", "1");
    list.AddInterned(table.Intern("grpc-timeout", "1S"));
    list.Add("b", "2");
    list.AddInterned(table.Intern("grpc-timeout", "2S"));
    EXPECT_EQ(table.size(), 2u);
    list.Set(Token::kGrpcTimeout, "grpc-timeout", "900m");
    EXPECT_EQ(Spell(list), (Lines{"a=1", "grpc-timeout=900m", "b=2"}));
    EXPECT_EQ(table.size(), 0u);
    EXPECT_EQ(list.hpack_size(), SumOfSizes(list));
    list.Set(Token::kUserAgent, "user-agent", "x");
    EXPECT_EQ(Spell(list).back(), "user-agent=x");
    // From its own bytes.
    list.Set(Token::kUserAgent, list.Find(Token::kUserAgent)->name(), list.Find("b")->value());
    EXPECT_EQ(Spell(list).back(), "user-agent=2");
    EXPECT_EQ(list.hpack_size(), SumOfSizes(list));
  }
}

TEST(HeaderList, RemoveKeepsTheOrderOfTheOthers) {
  InternTable table;
  HeaderList list(&table);
  list.Add("te", "trailers");
  list.Add("a", "1");
  list.AddInterned(table.Intern("te", "gzip"));
  list.Add("b", "2");
  list.Remove(Token::kTe);
  EXPECT_EQ(Spell(list), (Lines{"a=1", "b=2"}));
  EXPECT_EQ(list.Find(Token::kTe), nullptr);
  EXPECT_EQ(list.Find("c"), nullptr);
  EXPECT_EQ(list.hpack_size(), SumOfSizes(list));
  EXPECT_EQ(table.size(), 0u);
}

TEST(HeaderList, MovesWithItsReferences) {
  InternTable table;
  {
    HeaderList one(&table);
    one.AddInterned(table.Intern("x", "1"));
    HeaderList two(std::move(one));
    EXPECT_TRUE(one.empty());
    HeaderList three(&table);
    three.AddInterned(table.Intern("y", "1"));
    three = std::move(two);
    EXPECT_EQ(Spell(three), Lines{"x=1"});
    EXPECT_EQ(table.size(), 1u);
    one.Add("reused", "1");
    EXPECT_EQ(one.size(), 1u);
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(HeaderList, CompactKeepsTheFieldsAndTheirReferences) {
  InternTable table;
  {
    HeaderList list(&table);
    Lines lines;
    for (int i = 0; i < 60; ++i) {
      const std::string name = "name" + std::to_string(i), value(i * 5, 'v');
      if (i % 3 == 0) {
        list.AddInterned(table.Intern(name, value));
      } else {
        list.Add(name, value, i % 3 == 1 ? Indexing::kNever : Indexing::kIndexed);
      }
      lines.push_back(name + "=" + value);
    }
    const Field* before = list.begin()[1];
    list.Compact();
    EXPECT_NE(list.begin()[1], before) << "nothing was moved: the test shows nothing";
    EXPECT_EQ(Spell(list), lines);
    EXPECT_EQ(list[1].indexing, Indexing::kNever);
    EXPECT_EQ(list[2].indexing, Indexing::kIndexed);
    EXPECT_EQ(table.size(), 20u);
    EXPECT_EQ(list.hpack_size(), SumOfSizes(list));
    before = list.begin()[1];
    list.Compact();
    EXPECT_EQ(list.begin()[1], before) << "there is nothing to be won";
    list.Add("after", "1");
    lines.push_back("after=1");
    list.Remove(Token::kTe);
    EXPECT_EQ(Spell(list), lines);
    list.Clear();
    EXPECT_EQ(table.size(), 0u);
    list.Compact();
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(HeaderList, ACloneOwesNothingToTheTable) {
  HeaderList copy;
  {
    InternTable table;
    HeaderList list(&table);
    list.AddInterned(table.Intern("x-id", "7"));
    list.AddInterned(InternTable::Static(3));
    list.Add("authorization", "secret", Indexing::kNever);
    copy = list.Clone();
  }
  EXPECT_EQ(Spell(copy), (Lines{"x-id=7", ":method=POST", "authorization=secret"}));
  for (const Field* field : copy) EXPECT_FALSE(field->interned());
  EXPECT_EQ(copy[0].indexing, Indexing::kIndexed);
  EXPECT_EQ(copy[1].static_index, 3);
  EXPECT_EQ(copy[2].indexing, Indexing::kNever);
  EXPECT_EQ(copy[2].token, Token::kAuthorization);
  EXPECT_EQ(copy.hpack_size(), SumOfSizes(copy));
}

TEST(ErrorCode, NamesWhatTheRfcDefines) {
  EXPECT_EQ(ToString(ErrorCode::kCompressionError), "COMPRESSION_ERROR");
  EXPECT_EQ(ToString(ErrorCode::kHttp11Required), "HTTP_1_1_REQUIRED");
  EXPECT_EQ(ToString(static_cast<ErrorCode>(0x77)), "UNKNOWN");
}

}  // namespace
}  // namespace sluice::http2
