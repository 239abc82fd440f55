// Two clients at a saturated limit, one of which sends a hundred times as many calls: the client connections take
// turns, so the modest one gets half of the slots when it asks for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "support/async_calls.h"
#include "support/gate_backend.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;

constexpr size_t kSlots = 10;
constexpr size_t kModest = 10, kGreedy = 100 * kModest;

struct Where {
  const char* name;
  bool process;     // a limit of the process, not of the cluster
  const char* key;  // in the configuration
  const char* limit;
};
void PrintTo(const Where& where, std::ostream* out) { *out << where.name; }

class TwoClients : public testing::TestWithParam<Where> {
 protected:
  void Start(size_t queue) {
    ProxyConfig config;
    config.endpoints = {backend_.endpoint()};
    config.listener = {"http2: {concurrent_streams_max: 4000}"};
    config.top = {"workers: 2"};
    (GetParam().process ? config.top : config.cluster)
        .push_back(std::string(GetParam().key) + ": {max: " + std::to_string(kSlots) +
                   ", queue: " + std::to_string(queue) + ", queue_time: 0}");
    proxy_ = std::make_unique<Proxy>(config);
    modest_ = std::make_unique<AsyncCalls>(proxy_->target());
    greedy_ = std::make_unique<AsyncCalls>(proxy_->target());
  }
  uint64_t Waiting() { return Operator(*proxy_).Waiting(GetParam().limit); }
  // All slots are taken and `waiting` calls wait.
  bool Stands(size_t waiting) {
    return WaitUntil([&] { return backend_.held() == kSlots && Waiting() == waiting; });
  }

  GateBackend backend_{"echo-1"};
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<AsyncCalls> modest_, greedy_;
};

// In steps: a call ends, the next is let in, its client has asked for another. No clock decides which client gets a
// slot.
TEST_P(TwoClients, ShareASaturatedLimitEvenly) {
  Start(2000);
  backend_.Close();
  ClosedLoop greedy(*greedy_, Spec("x", "greedy"), kGreedy);
  ASSERT_TRUE(Stands(kGreedy - kSlots)) << backend_.held() << " " << Waiting();
  ClosedLoop modest(*modest_, Spec("x", "modest"), kModest);
  const size_t waiting = kGreedy + kModest - kSlots;
  ASSERT_TRUE(Stands(waiting)) << backend_.held() << " " << Waiting();

  constexpr size_t kSteps = 200;
  uint64_t modest_slots = 0, slots = 0;
  for (size_t step = 0; step < kSteps; ++step) {
    backend_.Release(1);
    ASSERT_TRUE(Stands(waiting)) << "step " << step << ": " << backend_.held() << " " << Waiting();
    if (step < 2 * kSlots) continue;  // until the first round's calls have gone
    modest_slots += backend_.held("modest");
    slots += kSlots;
  }
  const double share = static_cast<double>(modest_slots) / static_cast<double>(slots);
  std::cout << "[  figures ] " << GetParam().name << ": the modest client had " << 100 * share << "% of the slots\n";
  EXPECT_GE(share, 0.45);
  EXPECT_LE(share, 0.55);
  backend_.Open();
  greedy.Stop();
  modest.Stop();
  EXPECT_THAT(greedy.failures(), testing::IsEmpty());
  EXPECT_THAT(modest.failures(), testing::IsEmpty());
}

// The queue is full of the greedy client's calls: the modest one's push out the newest of them.
TEST_P(TwoClients, AFullQueueMakesRoomForTheModestOne) {
  constexpr size_t kQueue = 100;
  Start(kQueue);
  backend_.Close();
  const auto many = greedy_->Start(Spec("x", "greedy"), kSlots + kQueue);
  ASSERT_TRUE(Stands(kQueue)) << backend_.held() << " " << Waiting();
  const AsyncCallPtr refused = greedy_->Run(Spec("x", "greedy"));
  EXPECT_EQ(refused->status().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused->reply().Trailer("sluice-limit"), GetParam().limit);

  const auto few = modest_->Start(Spec("x", "modest"), kModest);
  ASSERT_TRUE(WaitUntil([&] { return Ended(many, StatusCode::RESOURCE_EXHAUSTED) == kModest; })) << Waiting();
  for (const AsyncCallPtr& call : many) {
    if (!call->done()) continue;
    EXPECT_EQ(call->reply().Trailer("sluice-limit"), GetParam().limit);
    EXPECT_FALSE(call->reply().Trailer("grpc-retry-pushback-ms").empty());
  }
  ASSERT_TRUE(Stands(kQueue));
  EXPECT_EQ(Done(few), 0u) << "all of the modest client's wait";

  // Every second slot that becomes free is the modest one's.
  for (size_t i = 0; i < 2 * kModest; ++i) {
    backend_.Release(1);
    ASSERT_TRUE(Stands(kQueue - i - 1)) << i;
  }
  size_t came = 0;
  for (const GateBackend::Arrival& arrival : backend_.arrivals()) came += arrival.client == "modest";
  EXPECT_EQ(came, kModest);
  backend_.Open();
  Await(few);
  Await(many);
  EXPECT_EQ(Ended(few, StatusCode::OK), kModest);
}

const Where kWheres[] = {
    {"Cluster", false, "concurrency", "cluster/echo/concurrency"},
    {"Endpoint", false, "endpoint_concurrency", "cluster/echo/endpoint_concurrency"},
    {"Process", true, "concurrency", "process/concurrency"},
};
INSTANTIATE_TEST_SUITE_P(Limits, TwoClients, testing::ValuesIn(kWheres),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::integration
