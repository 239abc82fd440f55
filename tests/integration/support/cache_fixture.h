// Cache: the fixture of tests of the response cache: one backend behind a proxy that caches the echo service's Unary.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "support/async_calls.h"
#include "support/gate_backend.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {

inline constexpr char kService[] = "sluice.echo.v1.Echo";

class Cache : public testing::Test {
 protected:
  explicit Cache(GateBackend::Answer answer = {}, std::function<void(const GateBackend::Call&)> on_arrival = {})
      : backend_("echo-1", std::move(answer), std::move(on_arrival)) {
    config_.endpoints = {backend_.endpoint()};
    config_.hash_by = "random";  // a key that tells callers apart would have to be in `vary`
    config_.top = {"workers: 2"};
  }
  void Start(const std::string& more = "", const std::string& ttl = "1h") {
    config_.route.insert(config_.route.begin(), {"name: main", Rule(more, ttl)});
    proxy_ = std::make_unique<Proxy>(config_);
    calls_ = std::make_unique<AsyncCalls>(proxy_->target());
  }
  static std::string Rule(const std::string& more = "", const std::string& ttl = "1h") {
    return "cache: {ttl: " + ttl + ", methods: [" + kService + "/Unary]" + (more.empty() ? "" : ", " + more) + "}";
  }
  Reply Call(const CallSpec& spec) { return calls_->Run(spec)->reply(); }
  Reply Call(const std::string& payload) { return Call(Spec(payload)); }
  // "hit", "stale" or "coalesced"; of a status without a message it stands in the trailers.
  static std::string How(const Reply& reply) {
    const std::string how = reply.Header("sluice-cache");
    return how.empty() ? reply.Trailer("sluice-cache") : how;
  }
  Operator person() { return Operator(*proxy_); }

  ProxyConfig config_;
  GateBackend backend_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<AsyncCalls> calls_;
};

}  // namespace sluice::integration
