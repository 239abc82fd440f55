#include "proxy/access_log/line_format.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/proxy/access_log/log_lines.h"

namespace sluice::proxy {
namespace {

using Source = AccessLogField::Source;
constexpr std::string_view kTime = "1970-01-01T00:00:01.500Z";

// What a reader of JSON makes of the line; empty: it is none.
std::map<std::string, std::string> Parsed(const std::string& line) {
  google::protobuf::Struct parsed;
  const auto status = google::protobuf::util::JsonStringToMessage(line, &parsed);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << line;
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : parsed.fields()) {
    out[key] = value.has_string_value() ? value.string_value() : value.has_null_value() ? "null" : "number";
  }
  return out;
}

TEST(LineFormat, TextIsOneLineOfWords) {
  EXPECT_EQ(LineOf(TextLog(), FailedCall()),
            std::string(kTime) +
                " 192.0.2.1:4000 \"/pkg.Users/Get\" UNAVAILABLE client=\"spiffe://d/a b\" route=r cluster=c endpoint=e "
                "attempts=2 tries=d:UNAVAILABLE:1.200ms,e:connect_failed:0.800ms in=10 out=20 "
                "upstream_ms=1.500 response_ms=- total_ms=2.500 cache=- waited=- limit=- cause=connect_failed "
                "processed=maybe detail=\"refused\" call_id=" +
                CallId::Of(1, 0x2a).ToString() + " request_id=\"a b\"");
}

TEST(LineFormat, WhatIsMissingIsADash) {
  EXPECT_EQ(LineOf(TextLog(), CallRecord{}),
            "1970-01-01T00:00:00.000Z - \"\" OK client=- route=- cluster=- endpoint=- attempts=0 tries=- in=0 out=0 "
            "upstream_ms=- response_ms=- total_ms=0.000 cache=- waited=- limit=- cause=- processed=- detail=\"\" "
            "call_id=- request_id=-");
}

TEST(LineFormat, JsonHasAllFieldsAndNullForPhasesNotReached) {
  EXPECT_EQ(
      LineOf(JsonLog(), FailedCall()),
      R"({"time":"1970-01-01T00:00:01.500Z","peer":"192.0.2.1:4000","client":"spiffe://d/a b","authority":"users","path":"/pkg.Users/Get","status":"UNAVAILABLE",)"
      R"("route":"r","cluster":"c","endpoint":"e","attempts":2,"tries":"d:UNAVAILABLE:1.200ms,e:connect_failed:0.800ms","request_bytes":10,"response_bytes":20,)"
      R"("upstream_ms":1.500,"response_ms":null,"total_ms":2.500,"cache":"","waited":"","limit":"","cause":"connect_failed","processed":"maybe","detail":"refused","call_id":")" +
          CallId::Of(1, 0x2a).ToString() + R"(","request_id":"a b"})");
}

// Each field by itself has the key and the value that it has among all.
TEST(LineFormat, EachFieldMayStandAlone) {
  const auto all = Parsed(LineOf(JsonLog(), FailedCall()));
  ASSERT_EQ(all.size(), std::size(kAccessFieldNames));
  const std::string text = " " + LineOf(TextLog(), FailedCall()) + " authority=\"users\" ";
  for (size_t i = 0; i < std::size(kAccessFieldNames); ++i) {
    const std::string name(kAccessFieldNames[i]);
    AccessLogOptions options = JsonLog();
    options.fields = {{.field = static_cast<AccessField>(i)}};
    const auto one = Parsed(LineOf(options, FailedCall()));
    ASSERT_EQ(one.size(), 1u) << name;
    EXPECT_EQ(one.at(name), all.at(name));
    options.format = AccessLogOptions::Format::kText;
    const std::string word = LineOf(options, FailedCall());
    EXPECT_NE(text.find(" " + word + " "), std::string::npos) << word;
    options.fields[0].as = "k";
    EXPECT_TRUE(LineOf(options, FailedCall()).starts_with("k=")) << name;
  }
}

TEST(LineFormat, MetadataIsFoundByNameInRequestAndTrailers) {
  http2::HeaderList request, trailers;
  request.Add("x-user", "a");
  request.Add("x-cost", "of the request");
  request.Add("x-user", "b c");
  trailers.Add("x-cost", "12");
  CallRecord call = FailedCall();
  call.request = &request;
  call.trailers = &trailers;
  AccessLogOptions options = JsonLog();
  options.fields = {{Source::kMetadata, {}, "x-user", ""},
                    {Source::kTrailer, {}, "x-cost", "cost"},
                    {.field = AccessField::kStatus},
                    {Source::kTrailer, {}, "x-none", ""}};
  EXPECT_EQ(LineOf(options, call), R"({"x-user":"a,b c","cost":"12","status":"UNAVAILABLE","x-none":""})");
  options.format = AccessLogOptions::Format::kText;
  EXPECT_EQ(LineOf(options, call), R"(x-user="a,b c" cost="12" UNAVAILABLE x-none=-)");
  call.trailers = nullptr;  // the call failed here
  EXPECT_EQ(LineOf(options, call), R"(x-user="a,b c" cost=- UNAVAILABLE x-none=-)");
}

TEST(LineFormat, ATextThatIsTooLongIsCutAndSaysSo) {
  CallRecord call = FailedCall();
  const std::string path = "/" + std::string(kLogPathBytesMax, 'p');
  call.path = path;
  const std::string cut = "/" + std::string(kLogPathBytesMax - 1, 'p') + "...(+1 bytes)";
  EXPECT_EQ(Parsed(LineOf(JsonLog(), call)).at("path"), cut);
  call.path = call.path.substr(1);  // just fits
  EXPECT_EQ(Parsed(LineOf(JsonLog(), call)).at("path"), call.path);

  http2::HeaderList request;
  request.Add("k", std::string(kLogMetadataBytesMax - 1, 'a'));
  request.Add("k", std::string(300, 'b'));
  call.request = &request;
  AccessLogOptions options = JsonLog();
  options.fields = {{Source::kMetadata, {}, "k", ""}};
  EXPECT_EQ(Parsed(LineOf(options, call)).at("k"), std::string(kLogMetadataBytesMax - 1, 'a') + ",...(+300 bytes)");
}

TEST(LineFormat, WhatAClientChoosesCannotBreakTheLine) {
  CallRecord call = FailedCall();
  const std::string path("/a\"b\\c\n\r\t\0\x1f\x7f\xc3\xa4 {}", 17);
  call.path = path;
  call.authority = path;
  call.endpoint = path;  // an address from a source, which the text format has as a word
  const std::string quoted = R"("/a\"b\\c\u000a\u000d\u0009\u0000\u001f\u007f\u00c3\u00a4 {}")";
  const std::string text = LineOf(TextLog(), call), json = LineOf(JsonLog(), call);
  EXPECT_NE(text.find(" " + quoted + " UNAVAILABLE"), std::string::npos) << text;
  EXPECT_NE(text.find(" endpoint=" + quoted + " "), std::string::npos) << text;
  EXPECT_NE(json.find("\"path\":" + quoted), std::string::npos);
  EXPECT_NE(json.find("\"authority\":" + quoted), std::string::npos);
}

TEST(LineFormat, AnyBytesMakeALineOfJson) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::string> kept;
    auto bytes = [&]() -> std::string_view {
      std::string& text = kept.emplace_back(random() % (seed % 10 == 0 ? 3000 : 40), ' ');
      for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() % 256 : 'a' + random() % 26);
      return text;
    };
    kept.reserve(20);
    http2::HeaderList request;
    CallRecord call = FailedCall();
    for (auto member : {&CallRecord::peer, &CallRecord::path, &CallRecord::authority, &CallRecord::client,
                        &CallRecord::route, &CallRecord::endpoint, &CallRecord::detail, &CallRecord::tries}) {
      call.*member = bytes();
    }
    request.Add("k", bytes());
    call.request = &request;
    AccessLogOptions options = JsonLog();
    for (size_t i = 0; i < std::size(kAccessFieldNames); ++i) {
      options.fields.push_back({.field = static_cast<AccessField>(i)});
    }
    options.fields.push_back({Source::kMetadata, {}, "k", ""});
    const std::string line = LineOf(options, call);
    for (const char c : line) ASSERT_TRUE(c >= 0x20 && c < 0x7f) << "seed " << seed;
    ASSERT_EQ(Parsed(line).size(), std::size(kAccessFieldNames) + 1) << "seed " << seed;
    // What is no ASCII stands there byte by byte, as U+0000 to U+00FF.
    std::string latin;
    for (const char c : call.path.substr(0, kLogPathBytesMax)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80) latin += static_cast<char>(0xc0 | byte >> 6);
      latin += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
    }
    ASSERT_TRUE(Parsed(line).at("path").starts_with(latin)) << "seed " << seed;
  }
}

TEST(LineText, NumbersAndTimes) {
  char text[64];
  auto millis = [&](int64_t nanos) { return std::string(text, PutMillis(text, nanos)); };
  EXPECT_EQ(millis(0), "0.000");
  EXPECT_EQ(millis(1'499), "0.001");
  EXPECT_EQ(millis(1'500), "0.002");
  EXPECT_EQ(millis(999'999'600), "1000.000");
  EXPECT_EQ(millis(INT64_MAX), "9223372036854.776");
  TimeText time;
  auto at = [&](int64_t seconds, int64_t nanos) {
    return std::string(text, time.Put(text, seconds * 1'000'000'000 + nanos));
  };
  EXPECT_EQ(at(0, 0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(at(951'782'399, 999'999'999), "2000-02-28T23:59:59.999Z");
  EXPECT_EQ(at(951'782'400, 0), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(at(951'782'400, 7'000'000), "2000-02-29T00:00:00.007Z");
  EXPECT_EQ(at(1'767'225'599, 500'000'000), "2025-12-31T23:59:59.500Z");
  EXPECT_EQ(at(-1, 1'000'000), "1969-12-31T23:59:59.001Z");
}

}  // namespace
}  // namespace sluice::proxy
