#include "proxy/access_log.h"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

using std::chrono::microseconds;

CallRecord Record() {
  CallRecord r;
  r.peer = "192.0.2.1:4000";
  r.authority = "users";
  r.client = "spiffe://d/a b";
  r.path = "/pkg.Users/Get";
  r.route = "r";
  r.cluster = "c";
  r.endpoint = "e";
  r.status = GrpcCode::kUnavailable;
  r.cause = "connect_failed";
  r.detail = "refused";
  r.attempts = 2;
  r.tries = "d:UNAVAILABLE:1.200ms,e:connect_failed:0.800ms";
  r.processed = "maybe";
  r.request_bytes = 10;
  r.response_bytes = 20;
  r.to_upstream = microseconds(1500);
  r.to_response = base::Nanos(-1);
  r.total = microseconds(2500);
  return r;
}

TEST(AccessLog, TextIsOneLineOfWords) {
  EXPECT_EQ(FormatText(Record(), "T"),
            "T 192.0.2.1:4000 \"/pkg.Users/Get\" UNAVAILABLE client=\"spiffe://d/a b\" route=r cluster=c endpoint=e "
            "attempts=2 tries=d:UNAVAILABLE:1.200ms,e:connect_failed:0.800ms in=10 out=20 "
            "upstream_ms=1.500 response_ms=- total_ms=2.500 cache=- waited=- limit=- cause=connect_failed "
            "processed=maybe detail=\"refused\"");
}

TEST(AccessLog, WhatIsMissingIsADash) {
  EXPECT_EQ(
      FormatText(CallRecord{}, "T"),
      "T - \"\" OK client=- route=- cluster=- endpoint=- attempts=0 tries=- in=0 out=0 upstream_ms=- response_ms=- "
      "total_ms=0.000 cache=- waited=- limit=- cause=- processed=- "
      "detail=\"\"");
}

TEST(AccessLog, JsonHasAllFieldsAndNullForPhasesNotReached) {
  EXPECT_EQ(
      FormatJson(Record(), "T"),
      R"({"time":"T","peer":"192.0.2.1:4000","client":"spiffe://d/a b","authority":"users","path":"/pkg.Users/Get","status":"UNAVAILABLE",)"
      R"("route":"r","cluster":"c","endpoint":"e","attempts":2,"tries":"d:UNAVAILABLE:1.200ms,e:connect_failed:0.800ms","request_bytes":10,"response_bytes":20,)"
      R"("upstream_ms":1.500,"response_ms":null,"total_ms":2.500,"cache":"","waited":"","limit":"","cause":"connect_failed","processed":"maybe","detail":"refused"})");
}

TEST(AccessLog, WhatAClientChoosesCannotBreakTheLine) {
  CallRecord r = Record();
  const std::string path("/a\"b\\c\n\r\t\0\x1f\x7f\xc3\xa4 {}", 17);
  r.path = path;
  r.authority = path;
  const std::string quoted = R"("/a\"b\\c\u000a\u000d\u0009\u0000\u001f\u007f\u00c3\u00a4 {}")";
  EXPECT_NE(FormatText(r, "T").find(quoted), std::string::npos) << FormatText(r, "T");
  EXPECT_NE(FormatJson(r, "T").find("\"path\":" + quoted), std::string::npos);
  EXPECT_NE(FormatJson(r, "T").find("\"authority\":" + quoted), std::string::npos);
  for (char c : FormatText(r, "T") + FormatJson(r, "T")) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
}

TEST(AccessLog, AFileThatCannotBeOpenedIsAnError) {
  auto log = AccessLog::Open({AccessLogOptions::Format::kJson, "/nonexistent/folder/log"});
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().kind, base::ErrorKind::kIo);
  EXPECT_TRUE(AccessLog::Open({AccessLogOptions::Format::kOff, "/nonexistent/folder/log"}).ok());
}

}  // namespace
}  // namespace sluice::proxy
