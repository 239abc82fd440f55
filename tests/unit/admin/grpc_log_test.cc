// gRPC's own lines: in the log, bounded, and harmless to read.
#include "admin/grpc_log.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/captured_log.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

TEST(GrpcLog, LinesOfStrangersAreBoundedAndCounted) {
  test::CapturedLog log;
  RouteGrpcLog();
  constexpr int kHandshakes = 1000;
  for (int i = 0; i < kHandshakes; ++i) gpr_log("/a/b/ssl.cc", 7, GPR_LOG_SEVERITY_ERROR, "handshake %d \x1b[31m", i);
  gpr_log("/a/b/ssl.cc", 8, GPR_LOG_SEVERITY_DEBUG, "only if it is asked for");
  UnrouteGrpcLog();
  const std::string text = log.Take();
  EXPECT_THAT(text, HasSubstr("warning gRPC: handshake 0 ?[31m (ssl.cc:7)"));
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 1);
  EXPECT_LE(lines, 10) << text;
}

}  // namespace
}  // namespace sluice::admin
