// traceparent, tracestate and grpc-trace-bin: what may be followed is read, all else is as if it were not there.
#include "proxy/tracing/trace_context.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace sluice::proxy {
namespace {

constexpr char kTraceHex[] = "0af7651916cd43dd8448eb211c80319c";
constexpr TraceContext kContext{{0x0af7651916cd43dd, 0x8448eb211c80319c}, 0xb7ad6b7169203331, true, false};
const std::string kText = "00-" + std::string(kTraceHex) + "-b7ad6b7169203331-01";

std::string Text(const TraceContext& context) {
  const TraceparentText text = FormatTraceparent(context);
  return {text.data(), text.size()};
}

TEST(Traceparent, IsReadAndWritten) {
  EXPECT_EQ(ParseTraceparent(kText), kContext);
  EXPECT_EQ(Text(kContext), kText);
  const auto hex = HexOf(kContext.trace);
  EXPECT_EQ(std::string(hex.data(), hex.size()), kTraceHex);
}

TEST(Traceparent, FlagsThatAreNotKnownAreNotPassedOn) {
  auto with = [](const char* flags) { return ParseTraceparent(kText.substr(0, 53) + flags); };
  EXPECT_EQ(Text(*with("ff")).substr(53), "03");
  EXPECT_EQ(Text(*with("00")).substr(53), "00");
  EXPECT_EQ(Text(*with("02")).substr(53), "02");
  EXPECT_FALSE(with("fe")->sampled);
}

// W3C Trace Context 3.2.4: what version 00 has is read of a later one, with or without more behind it.
TEST(Traceparent, OfALaterVersionTheKnownPartIsRead) {
  const std::string rest = kText.substr(2);
  EXPECT_EQ(ParseTraceparent("cc" + rest), kContext);
  EXPECT_EQ(ParseTraceparent("cc" + rest + "-what-the-future-will-be-like"), kContext);
  EXPECT_FALSE(ParseTraceparent("cc" + rest + ".what"));
  EXPECT_FALSE(ParseTraceparent("ff" + rest));
  EXPECT_FALSE(ParseTraceparent(kText + "-more")) << "version 00 has no more";
}

TEST(Traceparent, WhatIsNoneIsNotFollowed) {
  const std::string zero_trace = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
  const std::string zero_span = "00-" + std::string(kTraceHex) + "-0000000000000000-01";
  for (const std::string& text : {zero_trace, zero_span, std::string(), kText.substr(0, 54), kText + " ", " " + kText,
                                  "00-" + std::string(kTraceHex) + "-b7ad6b7169203331-0X"}) {
    EXPECT_FALSE(ParseTraceparent(text)) << text;
  }
  // Each place of it, with a character that may not stand there. Upper case may not either (3.2.2).
  for (size_t i = 0; i < kText.size(); ++i) {
    for (const char wrong : {'g', 'A', '_', '\0', '\x80'}) {
      std::string text = kText;
      text[i] = wrong;
      EXPECT_FALSE(ParseTraceparent(text)) << text;
    }
  }
}

TEST(Tracestate, ListsThatAreLegal) {
  for (const char* text : {"a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1 , b=2\t,c=3", "", ",,a=1,", "t@s=v",
                           "0a@s=v", "a_-*/9=  x", "a=b c!~"}) {
    size_t members = 0;
    EXPECT_TRUE(IsTracestate(text, members)) << text;
  }
}

TEST(Tracestate, ListsThatAreNot) {
  const std::string long_key(257, 'a'), long_value(257, 'v');
  for (const std::string& text :
       {std::string("a"), std::string("=1"), std::string("a="), std::string("A=1"), std::string("a =1"),
        std::string("a=1=2"), std::string("a@=1"), std::string("@s=1"), std::string("t@9=1"), std::string("t@s@u=1"),
        long_key + "=1", "a=" + long_value, std::string("a=\x01"), std::string("a=\x7f"), std::string("a=\xc3\xa4")}) {
    size_t members = 0;
    EXPECT_FALSE(IsTracestate(text, members)) << text;
  }
}

TEST(Tracestate, MembersOfAllFieldsTogetherAreBounded) {
  std::string half = "a=1";
  for (size_t i = 1; i < kTracestateMembersMax / 2; ++i) half += ",a" + std::to_string(i) + "=1";
  size_t members = 0;
  EXPECT_TRUE(IsTracestate(half, members));
  EXPECT_TRUE(IsTracestate(half, members));
  EXPECT_EQ(members, kTracestateMembersMax);
  EXPECT_FALSE(IsTracestate("one=more", members));
}

std::string Binary(std::string bytes) {
  std::string text;
  absl::Base64Escape({bytes.data(), bytes.size()}, &text);
  return text;
}
const std::string kBytes = std::string("\0\0", 2) + "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c" +
                           "\x01" + "\xb7\xad\x6b\x71\x69\x20\x33\x31" + "\x02\x01";

TEST(GrpcTraceBin, IsReadAndWritten) {
  ASSERT_EQ(kBytes.size(), kGrpcTraceBytes);
  EXPECT_EQ(ParseGrpcTrace(Binary(kBytes)), kContext);
  const GrpcTraceText text = FormatGrpcTrace(kContext);
  const std::string unpadded(text.data(), text.size());
  EXPECT_EQ(unpadded + "=", Binary(kBytes));
  EXPECT_EQ(ParseGrpcTrace(unpadded), kContext);
  TraceContext not_sampled = kContext;
  not_sampled.sampled = false;
  const GrpcTraceText other = FormatGrpcTrace(not_sampled);
  EXPECT_EQ(ParseGrpcTrace({other.data(), other.size()}), not_sampled);
}

TEST(GrpcTraceBin, WithoutOptionsItIsNotSampledAndBehindAnUnknownFieldNothingIsRead) {
  EXPECT_FALSE(ParseGrpcTrace(Binary(kBytes.substr(0, 27)))->sampled);
  EXPECT_FALSE(ParseGrpcTrace(Binary(kBytes.substr(0, 27) + "\x07xyz\x02\x01"))->sampled);
}

TEST(GrpcTraceBin, WhatIsNoneIsNotFollowed) {
  std::string zero_trace = kBytes, zero_span = kBytes, version = kBytes;
  zero_trace.replace(2, 16, 16, '\0');
  zero_span.replace(19, 8, 8, '\0');
  version[0] = 1;
  for (const std::string& bytes : {zero_trace, zero_span, version, std::string(), kBytes.substr(0, 1),
                                   kBytes.substr(0, 18), kBytes.substr(0, 28), kBytes.substr(0, 10)}) {
    EXPECT_FALSE(ParseGrpcTrace(Binary(bytes))) << bytes.size();
  }
  EXPECT_FALSE(ParseGrpcTrace("!")) << "no base64";
  EXPECT_FALSE(ParseGrpcTrace(Binary(kBytes) + "," + Binary(kBytes))) << "two in one field";
}

}  // namespace
}  // namespace sluice::proxy
