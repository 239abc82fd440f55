// What the tests of limits share: a proxy's configuration, and what a refused call must carry.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/async_calls.h"
#include "support/gate_backend.h"
#include "support/proxy_config.h"

namespace sluice::integration {

inline constexpr std::chrono::milliseconds kForever = std::chrono::hours(2);  // no deadline

inline ProxyConfig To(const std::vector<const GateBackend*>& backends) {
  ProxyConfig config;
  for (const GateBackend* backend : backends) config.endpoints.push_back(backend->endpoint());
  config.route = {"name: main"};
  config.top = {"workers: 2"};
  return config;
}

inline double Millis(SteadyClock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// What a refused call must carry.
inline void ExpectRefused(const AsyncCall& call, const std::string& reason, const std::string& limit) {
  ASSERT_TRUE(call.done());
  EXPECT_EQ(call.status().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << Describe(call.status());
  EXPECT_EQ(call.reply().Trailer("sluice-reason"), reason);
  EXPECT_EQ(call.reply().Trailer("sluice-limit"), limit);
  const std::string pushback = call.reply().Trailer("grpc-retry-pushback-ms");
  ASSERT_FALSE(pushback.empty());
  EXPECT_THAT(pushback, testing::MatchesRegex("[0-9]+"));
  EXPECT_GE(std::atoi(pushback.c_str()), 1);
}

}  // namespace sluice::integration
