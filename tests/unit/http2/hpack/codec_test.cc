// The decoder's errors and limits, the encoder's choices, and the holders of fields.
#include <gtest/gtest.h>

#include "unit/http2/hpack/support.h"

namespace sluice::http2 {
namespace {

DecodeResult DecodeHex(HpackDecoder& decoder, InternTable& interns, const char* hex) {
  HeaderList list(&interns);
  return decoder.Decode(FromHex(hex), {}, list);
}

DecodeResult DecodeHex(const char* hex, size_t table_bytes_max = 4096) {
  InternTable interns;
  HpackDecoder decoder(interns, table_bytes_max);
  return DecodeHex(decoder, interns, hex);
}

TEST(HpackDecoder, RefusesIndexZeroAndIndexesBeyondTheTables) {
  EXPECT_EQ(DecodeHex(""), DecodeResult::kOk);
  EXPECT_EQ(DecodeHex("bd"), DecodeResult::kOk);       // 61
  EXPECT_EQ(DecodeHex("80"), DecodeResult::kError);    // 0
  EXPECT_EQ(DecodeHex("be"), DecodeResult::kError);    // 62: the dynamic table is empty
  EXPECT_EQ(DecodeHex("ff00"), DecodeResult::kError);  // 127
  EXPECT_EQ(DecodeHex("4001610162be"), DecodeResult::kOk);
  EXPECT_EQ(DecodeHex("4001610162bf"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("7e0162"), DecodeResult::kError);  // names: 62
  EXPECT_EQ(DecodeHex("0f2f0162"), DecodeResult::kError);
}

TEST(HpackDecoder, RefusesWhatIsCutShort) {
  const std::string block = FromHex("00 8825a849e95ba97d7f 8925a849e95bb8e8b4bf");
  for (size_t i = 0; i <= block.size(); ++i) {
    InternTable interns;
    HpackDecoder decoder(interns);
    HeaderList list(&interns);
    const bool whole = i == 0 || i == block.size();
    EXPECT_EQ(decoder.Decode(std::string_view(block).substr(0, i), {}, list) == DecodeResult::kOk, whole) << i;
  }
  EXPECT_EQ(DecodeHex("40"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("400161"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("40016102ff"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("ff"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("ff80"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("417fffffff"), DecodeResult::kError);
}

TEST(HpackDecoder, BoundsIntegers) {
  EXPECT_EQ(DecodeHex("400161 7f8080808000"), DecodeResult::kError) << "127 bytes that are not there";
  EXPECT_EQ(DecodeHex("ffffffffff7f"), DecodeResult::kError) << "above 2^32";
  EXPECT_EQ(DecodeHex("ff808080808000"), DecodeResult::kError) << "six bytes behind the first";
  EXPECT_EQ(DecodeHex("3f8080808000"), DecodeResult::kOk) << "31, padded to the length we take";
  EXPECT_EQ(DecodeHex("3f808080808000"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("4001617fffffffffffffffffff7f"), DecodeResult::kError);
}

TEST(HpackDecoder, RefusesBadHuffmanCode) {
  for (const char* kind : {"00", "10", "40"}) {
    EXPECT_EQ(DecodeHex((std::string(kind) + "811f811f").c_str()), DecodeResult::kOk);
    EXPECT_EQ(DecodeHex((std::string(kind) + "8118811f").c_str()), DecodeResult::kError) << "padding in a name";
    EXPECT_EQ(DecodeHex((std::string(kind) + "811f8118").c_str()), DecodeResult::kError) << "padding in a value";
    EXPECT_EQ(DecodeHex((std::string(kind) + "811f84ffffffff").c_str()), DecodeResult::kError) << "EOS";
    EXPECT_EQ(DecodeHex((std::string(kind) + "811f81ff").c_str()), DecodeResult::kError) << "8 bits of padding";
  }
}

TEST(HpackDecoder, TakesSizeUpdatesOnlyAtTheStart) {
  EXPECT_EQ(DecodeHex("20"), DecodeResult::kOk);
  EXPECT_EQ(DecodeHex("203fe11f82"), DecodeResult::kOk);  // 0, then 4096
  EXPECT_EQ(DecodeHex("8220"), DecodeResult::kError);
  EXPECT_EQ(DecodeHex("400161016220"), DecodeResult::kError);
}

TEST(HpackDecoder, RefusesSizeUpdatesAboveTheSetting) {
  EXPECT_EQ(DecodeHex("3fe11f"), DecodeResult::kOk);
  EXPECT_EQ(DecodeHex("3fe21f"), DecodeResult::kError);  // 4097
  EXPECT_EQ(DecodeHex("3fe21f", 8192), DecodeResult::kOk);
  EXPECT_EQ(DecodeHex("21", 0), DecodeResult::kError);
}

TEST(HpackDecoder, WantsAnUpdateWhenTheSettingWasLowered) {
  const auto after = [](std::initializer_list<size_t> settings, const char* hex) {
    InternTable interns;
    HpackDecoder decoder(interns);
    for (size_t bytes : settings) decoder.SetTableBytesMax(bytes);
    return DecodeHex(decoder, interns, hex);
  };
  EXPECT_EQ(after({100}, "82"), DecodeResult::kError);
  EXPECT_EQ(after({100}, ""), DecodeResult::kError);
  EXPECT_EQ(after({100}, "3f4582"), DecodeResult::kOk);     // 100
  EXPECT_EQ(after({100}, "3f4682"), DecodeResult::kError);  // 101
  EXPECT_EQ(after({100}, "2082"), DecodeResult::kOk);
  EXPECT_EQ(after({8192}, "82"), DecodeResult::kOk);
  // Lowered and raised again: the first update must reach the low value, the second may use the new one.
  EXPECT_EQ(after({100, 4096}, "82"), DecodeResult::kError);
  EXPECT_EQ(after({100, 4096}, "3fe11f82"), DecodeResult::kError);
  EXPECT_EQ(after({100, 4096}, "3f453fe11f82"), DecodeResult::kOk);
}

TEST(HpackDecoder, WantsNoUpdateFromAPeerThatUsesLessAlready) {
  InternTable interns;
  HpackDecoder decoder(interns);
  EXPECT_EQ(DecodeHex(decoder, interns, "3f4582"), DecodeResult::kOk);
  decoder.SetTableBytesMax(100);
  EXPECT_EQ(DecodeHex(decoder, interns, "82"), DecodeResult::kOk);
}

TEST(HpackDecoder, KeepsTheTableInStepWhenTheListIsTooLarge) {
  InternTable interns;
  {
    HpackDecoder decoder(interns);
    HeaderList list(&interns);
    // Two literals to be indexed, one not; the limit lets the first in.
    const std::string block = FromHex("40 0161 0131 40 0162 0132 00 0163 0133 82");
    EXPECT_EQ(decoder.Decode(block, {.header_list_bytes_max = 34}, list), DecodeResult::kTooLarge);
    EXPECT_EQ(PairsOf(list), (Pairs{{"a", "1"}}));
    EXPECT_EQ(decoder.dropped(), 3u);
    EXPECT_EQ(decoder.table_bytes(), 68u);
    HeaderList next(&interns);
    EXPECT_EQ(decoder.Decode(FromHex("bebf"), {}, next), DecodeResult::kOk);
    EXPECT_EQ(PairsOf(next), (Pairs{{"b", "2"}, {"a", "1"}}));
    HeaderList counted(&interns);
    EXPECT_EQ(decoder.Decode(FromHex("828282"), {.header_count_max = 2}, counted), DecodeResult::kTooLarge);
    EXPECT_EQ(counted.size(), 2u);
    HeaderList exact(&interns);
    EXPECT_EQ(decoder.Decode(FromHex("8282"), {.header_count_max = 2}, exact), DecodeResult::kOk);
    EXPECT_EQ(decoder.dropped(), 0u);
    // Errors behind the limit are still errors.
    HeaderList bad(&interns);
    EXPECT_EQ(decoder.Decode(FromHex("828280"), {.header_count_max = 1}, bad), DecodeResult::kError);
  }
  EXPECT_EQ(interns.size(), 0u);
}

TEST(HpackDecoder, ReadsANameFromTheEntryThatGoes) {
  InternTable interns;
  HpackDecoder decoder(interns, 40);  // room for one entry
  HeaderList list(&interns);
  EXPECT_EQ(decoder.Decode(FromHex("40 046e616d65 0131 7e 0132"), {}, list), DecodeResult::kOk);
  EXPECT_EQ(PairsOf(list), (Pairs{{"name", "1"}, {"name", "2"}}));
  EXPECT_EQ(decoder.table_bytes(), 37u);
}

TEST(HpackDecoder, AFieldLargerThanTheTableEmptiesIt) {
  InternTable interns;
  HpackDecoder decoder(interns, 40);
  HeaderList list(&interns);
  EXPECT_EQ(decoder.Decode(FromHex("40 0161 0131 40 0a 61616161616161616161 0131"), {}, list), DecodeResult::kOk);
  EXPECT_EQ(decoder.table_bytes(), 0u);
  EXPECT_EQ(list.size(), 2u);
}

TEST(HpackDecoder, SaysHowEachFieldWasSent) {
  InternTable interns;
  HpackDecoder decoder(interns);
  HeaderList list(&interns);
  ASSERT_EQ(decoder.Decode(FromHex("82 40 0161 0131 00 0162 0132 10 0163 0133 be 1f08 0131"), {}, list),
            DecodeResult::kOk);
  const Indexing expected[] = {Indexing::kIndexed, Indexing::kIndexed, Indexing::kLiteral,
                               Indexing::kNever,   Indexing::kIndexed, Indexing::kNever};
  ASSERT_EQ(list.size(), std::size(expected));
  for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i].indexing, expected[i]) << i;
  EXPECT_EQ(list.begin()[1], list.begin()[4]) << "one field, one pointer";
  EXPECT_EQ(list[5].token, Token::kAuthorization);
}

TEST(HpackDecoder, AListKeepsAFieldThatTheTableEvicts) {
  InternTable interns;
  {
    HeaderList list(&interns);
    {
      HpackDecoder decoder(interns);
      ASSERT_EQ(decoder.Decode(FromHex("40 0161 0131"), {}, list), DecodeResult::kOk);
      HeaderList other(&interns);
      ASSERT_EQ(decoder.Decode(FromHex("20"), {}, other), DecodeResult::kOk);
      EXPECT_EQ(decoder.table_bytes(), 0u);
      EXPECT_EQ(interns.size(), 1u);
    }
    EXPECT_EQ(PairsOf(list), (Pairs{{"a", "1"}}));
  }
  EXPECT_EQ(interns.size(), 0u);
}

std::string EncodeHex(HpackEncoder& encoder, const HeaderList& list) { return ToHex(EncodeToString(encoder, list)); }

TEST(HpackEncoder, MirrorsTheSendersChoice) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HeaderList list(&interns);
  list.Add("a", "1");
  list.Add("b", "2", Indexing::kNever);
  list.Add(":path", "/x");
  list.Add("authorization", "s", Indexing::kNever);
  list.Add(":status", "200");
  list.Add(":method", "GET", Indexing::kNever);
  const std::string block = EncodeHex(encoder, list);
  EXPECT_EQ(block, ToHex(FromHex("00 0161 0131 10 0162 0132 04 022f78 1f08 0173 88 12 03474554")));
  EXPECT_EQ(encoder.table_bytes(), 0u);
  EXPECT_EQ(EncodeHex(encoder, list), block);
}

TEST(HpackEncoder, SendsAnInternedFieldOnceAndThenItsIndex) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HeaderList one(&interns), two(&interns);
  one.AddInterned(interns.Intern("x-a", "1"));
  EXPECT_EQ(EncodeHex(encoder, one).substr(0, 2), "40");
  EXPECT_EQ(EncodeHex(encoder, one), "be");
  two.AddInterned(interns.Intern("x-b", "1"));
  EncodeHex(encoder, two);
  EXPECT_EQ(EncodeHex(encoder, one), "bf");
  EXPECT_EQ(EncodeHex(encoder, one.Clone()), "bf") << "a transient copy finds its twin";
}

TEST(HpackEncoder, NeverSendsAFieldTwiceThoughMemosCollide) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HeaderList first(&interns), second(&interns);
  first.AddInterned(interns.Intern("x-first", "1"));
  std::vector<const Field*> between;  // push the next id to the same memo
  for (int i = 0; i < 255; ++i) between.push_back(interns.Intern("between", std::to_string(i)));
  second.AddInterned(interns.Intern("x-second", "1"));
  ASSERT_EQ(first[0].id % 256, second[0].id % 256);
  EncodeHex(encoder, first);
  EncodeHex(encoder, second);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(EncodeHex(encoder, first), "bf");
    EXPECT_EQ(EncodeHex(encoder, second), "be");
  }
  for (const Field* field : between) interns.Unref(field);
}

TEST(HpackEncoder, DoesNotIndexWhatWouldFillTheTable) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HeaderList fits(&interns), large(&interns), transient;
  fits.AddInterned(interns.Intern("x", std::string(3072 - 33, 'v')));
  large.AddInterned(interns.Intern("x", std::string(3072 - 32, 'v')));
  transient.Add("x", std::string(3072 - 32, 'v'), Indexing::kIndexed);
  EncodeHex(encoder, large);
  EncodeHex(encoder, transient);
  EXPECT_EQ(encoder.table_bytes(), 0u);
  EncodeHex(encoder, fits);
  EXPECT_EQ(encoder.table_bytes(), 3072u);
}

TEST(HpackEncoder, AnnouncesChangesOfItsTable) {
  InternTable interns;
  HpackEncoder encoder(interns);
  const HeaderList none;
  encoder.SetPeerTableBytesMax(4096);
  EXPECT_EQ(EncodeHex(encoder, none), "") << "nothing changed";
  encoder.SetPeerTableBytesMax(65536);
  EXPECT_EQ(EncodeHex(encoder, none), "") << "more than we use";
  encoder.SetPeerTableBytesMax(100);
  EXPECT_EQ(EncodeHex(encoder, none), "3f45");
  EXPECT_EQ(EncodeHex(encoder, none), "");
  encoder.SetPeerTableBytesMax(0);
  encoder.SetPeerTableBytesMax(50);
  encoder.SetPeerTableBytesMax(8192);
  EXPECT_EQ(EncodeHex(encoder, none), "203fe11f") << "the lowest, then the last";
  encoder.SetPeerTableBytesMax(30);
  encoder.SetPeerTableBytesMax(4096);
  EXPECT_EQ(EncodeHex(encoder, none), "3e3fe11f") << "the same value again, but entries may have gone";
}

TEST(HpackEncoder, LowersItsTableAtOnce) {
  InternTable interns;
  HpackEncoder encoder(interns);
  {
    HeaderList list(&interns);
    list.AddInterned(interns.Intern("x-a", "1"));
    EncodeHex(encoder, list);
  }
  EXPECT_EQ(interns.size(), 1u);
  encoder.SetPeerTableBytesMax(0);
  EXPECT_EQ(interns.size(), 0u);
  HeaderList list(&interns);
  list.AddInterned(interns.Intern("x-a", "1"));
  EXPECT_EQ(EncodeHex(encoder, list), ToHex(FromHex("20 00 03782d61 0131"))) << "no table, no indexing";
}

// RFC 9113 8.3.1: of two hops with different transports.
TEST(HpackEncoder, SaysTheSchemeItIsTold) {
  for (const char* given : {"http", "https", "HTTPS", "other"}) {
    for (Indexing indexing : {Indexing::kIndexed, Indexing::kLiteral, Indexing::kNever}) {
      InternTable interns;
      HpackEncoder client(interns), upstream(interns);
      HpackDecoder proxy(interns), backend(interns);
      upstream.SetScheme(InternTable::Static(7));
      for (int block = 0; block < 5; ++block) {  // from the second on it is remembered as a run
        HeaderList sent(&interns), seen(&interns), heard(&interns);
        sent.Add(":method", "POST", Indexing::kIndexed);
        sent.Add(":scheme", given, indexing);
        sent.Add("a", std::to_string(block));
        ASSERT_EQ(proxy.Decode(EncodeToString(client, sent), {}, seen), DecodeResult::kOk);
        EXPECT_EQ(seen.Find(Token::kScheme)->value(), given);
        ASSERT_EQ(backend.Decode(EncodeToString(upstream, seen), {}, heard), DecodeResult::kOk);
        ASSERT_EQ(heard.size(), 3u);
        EXPECT_EQ(heard.Find(Token::kScheme)->value(), "https");
        EXPECT_EQ(heard.Find(Token::kMethod)->value(), "POST");
        EXPECT_EQ(heard[2].value(), std::to_string(block));
      }
    }
  }
}

}  // namespace
}  // namespace sluice::http2
