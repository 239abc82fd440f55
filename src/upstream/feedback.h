// Outcome: how an attempt at an endpoint, or a connection to it, ended. Feedback: hears outcomes, for balancers that go
// by them.
#pragma once

#include <cstdint>

namespace sluice::upstream {

class Endpoint;

enum class Outcome : uint8_t {
  // Of an attempt:
  kAnswered,   // its response is complete
  kFailed,     // it ended without a response, or in the middle of one
  kAbandoned,  // the call gave it up: its client went away, or its deadline passed
  // Of a connection:
  kConnected,
  kConnectFailed,  // also one that ended before its SETTINGS, or that broke HTTP/2 soon after another one did
  kTimedOut,       // a bound in time ended the connection, or calls on it
};

class Feedback {
 public:
  virtual ~Feedback() = default;
  // On worker `worker`, at the end of each attempt and each connection. Must not suspend, nor begin or end a call.
  virtual void OnOutcome(const Endpoint& endpoint, uint32_t worker, Outcome outcome) = 0;
};

}  // namespace sluice::upstream
