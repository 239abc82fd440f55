// Error and Result: tokens that users filter by never change; a Result is one or the other.
#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace sluice::base {
namespace {

// What users have in dashboards and alerts. Lines may be added; changing one breaks them.
constexpr std::pair<ErrorKind, std::string_view> kReasons[] = {
    {ErrorKind::kInternal, "internal"},
    {ErrorKind::kInvalidArgument, "invalid_argument"},
    {ErrorKind::kNotFound, "not_found"},
    {ErrorKind::kConflict, "conflict"},
    {ErrorKind::kIo, "io"},
    {ErrorKind::kNoRoute, "no_route"},
    {ErrorKind::kNoEndpoint, "no_endpoint"},
    {ErrorKind::kConnectFailed, "connect_failed"},
    {ErrorKind::kConnectTimeout, "connect_timeout"},
    {ErrorKind::kConnectionLost, "connection_lost"},
    {ErrorKind::kPoisonCall, "poison_call"},
    {ErrorKind::kConnectionEnded, "connection_ended"},
    {ErrorKind::kPendingTimeout, "pending_timeout"},
    {ErrorKind::kUpstreamReset, "upstream_reset"},
    {ErrorKind::kUpstreamRefused, "upstream_refused"},
    {ErrorKind::kUpstreamProtocol, "upstream_protocol"},
    {ErrorKind::kUpstreamNoStatus, "upstream_no_status"},
    {ErrorKind::kDeadlineExceeded, "deadline"},
    {ErrorKind::kCancelled, "cancelled"},
    {ErrorKind::kQueueFull, "queue_full"},
    {ErrorKind::kDraining, "draining"},
    {ErrorKind::kMalformedRequest, "malformed_request"},
    {ErrorKind::kTooLarge, "too_large"},
    {ErrorKind::kBusy, "busy"},
    {ErrorKind::kRemoved, "removed"},
    {ErrorKind::kUpstreamCancelled, "upstream_cancelled"},
    {ErrorKind::kUpstreamOverloaded, "upstream_overloaded"},
    {ErrorKind::kRateLimited, "rate_limited"},
    {ErrorKind::kConcurrencyLimited, "concurrency_limited"},
    {ErrorKind::kQueueTime, "queue_time"},
    {ErrorKind::kDeadlineTooNear, "deadline_too_near"},
    {ErrorKind::kTooManyClients, "too_many_clients"},
    {ErrorKind::kUpstreamStalled, "upstream_stalled"},
    {ErrorKind::kTryTimeout, "try_timeout"},
    {ErrorKind::kMemoryLimited, "memory_limited"},
    {ErrorKind::kAccessDenied, "access_denied"},
    {ErrorKind::kJwtMissing, "jwt_missing"},
    {ErrorKind::kJwtInvalid, "jwt_invalid"},
    {ErrorKind::kFaultInjected, "fault_injected"},
    {ErrorKind::kLoop, "loop"},
};

TEST(Error, ReasonTokensAreStableAndDistinct) {
  std::set<std::string_view> seen;
  for (const auto& [kind, reason] : kReasons) {
    EXPECT_EQ(Reason(kind), reason);
    EXPECT_TRUE(seen.insert(reason).second) << reason;
    EXPECT_EQ(reason.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << reason;
  }
  // A kind without a line above falls through Reason's switch or is missing here.
  EXPECT_EQ(kErrorKinds, std::size(kReasons));
}

TEST(Error, SourcesHaveNames) {
  EXPECT_EQ(ToString(ErrorSource::kProxy), "proxy");
  EXPECT_EQ(ToString(ErrorSource::kDownstream), "downstream");
  EXPECT_EQ(ToString(ErrorSource::kUpstream), "upstream");
}

TEST(Error, TextHasKindSourceAndDetail) {
  EXPECT_EQ(MakeError(ErrorKind::kUpstreamReset, "stream 5", ErrorSource::kUpstream).ToString(),
            "upstream_reset (upstream): stream 5");
  EXPECT_EQ(MakeError(ErrorKind::kDraining, "").ToString(), "draining (proxy)");
}

TEST(Result, HoldsAValueOrAnError) {
  Result<int> value = 3;
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 3);
  Result<int> error = MakeError(ErrorKind::kNotFound, "x");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().kind, ErrorKind::kNotFound);
  Result<std::unique_ptr<int>> moved = std::make_unique<int>(4);
  std::unique_ptr<int> out = std::move(*moved);
  EXPECT_EQ(*out, 4);
  EXPECT_TRUE(Ok().ok());
  EXPECT_FALSE(Status(MakeError(ErrorKind::kIo, "")).ok());
}

TEST(ResultDeathTest, TheOtherSideIsABugOfOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Result<int> value = 3, error = MakeError(ErrorKind::kIo, "");
  EXPECT_DEATH((void)value.error(), "CHECK failed");
  EXPECT_DEATH((void)*error, "CHECK failed");
}

}  // namespace
}  // namespace sluice::base
