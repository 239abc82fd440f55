// Audit: what a caller writes stays inside its field of its line.
#include "admin/audit.h"

#include <gtest/gtest.h>

#include "sluice/admin/v1/admin.pb.h"

namespace sluice::admin {
namespace {

TEST(Audit, TextOfACallerCannotLeaveItsField) {
  EXPECT_EQ(AuditText("plain text, =@/:"), "plain text, =@/:");
  EXPECT_EQ(AuditText("a\nb\rc\x1b[1m\x7f\"d\xc3\xa4"), "a?b?c?[1m??d??");
  EXPECT_EQ(AuditText(std::string(kAuditTextBytesMax, 'x')), std::string(kAuditTextBytesMax, 'x'));
  EXPECT_EQ(AuditText(std::string(kAuditTextBytesMax + 1, 'x')), std::string(kAuditTextBytesMax, 'x') + "...");
}

TEST(Audit, ALineNamesTheClientTheRequestAndItsResult) {
  Caller caller;
  caller.has_certificate = true;
  caller.names.uris = {"spiffe://corp/ops"};
  caller.peer = "ipv4:10.0.0.1:4711";
  EXPECT_EQ(AuditLine(caller, "Drain", "5000ms", "ok"),
            "audit: who=\"spiffe://corp/ops\" peer=\"ipv4:10.0.0.1:4711\" method=Drain what=\"5000ms\" result=\"ok\"");
  Caller local;
  local.peer = "unix:";
  EXPECT_EQ(AuditLine(local, "Stop", "x\ny", "a\"b"),
            "audit: who=\"unix:\" peer=\"unix:\" method=Stop what=\"x?y\" result=\"a?b\"");
}

TEST(Audit, ARequestInAFewWords) {
  v1::ChangeEndpointsRequest change;
  change.set_cluster("users");
  change.set_kind(v1::ChangeEndpointsRequest::KIND_ADD);
  v1::EndpointSpec& spec = *change.add_endpoints();
  spec.set_name("c");
  spec.set_address("10.0.0.7:1");
  spec.set_weight(2.5);
  change.add_endpoints()->set_name("d");
  EXPECT_EQ(Summary(change), "users KIND_ADD c=10.0.0.7:1@2.5 d");
  v1::EndpointSpec& nameless = *change.add_endpoints();
  nameless.set_address("127.0.0.1:9");
  EXPECT_EQ(Summary(change), "users KIND_ADD c=10.0.0.7:1@2.5 d 127.0.0.1:9");
  change.set_preview(true);
  for (int i = 0; i < 4096; ++i) change.add_endpoints()->set_name(std::string(100, 'n'));
  EXPECT_LT(Summary(change).size(), kAuditTextBytesMax + 200);
  v1::AddFaultRequest fault;
  fault.set_target("users");
  fault.set_delay_ms(100);
  fault.set_status("UNAVAILABLE");
  fault.set_percent(2.5);
  fault.set_for_ms(60'000);
  EXPECT_EQ(Summary(fault), "users delay=100ms abort=UNAVAILABLE percent=2.5 for=60000ms");
  fault = {};
  fault.set_target("users");
  fault.set_reset_after(0);
  EXPECT_EQ(Summary(fault), "users reset_after=0 for=0ms");
  v1::RemoveFaultRequest removed;
  removed.set_id(3);
  EXPECT_EQ(Summary(removed), "3");
  v1::ChangeLimitRequest limit;
  limit.set_name("process/concurrency");
  limit.set_max(7);
  limit.set_queue_max(0);
  EXPECT_EQ(Summary(limit), "process/concurrency max=7 queue=0");
  limit = {};
  limit.set_name("n");
  limit.set_reset(true);
  EXPECT_EQ(Summary(limit), "n reset");
  v1::PurgeCacheRequest purge;
  EXPECT_EQ(Summary(purge), "all");
  purge.set_service("p.S");
  purge.set_method("M");
  purge.set_key("secret");
  EXPECT_EQ(Summary(purge), "p.S/M one key");
  v1::DrainRequest drain;
  EXPECT_EQ(Summary(drain), "");
  drain.set_timeout_ms(5);
  EXPECT_EQ(Summary(drain), "5ms");
  drain.set_delay_ms(2);
  EXPECT_EQ(Summary(drain), "5ms delay 2ms");
  drain.clear_timeout_ms();
  EXPECT_EQ(Summary(drain), "delay 2ms");
}

}  // namespace
}  // namespace sluice::admin
