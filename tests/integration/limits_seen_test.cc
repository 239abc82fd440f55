// Waits and refusals as people see them: in the access log, in trailers, through sluicectl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/limit_checks.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

// What a call waited for and what refused it, as its access log line and its trailers tell.
class WhatACallWaitedFor : public testing::Test {
 protected:
  void Start(std::vector<std::string> cluster, std::vector<std::string> route = {}) {
    config_ = To({&backend_});
    config_.top.push_back("access_log: {format: text, path: \"" + dir_.File("access.log") + "\"}");
    config_.cluster = std::move(cluster);
    config_.route.insert(config_.route.end(), route.begin(), route.end());
    proxy_ = std::make_unique<Proxy>(config_);
    calls_ = std::make_unique<AsyncCalls>(proxy_->target());
  }
  // The line of the call that ended as the `number`th, from 1.
  std::string Line(size_t number) {
    std::vector<std::string> lines;
    EXPECT_TRUE(WaitUntil([&] {
      lines.clear();
      std::istringstream text(dir_.Read("access.log"));
      for (std::string line; std::getline(text, line) && !text.eof();) lines.push_back(line);
      return lines.size() >= number;
    })) << lines.size()
        << " lines";
    return lines.size() >= number ? lines[number - 1] : "";
  }
  // "cluster/echo/rate=3.200ms,..." taken apart.
  static std::vector<std::pair<std::string, double>> Waits(const std::string& text) {
    std::vector<std::pair<std::string, double>> waits;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      const size_t equals = part.find('=');
      EXPECT_NE(equals, std::string::npos) << text;
      EXPECT_TRUE(part.size() > 2 && part.substr(part.size() - 2) == "ms") << text;
      waits.emplace_back(part.substr(0, equals), std::strtod(part.c_str() + equals + 1, nullptr));
    }
    return waits;
  }
  static std::string Field(const std::string& line, const std::string& name) {
    const size_t at = line.find(" " + name + "=");
    if (at == std::string::npos) return "no field " + name + " in: " + line;
    const size_t from = at + name.size() + 2;
    return line.substr(from, line.find(' ', from) - from);
  }
  uint64_t Waiting(const std::string& limit) { return Operator(*proxy_).Waiting(limit); }

  GateBackend backend_{"echo-1"};
  TempDir dir_;
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<AsyncCalls> calls_;
};

TEST_F(WhatACallWaitedFor, IsNothingOnAQuietDay) {
  Start({"concurrency: {max: 5, queue_time: 0}", "rate_limit: {rate: 1000, burst: 10, queue_time: 0}"});
  const AsyncCallPtr call = calls_->Run(Spec("x"));
  EXPECT_TRUE(call->status().ok());
  EXPECT_EQ(call->reply().trailers.count("sluice-waited"), 0u);
  EXPECT_EQ(Field(Line(1), "waited"), "-");
  EXPECT_EQ(Field(Line(1), "limit"), "-");
}

TEST_F(WhatACallWaitedFor, IsToldInOrderWithTimes) {
  Start({"concurrency: {max: 1, queue_time: 0}", "rate_limit: {rate: 0.001, burst: 1, queue_time: 0}"},
        {"rate_limit: {rate: 0.001, burst: 1, queue_time: 0}"});
  backend_.Close();
  CallSpec spec = Spec("x");
  spec.timeout = kForever;
  const AsyncCallPtr first = calls_->Start(spec);
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  const AsyncCallPtr second = calls_->Start(spec);
  ASSERT_TRUE(WaitUntil([&] { return Waiting("route/main/rate") == 1; }));
  Operator(*proxy_).SetRate("route/main/rate", 0, 1);
  ASSERT_TRUE(WaitUntil([&] { return Waiting("cluster/echo/rate") == 1; }));
  Operator(*proxy_).SetRate("cluster/echo/rate", 0, 1);
  ASSERT_TRUE(WaitUntil([&] { return Waiting("cluster/echo/concurrency") == 1; }));
  backend_.Open();
  Await({first, second});
  ASSERT_TRUE(second->status().ok()) << Describe(second->status());
  const std::string told = second->reply().Trailer("sluice-waited");
  const auto waits = Waits(told);
  ASSERT_EQ(waits.size(), 3u) << told;
  EXPECT_EQ(waits[0].first, "route/main/rate");
  EXPECT_EQ(waits[1].first, "cluster/echo/rate");
  EXPECT_EQ(waits[2].first, "cluster/echo/concurrency");
  double sum = 0;
  for (const auto& [name, millis] : waits) {
    EXPECT_GT(millis, 0) << name;
    sum += millis;
  }
  EXPECT_LE(sum, Millis(second->end() - second->start()));
  EXPECT_EQ(Field(Line(2), "waited"), told);
  EXPECT_EQ(Field(Line(1), "waited"), "-");
}

TEST_F(WhatACallWaitedFor, IsTheOneWhoseQueueWasFull) {
  Start({"concurrency: {max: 1, queue: 1, queue_time: 0}"});
  backend_.Close();
  const AsyncCallPtr first = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  const AsyncCallPtr second = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return Waiting("cluster/echo/concurrency") == 1; }));
  ExpectRefused(*calls_->Run(Spec("x")), "concurrency_limited", "cluster/echo/concurrency");
  const std::string line = Line(1);
  EXPECT_EQ(Field(line, "limit"), "cluster/echo/concurrency");
  EXPECT_EQ(Field(line, "cause"), "concurrency_limited");
  EXPECT_EQ(Field(line, "upstream_ms"), "-");
  EXPECT_THAT(line, HasSubstr("RESOURCE_EXHAUSTED"));
  backend_.Open();
  Await({first, second});
}

TEST_F(WhatACallWaitedFor, IsTheOneInWhoseQueueTheDeadlinePassed) {
  Start({"concurrency: {max: 1, queue_time: 0}"});
  backend_.Close();
  const AsyncCallPtr first = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  // The route's deadline: at its own one, a client goes away before the proxy has looked at the time.
  ProxyConfig config = config_;
  config.route.push_back("timeout: 100ms");
  Operator(*proxy_).ReloadWith(config);
  const AsyncCallPtr second = calls_->Run(Spec("x"));
  EXPECT_EQ(second->status().error_code(), StatusCode::DEADLINE_EXCEEDED) << Describe(second->status());
  EXPECT_EQ(second->reply().Trailer("sluice-limit"), "cluster/echo/concurrency");
  const std::string line = Line(1);
  EXPECT_EQ(Field(line, "cause"), "deadline");
  EXPECT_EQ(Field(line, "limit"), "cluster/echo/concurrency");
  const auto waits = Waits(Field(line, "waited"));
  ASSERT_EQ(waits.size(), 1u) << line;
  EXPECT_EQ(waits[0].first, "cluster/echo/concurrency");
  EXPECT_GE(waits[0].second, 90);
  EXPECT_FALSE(first->done());
  backend_.Open();
  Await({first});
}

TEST_F(WhatACallWaitedFor, IsTheOneInWhoseQueueItsClientLeftIt) {
  Start({"concurrency: {max: 1, queue_time: 0}"});
  backend_.Close();
  const AsyncCallPtr first = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  const AsyncCallPtr second = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return Waiting("cluster/echo/concurrency") == 1; }));
  second->Cancel();
  const auto waits = Waits(Field(Line(1), "waited"));
  ASSERT_EQ(waits.size(), 1u) << Line(1);
  EXPECT_EQ(waits[0].first, "cluster/echo/concurrency");
  EXPECT_EQ(Field(Line(1), "cause"), "cancelled");
  backend_.Open();
  Await({first, second});
}

TEST(Sluicectl, ShowsAndChangesLimits) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.cluster = {"concurrency: {max: 2, queue: 10, queue_time: 0}",
                    "rate_limit: {rate: 0.5, burst: 100, queue_time: 0}"};
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  backend.Close();
  const auto made = calls.Start(Spec("x"), 5);
  ASSERT_TRUE(WaitUntil([&] { return person.Waiting("cluster/echo/concurrency") == 3; }));
  Finished shown = person.Ctl({"limits"});
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("cluster/echo/concurrency"));
  EXPECT_THAT(shown.output, HasSubstr("route/main/client_rate"));
  shown = person.Ctl({"--json", "limits"});
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("\"waiting\""));

  EXPECT_EQ(person.Ctl({"limit", "set", "cluster/echo/concurrency", "--max", "5"}).code, 0);
  ASSERT_TRUE(WaitUntil([&] { return backend.held() == 5; }));
  EXPECT_EQ(person.Ctl({"limit", "set", "cluster/echo/rate", "--rate", "7.5", "--burst", "9"}).code, 0);
  EXPECT_DOUBLE_EQ(person.Limit("cluster/echo/rate").rate().rate(), 7.5);
  EXPECT_EQ(person.Limit("cluster/echo/rate").rate().burst(), 9u);
  EXPECT_EQ(person.Ctl({"limit", "reset", "cluster/echo/rate"}).code, 0);
  EXPECT_DOUBLE_EQ(person.Limit("cluster/echo/rate").rate().rate(), 0.5);
  const Finished wrong = person.Ctl({"limit", "set", "cluster/none/rate", "--rate", "1"});
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("cluster/none/rate"));
  backend.Open();
  Await(made);
}

}  // namespace
}  // namespace sluice::integration
