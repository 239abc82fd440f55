// EndpointPoolTest: one worker's pool of an endpoint in a net in memory, and calls that wait for its connections.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/timer_wheel.h"
#include "support/fake_net.h"
#include "support/h2_harness.h"
#include "support/manual_worker.h"
#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

using test::FakeHost;

// One call that waits for a connection and opens a stream on it.
struct Caller final : EndpointPool::Waiter {
  Caller(std::string n, std::vector<std::string>& l, http2::ConnectionContext& context, h2::Fields r)
      : name(std::move(n)), log(l), interns(context.interns), request(std::move(r)), since(context.worker.now()) {}
  ~Caller() {
    if (stream != nullptr) stream->Release();
  }
  void OnConnection(http2::Connection& connection) override {
    log.push_back(name + " connection");
    stream = connection.Open(h2::List(interns, request), false, recorder);
  }
  void OnNoConnection(const base::Error& error) override {
    log.push_back(name + " " + std::string(base::Reason(error.kind)));
  }
  base::TimePoint WaitsSince() const override { return since; }
  std::string name;
  std::vector<std::string>& log;
  http2::InternTable& interns;
  const h2::Fields request;
  const base::TimePoint since;
  http2::Stream* stream = nullptr;
  h2::Recorder recorder{0, log};
};

class EndpointPoolTest : public ::testing::Test {
 public:
  EndpointPool& Pool() {
    if (!context) {
      context.reset(new http2::ConnectionContext{time.worker, {}, {}, net.Dial()});
      set.emplace(*context);
      endpoint = std::make_shared<Endpoint>("c", "e", *net::Address::Parse("10.0.0.1:1"),
                                            std::make_shared<ClusterOptions>(options), std::make_shared<ClusterLoad>(1),
                                            1, registry);
    }
    return *set->Get(endpoint, endpoint->options(), feedback);
  }
  // A call as proxy::Call makes it: at once if there is room, else it waits.
  Caller& NewCall(const std::string& name) {
    EndpointPool& pool = Pool();
    callers.push_back(std::make_unique<Caller>(name, log, *context, request));
    Caller& caller = *callers.back();
    if (http2::Connection* connection = pool.Ready())
      caller.OnConnection(*connection);
    else if (!pool.Wait(caller))
      log.push_back(name + " full");
    return caller;
  }
  void Run() {
    do time.Run();
    while (net.Pump());
  }
  void Advance(base::Nanos by) {
    time.clock.Advance(by);
    Run();
  }
  std::vector<std::string> Log() { return std::exchange(log, {}); }
  void TearDown() override {
    callers.clear();
    Run();
    if (set) set->CloseAll();
    Run();
    time.runtime.Shutdown();
    EXPECT_EQ(endpoint->metrics().connections->Value(), 0);
    set.reset();
  }

  using Strings = std::vector<std::string>;
  ClusterOptions options;
  h2::Fields request = h2::GrpcRequest();
  test::ManualWorker time;
  metrics::Registry registry{1};
  test::FakeNet net{time.worker};
  FakeHost& host = net.host("10.0.0.1:1");
  std::shared_ptr<Endpoint> endpoint;
  std::shared_ptr<Feedback> feedback;
  std::unique_ptr<http2::ConnectionContext> context;
  std::optional<PoolSet> set;
  std::vector<std::string> log;
  std::vector<std::unique_ptr<Caller>> callers;
};

}  // namespace sluice::upstream
