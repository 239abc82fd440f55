// What of a message could be read in two ways by two readers (RFC 9113 8.2, 8.3, 10.3), in responses and trailers too.
// Rules that need a stream: session_rules_test.cc.
#include "http2/fields/validate.h"

#include <gtest/gtest.h>

#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Fields;
using h2::With;

class ValidateTest : public ::testing::Test {
 public:
  bool Request(const Fields& fields) { return ValidateRequest(h2::List(interns, fields)).malformed == nullptr; }
  bool Response(const Fields& fields) { return ValidateResponse(h2::List(interns, fields)).malformed == nullptr; }
  bool Trailers(const Fields& fields) { return ValidateTrailers(h2::List(interns, fields)) == nullptr; }

  InternTable interns;
};

TEST_F(ValidateTest, HostAndAuthorityAgree) {
  const Fields good = {{":method", "POST"}, {":scheme", "http"}, {":path", "/a"}, {":authority", "a:1"}};
  EXPECT_TRUE(Request(With(good, {{"host", "A:1"}})));
  EXPECT_FALSE(Request(With(good, {{"host", "a"}})));
  EXPECT_FALSE(Request(With(good, {{"host", "b:1"}})));
  EXPECT_FALSE(Request(With(good, {{"host", "a:1"}, {"host", "a:1"}})));
}

// One bad character at every place of a value, by all the ways that a value takes: eight bytes at once, and the rest.
TEST_F(ValidateTest, NoByteOfAValueIsOverlooked) {
  for (char bad : {'\0', '\n', '\r'}) {
    for (size_t size = 1; size < 40; ++size) {
      for (size_t at = 0; at < size; ++at) {
        std::string value(size, 'x');
        value[at] = bad;
        EXPECT_FALSE(ValidFieldValue(value)) << size << " " << at;
        EXPECT_FALSE(Response({{":status", "200"}, {"a", value}}));
      }
    }
  }
}

TEST_F(ValidateTest, ResponsesAndTrailersFollowTheSameRulesOfNamesAndValues) {
  const Fields bad = {{"Upper", "a"},
                      {"a b", "a"},
                      {"", "a"},
                      {"a:b", "a"},
                      {"a\x7f", "a"},
                      {"a", "b\nc"},
                      {"connection", "close"},
                      {"proxy-connection", "a"},
                      {"keep-alive", "1"},
                      {"transfer-encoding", "chunked"},
                      {"upgrade", "h2c"},
                      {"te", "gzip"},
                      {":unknown", "a"},
                      {":path", "/"},
                      {":status", "200"}};
  for (const auto& field : bad) {
    EXPECT_FALSE(Response({{":status", "200"}, field})) << field.first;
    EXPECT_FALSE(Trailers({{"grpc-status", "0"}, field})) << field.first;
  }
  EXPECT_TRUE(Response(h2::GrpcResponse()));
  EXPECT_TRUE(Trailers(h2::GrpcTrailers()));
}

TEST_F(ValidateTest, TrailersSayNothingOfFramingOrRouting) {
  EXPECT_FALSE(Trailers({{"grpc-status", "0"}, {"content-length", "5"}}));
  EXPECT_FALSE(Trailers({{"grpc-status", "0"}, {"content-length", "0"}}));
  EXPECT_FALSE(Trailers({{"grpc-status", "0"}, {"host", "a"}}));
}

}  // namespace
}  // namespace sluice::http2
