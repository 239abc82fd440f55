// base64 of gRPC-Web text: split anywhere, padded inside, and what is none.
#include "proxy/grpc_web/text_codec.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace sluice::proxy::grpc_web {
namespace {

// What `text` comes to in pieces that end at the places `cuts`; none: it is refused, or ends inside of a group.
std::optional<std::string> Decoded(std::string_view text, const std::vector<size_t>& cuts = {}) {
  TextDecoder decoder;
  std::string out;
  size_t from = 0;
  std::vector<size_t> ends = cuts;
  ends.push_back(text.size());
  for (size_t end : ends) {
    base::Slice piece;
    if (!decoder.Decode(text.substr(from, end - from), &piece)) return std::nullopt;
    out += piece.view();
    from = end;
  }
  return decoder.complete() ? std::optional(out) : std::nullopt;
}

std::string Encoded(std::string_view bytes) {
  TextEncoder encoder;
  return std::string(encoder.Encode(bytes, /*flush=*/true).view());
}

std::string AllBytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

// RFC 4648 section 10.
TEST(TextCodec, KnowsTheVectorsOfTheRfc) {
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(Encoded(bytes), text);
    EXPECT_EQ(Decoded(text), bytes);
  }
}

TEST(TextCodec, EveryByteComesBack) {
  for (size_t skip = 0; skip < 3; ++skip) {
    const std::string bytes = AllBytes().substr(skip);
    EXPECT_EQ(Decoded(Encoded(bytes)), bytes);
  }
}

TEST(TextDecoder, MayBeSplitAnywhere) {
  const std::string text = Encoded("first message") + Encoded("2") + Encoded("the third");
  const std::string bytes = "first message2the third";
  for (size_t a = 0; a <= text.size(); ++a) {
    for (size_t b = a; b <= text.size(); ++b) EXPECT_EQ(Decoded(text, {a, b}), bytes) << a << " " << b;
  }
}

TEST(TextDecoder, PaddingInsideOfTheStreamEndsItsGroupOnly) { EXPECT_EQ(Decoded("Zg==Zm8=Zm9vZg=="), "ffofoof"); }

TEST(TextDecoder, GivesWhatIsWholeAtOnce) {
  TextDecoder decoder;
  base::Slice out;
  ASSERT_TRUE(decoder.Decode("Zm9vY", &out));
  EXPECT_EQ(out.view(), "foo");
  EXPECT_FALSE(decoder.complete());
  ASSERT_TRUE(decoder.Decode("g", &out));
  EXPECT_TRUE(out.empty());
  ASSERT_TRUE(decoder.Decode("==", &out));
  EXPECT_EQ(out.view(), "b");
  EXPECT_TRUE(decoder.complete());
}

TEST(TextDecoder, RefusesWhatIsNoBase64) {
  for (const char* text : {"Zm9\n", "Zm9v Zm9v", "Zm-v", "Zm_v", "=m9v", "Z===", "Z=9v", "Zg=v", "Zg=\x80",
                           "\xff\xff\xff\xff", "Zm9v\r\n", "Zg==="}) {
    EXPECT_EQ(Decoded(text), std::nullopt) << text;
    for (size_t cut = 0; cut <= std::string_view(text).size(); ++cut)
      EXPECT_EQ(Decoded(text, {cut}), std::nullopt) << cut;
  }
}

TEST(TextDecoder, AnEndInsideOfAGroupIsSeen) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zm9vZ", "Zm9vZg", "Zm9vZm8"})
    EXPECT_EQ(Decoded(text), std::nullopt) << text;
}

TEST(TextEncoder, HoldsLessThanAGroupUntilItIsFlushed) {
  TextEncoder encoder;
  EXPECT_TRUE(encoder.Encode("f", false).empty());
  EXPECT_EQ(encoder.held(), 1u);
  EXPECT_TRUE(encoder.Encode("o", false).empty());
  EXPECT_EQ(encoder.held(), 2u);
  EXPECT_EQ(encoder.Encode("ob", false).view(), "Zm9v");
  EXPECT_EQ(encoder.held(), 1u);
  EXPECT_EQ(encoder.Encode("", true).view(), "Yg==");
  EXPECT_EQ(encoder.held(), 0u);
  EXPECT_TRUE(encoder.Encode("", true).empty());
}

TEST(TextEncoder, PiecesComeToTheSameAsTheWhole) {
  const std::string bytes = AllBytes();
  const std::string whole = Encoded(bytes);
  for (size_t step = 1; step < 12; ++step) {
    TextEncoder encoder;
    std::string text;
    for (size_t at = 0; at < bytes.size(); at += step) text += encoder.Encode(bytes.substr(at, step), false).view();
    text += encoder.Encode("", true).view();
    EXPECT_EQ(text, whole) << step;
  }
}

}  // namespace
}  // namespace sluice::proxy::grpc_web
