#include "proxy/call/retry_policy.h"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;

http2::HeaderList Fields(std::initializer_list<std::pair<const char*, const char*>> fields) {
  http2::HeaderList list;
  for (const auto& [name, value] : fields) list.Add(name, value);
  return list;
}

TEST(RetryPolicy, OnlyWhatNeverReachedABackendIsUnsentAndOnlyAResetOrLossIsInDoubt) {
  const RetryOptions options;
  const auto end = [&](ErrorKind kind) {
    const base::Error error = base::MakeError(kind, "");
    return EndOf(options, &error, GrpcCode::kUnknown);
  };
  for (size_t i = 0; i < base::kErrorKinds; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    AttemptEnd expected = AttemptEnd::kFinal;
    for (ErrorKind k :
         {ErrorKind::kConnectFailed, ErrorKind::kConnectTimeout, ErrorKind::kPendingTimeout, ErrorKind::kQueueFull}) {
      if (k == kind) expected = AttemptEnd::kUnsent;
    }
    for (ErrorKind k : {ErrorKind::kConnectionLost, ErrorKind::kConnectionEnded, ErrorKind::kUpstreamReset,
                        ErrorKind::kUpstreamProtocol, ErrorKind::kUpstreamCancelled, ErrorKind::kUpstreamOverloaded,
                        ErrorKind::kUpstreamStalled, ErrorKind::kTryTimeout}) {
      if (k == kind) expected = AttemptEnd::kInDoubt;
    }
    if (kind == ErrorKind::kDraining) expected = AttemptEnd::kLeft;
    if (kind == ErrorKind::kUpstreamRefused) expected = AttemptEnd::kRefused;
    EXPECT_EQ(end(kind), expected) << base::Reason(kind);
  }
}

TEST(RetryPolicy, AStatusIsTriedAgainWhereItIsListed) {
  RetryOptions options;
  for (size_t code = 0; code < kGrpcCodes; ++code) {
    EXPECT_EQ(EndOf(options, nullptr, static_cast<GrpcCode>(code)),
              code == 14 ? AttemptEnd::kInDoubt : AttemptEnd::kFinal)
        << code;
  }
  options.on = 1u << 8 | 1u << 16;
  EXPECT_EQ(EndOf(options, nullptr, GrpcCode::kUnavailable), AttemptEnd::kFinal);
  EXPECT_EQ(EndOf(options, nullptr, GrpcCode::kResourceExhausted), AttemptEnd::kInDoubt);
  EXPECT_EQ(EndOf(options, nullptr, GrpcCode::kUnauthenticated), AttemptEnd::kInDoubt);
  EXPECT_EQ(EndOf(options, nullptr, GrpcCode::kOk), AttemptEnd::kFinal);
}

TEST(RetryPolicy, MethodsMayBeRepeatedAsTheRouteSays) {
  using Methods = RetryOptions::Methods;
  RetryOptions options;
  options.paths = {"/p.S/Get", "/p.S/List"};
  const auto may = [&](const char* path) {
    return MayRepeat(options, Canonicalize(Fields({{":path", path}}), PathRule::kGrpc));
  };
  for (Methods methods : {Methods::kDeclared, Methods::kListed}) {
    options.methods = methods;
    EXPECT_TRUE(may("/p.S/Get"));
    EXPECT_TRUE(may("/p.S/List"));
    EXPECT_FALSE(may("/p.S/Gett"));
    EXPECT_FALSE(may("/p.S/Add"));
    EXPECT_FALSE(MayRepeat(options, Canonicalize(Fields({}), PathRule::kGrpc)));
  }
  options.methods = Methods::kAll;
  EXPECT_TRUE(may("/p.S/Add"));
  options.methods = Methods::kNone;
  EXPECT_FALSE(may("/p.S/Get"));
}

TEST(RetryPolicy, BackOffDoublesToItsMaximumWithAFifthOfJitter) {
  RetryOptions options;
  options.backoff_base = milliseconds(100);
  options.backoff_max = milliseconds(500);
  base::Random random(1);
  const int64_t centres[] = {100, 200, 400, 500, 500, 500};
  for (uint32_t n = 0; n < 6; ++n) {
    base::Nanos least = base::Nanos::max(), most{0};
    for (int i = 0; i < 1000; ++i) {
      const base::Nanos wait = Backoff(options, n, random);
      least = std::min(least, wait);
      most = std::max(most, wait);
    }
    const base::Nanos centre = milliseconds(centres[n]);
    EXPECT_GE(least, centre * 8 / 10) << n;
    EXPECT_LE(least, centre * 82 / 100) << n;
    EXPECT_LE(most, centre * 12 / 10) << n;
    EXPECT_GE(most, centre * 118 / 100) << n;
  }
  EXPECT_LE(Backoff(options, UINT32_MAX, random), milliseconds(600));
  options.backoff_base = options.backoff_max = std::chrono::hours(1);
  EXPECT_GE(Backoff(options, 63, random), std::chrono::minutes(48));
}

TEST(RetryPolicy, PushbackIsADelayOrAStop) {
  const auto read = [](const char* value) { return ReadPushback(Fields({{"grpc-retry-pushback-ms", value}})); };
  EXPECT_FALSE(ReadPushback(Fields({})).stop);
  EXPECT_FALSE(ReadPushback(Fields({})).delay);
  EXPECT_EQ(read("0").delay, milliseconds(0));
  EXPECT_EQ(read("1500").delay, milliseconds(1500));
  EXPECT_FALSE(read("1500").stop);
  EXPECT_EQ(read("60000").delay, kPushbackMax);
  for (const char* text : {"-1", "", "x", "1.5", "99999999999", " 1", "60001"}) {
    EXPECT_TRUE(read(text).stop) << text;
    EXPECT_FALSE(read(text).delay) << text;
  }
}

TEST(RetryPolicy, PreviousAttemptsAreANumber) {
  const auto read = [](const char* value) { return PreviousAttempts(Fields({{"grpc-previous-rpc-attempts", value}})); };
  EXPECT_EQ(PreviousAttempts(Fields({})), 0u);
  EXPECT_EQ(read("2"), 2u);
  EXPECT_EQ(read("4294967295"), 1'000'000u);
  for (const char* text : {"", "-1", "x", "4294967296"}) EXPECT_EQ(read(text), 0u) << text;
}

}  // namespace
}  // namespace sluice::proxy
