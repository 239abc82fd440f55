#include "support/async_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "support/wait_until.h"

namespace sluice::integration {

namespace {

std::multimap<std::string, std::string> Copy(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  std::multimap<std::string, std::string> copy;
  for (const auto& [name, value] : metadata) {
    copy.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  return copy;
}

}  // namespace

CallSpec Spec(const std::string& payload, const std::string& client) {
  CallSpec spec;
  spec.request.set_payload(payload);
  if (!client.empty()) spec.metadata.emplace_back("x-client", client);
  return spec;
}

AsyncCalls::AsyncCalls(const std::string& target) : stub_(echo::v1::Echo::NewStub(Connect(target))) {}

AsyncCalls::~AsyncCalls() {
  std::unique_lock lock(mutex_);
  // TryCancel may run the end of a call at once, which takes the mutex.
  const std::map<AsyncCall*, AsyncCallPtr> left = under_way_;
  lock.unlock();
  for (const auto& [call, owner] : left) call->Cancel();
  lock.lock();
  ended_.wait(lock, [this] { return under_way_.empty(); });
}

AsyncCallPtr AsyncCalls::Start(const CallSpec& spec, std::function<void(const AsyncCall&)> done) {
  auto call = std::make_shared<AsyncCall>();
  call->request_ = spec.request;
  for (const auto& [name, value] : spec.metadata) call->context_.AddMetadata(name, value);
  if (spec.timeout <= std::chrono::hours(1)) {
    call->context_.set_deadline(std::chrono::system_clock::now() + spec.timeout);
  }
  {
    std::lock_guard lock(mutex_);
    under_way_.emplace(call.get(), call);
  }
  call->start_ = SteadyClock::now();
  auto end = [this, call = call.get(), done = std::move(done)](grpc::Status status) {
    call->end_ = SteadyClock::now();
    call->reply_.status = std::move(status);
    if (call->reply_.status.ok()) call->reply_.messages.push_back(std::move(call->message_));
    call->reply_.headers = Copy(call->context_.GetServerInitialMetadata());
    call->reply_.trailers = Copy(call->context_.GetServerTrailingMetadata());
    call->done_.store(true, std::memory_order_release);
    if (done) done(*call);
    std::lock_guard lock(mutex_);
    under_way_.erase(call);
    ended_.notify_all();
  };
  stub_->async()->Unary(&call->context_, &call->request_, &call->message_, std::move(end));
  return call;
}

std::vector<AsyncCallPtr> AsyncCalls::Start(const CallSpec& spec, size_t count) {
  std::vector<AsyncCallPtr> calls;
  for (size_t i = 0; i < count; ++i) calls.push_back(Start(spec));
  return calls;
}

AsyncCallPtr AsyncCalls::Run(const CallSpec& spec) {
  AsyncCallPtr call = Start(spec);
  Await({call});
  return call;
}

size_t Done(const std::vector<AsyncCallPtr>& calls) {
  return static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [](const AsyncCallPtr& call) { return call->done(); }));
}

size_t Ended(const std::vector<AsyncCallPtr>& calls, grpc::StatusCode code) {
  return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [code](const AsyncCallPtr& call) {
    return call->done() && call->status().error_code() == code;
  }));
}

void Await(const std::vector<AsyncCallPtr>& calls) {
  EXPECT_TRUE(WaitUntil([&] { return Done(calls) == calls.size(); }))
      << Done(calls) << " of " << calls.size() << " calls have ended";
}

ClosedLoop::ClosedLoop(AsyncCalls& calls, CallSpec spec, size_t count)
    : calls_(calls), spec_(std::move(spec)), running_(count), pauses_(count) {
  for (size_t place = 0; place < count; ++place) Next(place);
}

ClosedLoop::~ClosedLoop() { Stop(); }

void ClosedLoop::Stop() {
  stop_.store(true, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return running_ == 0; });
}

void ClosedLoop::Next(size_t place) {
  calls_.Start(spec_, [this, place](const AsyncCall& call) { Ended(place, call); });
}

void ClosedLoop::Leave() {
  std::lock_guard lock(mutex_);
  --running_;
  left_.notify_all();  // under the mutex: once it is free this may be gone
}

void ClosedLoop::Ended(size_t place, const AsyncCall& call) {
  const grpc::StatusCode code = call.status().error_code();
  if (code == grpc::StatusCode::OK) {
    ok_.fetch_add(1, std::memory_order_relaxed);
  } else if (code == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    refused_.fetch_add(1, std::memory_order_relaxed);
  } else {
    std::lock_guard lock(mutex_);
    if (failures_.size() < 100) {
      failures_.push_back(Describe(call.status()) + " " + call.reply().Trailer("sluice-reason"));
    }
  }
  if (stop_.load(std::memory_order_relaxed)) return Leave();
  if (code == grpc::StatusCode::OK) return Next(place);
  const int pushback = std::atoi(call.reply().Trailer("grpc-retry-pushback-ms").c_str());
  pauses_[place] = std::make_unique<grpc::Alarm>();
  pauses_[place]->Set(std::chrono::system_clock::now() + std::chrono::milliseconds(std::clamp(pushback, 1, 100)),
                      [this, place](bool) { stop_.load(std::memory_order_relaxed) ? Leave() : Next(place); });
}

std::vector<std::string> ClosedLoop::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace sluice::integration
