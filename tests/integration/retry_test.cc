// Retries through real gRPC clients and backends: a backend that answers UNAVAILABLE or cancels what it has done is not
// seen by calls that may be repeated, and no other call is executed twice. Executions are counted at the backends by a
// name that each call carries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "support/async_calls.h"
#include "support/proxy.h"
#include "support/raw_backend.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;

constexpr const char* kCallName = "x-call";

// How often each call was executed, over all backends.
class Executions {
 public:
  void Count(const std::string& call) {
    std::lock_guard lock(mutex_);
    ++counts_[call];
  }
  // How many calls were executed that many times.
  std::map<int, int> Times() const {
    std::lock_guard lock(mutex_);
    std::map<int, int> times;
    for (const auto& [call, count] : counts_) ++times[count];
    return times;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> counts_;
};

enum class Mode { kAnswers, kUnavailable, kCancels };  // kCancels: gRPC answers with the status CANCELLED

class Backend final : public echo::v1::Echo::Service {
 public:
  Backend(Executions& executions, Mode mode) : executions_(executions), mode_(mode) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  grpc::Status Unary(grpc::ServerContext* context, const echo::v1::EchoRequest* request,
                     echo::v1::EchoReply* reply) override {
    const auto name = context->client_metadata().find(kCallName);
    if (name != context->client_metadata().end()) {
      executions_.Count(std::string(name->second.data(), name->second.size()));
    }
    if (mode_ == Mode::kUnavailable) return {StatusCode::UNAVAILABLE, "sick"};
    if (mode_ == Mode::kCancels) context->TryCancel();
    reply->set_payload(request->payload());
    return grpc::Status::OK;
  }

  Executions& executions_;
  const Mode mode_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Outcome {
  std::map<StatusCode, int> codes;
  std::map<std::string, int> processed;  // of calls that did not end OK: the trailer, or ""
  std::map<int, int> executed;           // calls by how often they were executed
};

// `calls` calls, a few at a time, through a proxy in front of one backend of each mode.
Outcome Drive(const std::vector<Mode>& modes, const std::vector<std::string>& route, int calls = 1000) {
  Executions executions;
  std::vector<std::unique_ptr<Backend>> backends;
  ProxyConfig config;
  for (const Mode mode : modes) {
    backends.push_back(std::make_unique<Backend>(executions, mode));
    config.endpoints.emplace_back("b" + std::to_string(backends.size()), backends.back()->address());
  }
  config.policy = "round_robin";
  config.hash_by = "random";
  config.route = route;
  // Every backend takes its share to the end: how soon a sick one is passed over is a matter of the machine's speed.
  config.cluster = {"retry_budget: {ratio: 1}", "ejection: {enabled: false}"};
  Proxy proxy(config);
  Outcome out;
  AsyncCalls client(proxy.target());
  for (int done = 0; done < calls;) {
    std::vector<AsyncCallPtr> batch;
    for (int i = 0; i < 20; ++i, ++done) {
      CallSpec spec = Spec("payload");
      spec.metadata.emplace_back(kCallName, std::to_string(done));
      batch.push_back(client.Start(spec));
    }
    Await(batch);
    for (const AsyncCallPtr& call : batch) {
      ++out.codes[call->status().error_code()];
      if (!call->status().ok()) ++out.processed[call->reply().Trailer("sluice-processed")];
    }
  }
  out.executed = executions.Times();
  return out;
}

const std::vector<std::string> kAlsoCancelled = {
    "retry: {methods: [sluice.echo.v1.Echo/Unary], on: [UNAVAILABLE, CANCELLED]}"};
const std::vector<std::string> kMayRepeat = {"retry: {methods: [sluice.echo.v1.Echo/Unary]}"};
std::vector<Mode> OneOfFive(Mode bad) { return {bad, Mode::kAnswers, Mode::kAnswers, Mode::kAnswers, Mode::kAnswers}; }

TEST(Retry, ABackendThatAnswersUnavailableIsNotSeen) {
  const Outcome out = Drive(OneOfFive(Mode::kUnavailable), kMayRepeat);
  EXPECT_EQ(out.codes, (std::map<StatusCode, int>{{StatusCode::OK, 1000}}));
  EXPECT_EQ(out.executed.size(), 2u) << "some once, some twice";
  EXPECT_GE(out.executed.at(2), 150);
  EXPECT_EQ(out.executed.at(1) + out.executed.at(2), 1000);
}

TEST(Retry, ABackendThatCancelsWhatItHasDoneIsNotSeen) {
  const Outcome out = Drive(OneOfFive(Mode::kCancels), kAlsoCancelled);
  EXPECT_EQ(out.codes, (std::map<StatusCode, int>{{StatusCode::OK, 1000}}));
  EXPECT_GE(out.executed.at(2), 150);
}

TEST(Retry, WhatMayNotBeRepeatedIsExecutedOnceAndItsFailureSaysSo) {
  for (const Mode mode : {Mode::kUnavailable, Mode::kCancels}) {
    const Outcome out = Drive(OneOfFive(mode), {});
    EXPECT_EQ(out.executed, (std::map<int, int>{{1, 1000}}));
    const StatusCode code = mode == Mode::kCancels ? StatusCode::CANCELLED : StatusCode::UNAVAILABLE;
    EXPECT_GE(out.codes.at(code), 150);
    EXPECT_EQ(out.codes.at(StatusCode::OK) + out.codes.at(code), 1000);
    EXPECT_EQ(out.processed, (std::map<std::string, int>{{"", out.codes.at(code)}})) << "it is the backend's word";
  }
}

// A backend that works on each call and then resets its stream, beside one that answers.
TEST(Retry, AResetAfterTheWorkIsRepeatedOnlyWhereThatMayBe) {
  for (const bool may_repeat : {true, false}) {
    Executions executions;
    Backend good(executions, Mode::kAnswers);
    std::atomic<int> worked{0};
    RawBackend bad([&](RawPeer& peer) {
      if (!peer.Accept()) return;
      while (const auto frame = peer.Until([](const auto& f) { return f.type == raw::kHeaders; })) {
        ++worked;
        peer.Send(raw::Frame(raw::kRstStream, 0, frame->stream, raw::U32(raw::kInternalError)));
      }
    });
    ProxyConfig config;
    config.endpoints = {{"good", good.address()}, {"bad", bad.address()}};
    config.policy = "round_robin";
    config.hash_by = "random";
    if (may_repeat) config.route = kMayRepeat;
    config.cluster = {"retry_budget: {ratio: 1}"};
    Proxy proxy(config);
    AsyncCalls client(proxy.target());
    constexpr int kCalls = 200;
    int failed = 0;
    for (int i = 0; i < kCalls; ++i) {
      CallSpec spec = Spec("payload");
      spec.metadata.emplace_back(kCallName, std::to_string(i));
      const AsyncCallPtr call = client.Run(spec);
      if (call->status().ok()) continue;
      ++failed;
      EXPECT_EQ(call->status().error_code(), StatusCode::INTERNAL);
      EXPECT_EQ(call->reply().Trailer("sluice-reason"), "upstream_reset");
      EXPECT_EQ(call->reply().Trailer("sluice-processed"), "maybe");
    }
    EXPECT_EQ(executions.Times(), (std::map<int, int>{{1, kCalls - failed}}));
    EXPECT_GE(worked.load(), kCalls / 4);
    EXPECT_EQ(failed, may_repeat ? 0 : worked.load());
  }
}

// Two backends, one of them sick: half of all calls need another attempt, and the budget of a success each has it.
TEST(Retry, OneOfTwo) {
  const Outcome out = Drive({Mode::kUnavailable, Mode::kAnswers}, kMayRepeat);
  EXPECT_EQ(out.codes, (std::map<StatusCode, int>{{StatusCode::OK, 1000}}));
}

TEST(Retry, WhereAllBackendsFailTheLoadIsTheCallsAndTheReserve) {
  const Outcome out = Drive(std::vector<Mode>(3, Mode::kUnavailable), kMayRepeat);
  EXPECT_EQ(out.codes, (std::map<StatusCode, int>{{StatusCode::UNAVAILABLE, 1000}}));
  int executions = 0;
  for (const auto& [times, calls] : out.executed) executions += times * calls;
  EXPECT_GE(executions, 1030);
  EXPECT_LE(executions, 1000 + 30 * 30);  // 3 a second, in five minutes at most
}

// Two proxies in a row, both of which repeat.
TEST(Retry, TwoLayersDoNotMultiply) {
  Executions executions;
  Backend first(executions, Mode::kUnavailable), second(executions, Mode::kUnavailable);
  ProxyConfig inner;
  inner.endpoints = {{"b1", first.address()}, {"b2", second.address()}};
  inner.policy = "round_robin";
  inner.hash_by = "random";
  inner.route = kMayRepeat;
  Proxy near(inner), other(inner);
  ProxyConfig outer = inner;
  outer.endpoints = {{"p1", near.target()}, {"p2", other.target()}};
  Proxy proxy(outer);
  AsyncCalls client(proxy.target());
  for (int i = 0; i < 500; ++i) {
    CallSpec spec = Spec("payload");
    spec.metadata.emplace_back(kCallName, std::to_string(i));
    EXPECT_EQ(client.Run(spec)->status().error_code(), StatusCode::UNAVAILABLE);
  }
  int sent = 0;
  for (const auto& [times, calls] : executions.Times()) sent += times * calls;
  EXPECT_GE(sent, 500);
  EXPECT_LE(sent, 500 + 3 * 30 * 6);  // each of three reserves, in a minute at most
}

}  // namespace
}  // namespace sluice::integration
