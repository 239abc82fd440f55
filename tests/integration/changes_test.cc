// The list changes a thousand times and the file is reloaded a hundred times under load: no call fails, none
// goes astray.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "support/backends.h"
#include "support/echo_call.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using admin::v1::ChangeEndpointsRequest;
using Clock = std::chrono::steady_clock;

constexpr int kChanges = 1000;
constexpr int kReloads = 100;
constexpr size_t kBackends = 8;
constexpr int kConnections = 4, kThreads = 8;

// When each endpoint may have been in the list: from just before the request that added it to just after the
// reply to the one that removed it.
class Membership {
 public:
  struct Span {
    Clock::time_point from, to;
  };
  void Joins(const std::string& name, Clock::time_point before) {
    spans_[name].push_back({before, Clock::time_point::max()});
  }
  void Leaves(const std::string& name, Clock::time_point after) { spans_[name].back().to = after; }
  bool IsIn(const std::string& name) const {
    const auto found = spans_.find(name);
    return found != spans_.end() && found->second.back().to == Clock::time_point::max();
  }
  // Whether a call that ran from `start` to `end` can have picked it.
  bool Allows(const std::string& name, Clock::time_point start, Clock::time_point end) const {
    const auto found = spans_.find(name);
    if (found == spans_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(),
                       [&](const Span& span) { return span.from <= end && span.to >= start; });
  }

 private:
  std::map<std::string, std::vector<Span>> spans_;
};

// Calls of the four kinds with changing keys over several connections until it is stopped.
class Load {
 public:
  struct Made {
    Clock::time_point start, end;
    std::string backend;
  };
  explicit Load(const std::string& target) {
    for (int i = 0; i < kConnections; ++i) stubs_.push_back(echo::v1::Echo::NewStub(Connect(target)));
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this, i] { Run(i); });
  }
  ~Load() { Stop(); }
  void Stop() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // After Stop().
  std::vector<Made> made;
  std::vector<std::string> failures;

 private:
  void Run(int thread) {
    std::vector<Made> mine;
    std::vector<std::string> failed;
    echo::v1::EchoRequest request;
    request.set_reply_count(2);
    request.set_payload("x");
    for (int i = 0; !stop_.load(std::memory_order_relaxed); ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kLongWait);
      context.AddMetadata("x-key", "key-" + std::to_string(i * kThreads + thread));
      const Clock::time_point start = Clock::now();
      const Reply reply = Call(stubs_[thread % kConnections].get(), kKinds[i % 4], &context, request, 2);
      if (!reply.status.ok()) failed.push_back(ToString(kKinds[i % 4]) + ": " + Describe(reply.status));
      mine.push_back({start, Clock::now(), reply.Trailer("echo-backend")});
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    std::lock_guard lock(mutex_);
    made.insert(made.end(), mine.begin(), mine.end());
    failures.insert(failures.end(), failed.begin(), failed.end());
  }

  std::vector<std::unique_ptr<echo::v1::Echo::Stub>> stubs_;
  std::atomic<bool> stop_{false};
  std::atomic<size_t> count_{0};
  std::mutex mutex_;  // made and failures, while threads run
  std::vector<std::thread> threads_;
};

class Changes : public testing::TestWithParam<std::string> {
 protected:
  Changes() : seed_(static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed())), random_(seed_) {
    RecordProperty("seed", static_cast<int>(seed_));
    config_.policy = GetParam();
    config_.endpoints = backends_.endpoints();
    config_.endpoints.resize(3);
    proxy_ = std::make_unique<Proxy>(config_);
    for (const auto& [name, address] : config_.endpoints) members_.Joins(name, Clock::now());
  }

  std::vector<size_t> Where(bool in_list) {
    std::vector<size_t> found;
    for (size_t i = 0; i < kBackends; ++i) {
      if (members_.IsIn(Name(i)) == in_list) found.push_back(i);
    }
    return found;
  }
  std::string Name(size_t i) { return backends_[i].service().name(); }

  // A random change that leaves at least one endpoint.
  void Change() {
    const std::vector<size_t> in = Where(true), out = Where(false);
    ChangeEndpointsRequest request;
    request.set_cluster("echo");
    auto* endpoint = request.add_endpoints();
    const uint32_t dice = random_() % 3;
    size_t index;
    if (dice == 0 && !out.empty()) {
      index = out[random_() % out.size()];
      request.set_kind(ChangeEndpointsRequest::KIND_ADD);
      endpoint->set_address(backends_.address(index));
      members_.Joins(Name(index), Clock::now());
    } else if (dice == 1 && in.size() > 1) {
      index = in[random_() % in.size()];
      request.set_kind(ChangeEndpointsRequest::KIND_REMOVE);
    } else {
      index = in[random_() % in.size()];
      request.set_kind(ChangeEndpointsRequest::KIND_REWEIGHT);
      endpoint->set_weight(0.5 + static_cast<double>(random_() % 100) / 50);
    }
    endpoint->set_name(Name(index));
    grpc::ClientContext context;
    admin::v1::ChangeEndpointsResponse response;
    const grpc::Status status = proxy_->admin().ChangeEndpoints(&context, request, &response);
    ASSERT_TRUE(status.ok()) << Describe(status) << " for " << request.ShortDebugString();
    EXPECT_GT(response.version(), version_);
    version_ = response.version();
    if (request.kind() == ChangeEndpointsRequest::KIND_REMOVE) members_.Leaves(Name(index), Clock::now());
  }

  // Another file each time: a different timeout, and every fourth time another list for the cluster too.
  void Reload(int number) {
    config_.route = {"timeout: " + std::to_string(60 + number % 7) + "s"};
    if (number % 4 == 0) {
      config_.endpoints = backends_.endpoints();
      std::shuffle(config_.endpoints.begin(), config_.endpoints.end(), random_);
      config_.endpoints.resize(2 + number % 3);
    }
    proxy_->Rewrite(config_);
    const Clock::time_point before = Clock::now();
    grpc::ClientContext context;
    admin::v1::ReloadResponse response;
    const grpc::Status status = proxy_->admin().Reload(&context, {}, &response);
    ASSERT_TRUE(status.ok()) << Describe(status);
    ASSERT_TRUE(response.errors().empty()) << response.errors(0);
    const std::vector<std::string> now_in = proxy_->EndpointNames();
    for (size_t i = 0; i < kBackends; ++i) {
      const bool is_in = std::find(now_in.begin(), now_in.end(), Name(i)) != now_in.end();
      if (is_in && !members_.IsIn(Name(i))) members_.Joins(Name(i), before);
      if (!is_in && members_.IsIn(Name(i))) members_.Leaves(Name(i), Clock::now());
    }
  }

  const uint32_t seed_;
  std::mt19937 random_;
  Backends backends_{kBackends};
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  Membership members_;
  uint64_t version_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Policies, Changes, testing::Values("ring_hash", "round_robin", "least_request"),
                         [](const auto& info) { return info.param; });

TEST_P(Changes, NoCallFailsAndEachGoesToAnEndpointOfTheList) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  Load load(proxy_->target());
  ASSERT_TRUE(WaitUntil([&] { return load.count() > 100; }));
  for (int i = 1; i <= kChanges; ++i) {
    ASSERT_NO_FATAL_FAILURE(Change());
    if (i % (kChanges / kReloads) == 0) {
      ASSERT_NO_FATAL_FAILURE(Reload(i / (kChanges / kReloads)));
    }
    // The load keeps pace: at least one call falls between any two changes.
    const size_t count = load.count();
    ASSERT_TRUE(WaitUntil([&] { return load.count() > count; }));
  }
  const size_t at_the_end = load.count();
  ASSERT_TRUE(WaitUntil([&] { return load.count() > at_the_end + 100; }));
  load.Stop();

  EXPECT_TRUE(load.failures.empty()) << load.failures.size() << " of " << load.made.size()
                                     << " calls failed, the first: " << load.failures.front();
  size_t astray = 0;
  for (const Load::Made& call : load.made) {
    if (!members_.Allows(call.backend, call.start, call.end)) ++astray;
  }
  EXPECT_EQ(astray, 0u) << "of " << load.made.size() << " calls went to an endpoint that was not in the list";
  RecordProperty("calls", static_cast<int>(load.made.size()));
  EXPECT_TRUE(WaitUntil([&] { return proxy_->Metric("sluice_calls_in_flight") == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return backends_.in_flight() == 0; }));
}

// The check above can fail: the same bookkeeping finds a call that went astray.
TEST(Membership, TellsACallThatWentAstray) {
  const Clock::time_point start = Clock::now();
  const auto at = [&](int ms) { return start + std::chrono::milliseconds(ms); };
  Membership members;
  members.Joins("a", at(0));
  members.Leaves("a", at(10));
  members.Joins("a", at(20));
  EXPECT_TRUE(members.Allows("a", at(5), at(30)));
  EXPECT_TRUE(members.Allows("a", at(9), at(15)));
  EXPECT_FALSE(members.Allows("a", at(11), at(19)));
  EXPECT_TRUE(members.Allows("a", at(19), at(21)));
  EXPECT_FALSE(members.Allows("b", at(0), at(30)));
}

TEST(ARemovedEndpoint, FinishesItsCallsInFlight) {
  Backends backends(2);
  ProxyConfig config;
  config.endpoints = backends.endpoints();
  Proxy proxy(config);
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  grpc::ClientContext context;
  auto stream = stub->BidiStream(&context);
  echo::v1::EchoRequest request;
  echo::v1::EchoReply reply;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&reply));
  const std::string name = reply.backend();

  ChangeEndpointsRequest change;
  change.set_cluster("echo");
  change.set_kind(ChangeEndpointsRequest::KIND_REMOVE);
  change.add_endpoints()->set_name(name);
  grpc::ClientContext admin_context;
  admin::v1::ChangeEndpointsResponse response;
  ASSERT_TRUE(proxy.admin().ChangeEndpoints(&admin_context, change, &response).ok());
  for (int i = 0; i < 50; ++i) {
    grpc::ClientContext other;
    other.AddMetadata("x-key", std::to_string(i));
    const Reply elsewhere = Call(stub.get(), Kind::kUnary, &other, request);
    ASSERT_TRUE(elsewhere.status.ok()) << Describe(elsewhere.status);
    EXPECT_NE(elsewhere.messages[0].backend(), name);
  }
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.backend(), name);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(ABadReload, ChangesNothingAndSaysWhere) {
  Backends backends(2);
  ProxyConfig config;
  config.endpoints = backends.endpoints();
  Proxy proxy(config);
  proxy.dir().Write("sluice.yaml", config.ToYaml() + "no_such_key: 1\n");
  grpc::ClientContext context;
  admin::v1::ReloadResponse response;
  ASSERT_TRUE(proxy.admin().Reload(&context, {}, &response).ok());
  ASSERT_FALSE(response.errors().empty());
  EXPECT_NE(response.errors(0).find("no_such_key"), std::string::npos) << response.errors(0);
  EXPECT_EQ(proxy.EndpointNames().size(), 2u);
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  grpc::ClientContext call;
  EXPECT_TRUE(Call(stub.get(), Kind::kUnary, &call, {}).status.ok());
}

}  // namespace
}  // namespace sluice::integration
