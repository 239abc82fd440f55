// HonestCaller: a gRPC client on libnghttp2 that keeps to the protocol, makes one call after the other and checks every
// answer to the last byte. What it expects of an answer follows from what it has asked for (README.md, "x-do").
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostile/dice.h"
#include "hostile/move.h"
#include "hostile/wire.h"

namespace sluice::hostile {

struct CallerOptions {
  std::string name;
  uint16_t port = 0;
  SSL_CTX* tls = nullptr;
  std::string service = "t.Good";
  std::vector<std::string> keys;  // x-key, one of them; empty: none
  bool may_reconnect = false;     // its listener ends connections by age
  double pause_ms = 10;           // between two calls
  int at_once = 2;                // calls under way
  bool timed = false;             // no call has a delay of its own
};

// How long an honest call has taken. The callers share the harness's thread, so its own work is not counted.
struct CallTime {
  double ms;          // in which the harness waited for events
  double start, end;  // Loop::Now
  std::string backend;
  std::string what;
};

class HonestCaller {
 public:
  using Report = std::function<void(const std::string& violation)>;

  HonestCaller(Loop& loop, CallerOptions options, Report report);
  ~HonestCaller();

  void Start();
  void Stop();  // no new calls; those under way go on
  size_t under_way() const { return calls_.size(); }
  uint64_t answered() const { return answered_; }
  // All calls without a delay of their own since the last time this was asked.
  std::vector<CallTime> TakeTimes() { return std::exchange(times_, {}); }

 private:
  struct Call {
    uint64_t number;
    double start, waited, delay = 0;
    std::string path, key, order;
    std::string body, expected;  // DATA as it comes, and as it is to be
    size_t sent = 0;             // of `expected`, which is the request as well
    int status = 0;              // expected
    std::string message;         // expected
    std::map<std::string, std::string> fields;
    size_t trailer = 0;  // bytes of x-long expected
  };

  void Connect();
  void Pump();
  void Next();
  void Begin();
  void Finished(int32_t stream, uint32_t error);
  void Lost(const std::string& why);
  void Fail(const Call& call, const std::string& what);
  void SetCallbacks(nghttp2_session_callbacks* callbacks);

  Loop& loop_;
  const CallerOptions options_;
  const Report report_;
  Dice dice_;
  std::unique_ptr<Wire> wire_;
  std::vector<std::unique_ptr<Wire>> old_wires_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Call> calls_;
  bool running_ = false, going_ = false;  // going_: a GOAWAY has come
  std::string protocol_error_;
  uint64_t timer_ = 0, number_ = 0, answered_ = 0;
  std::vector<CallTime> times_;
};

}  // namespace sluice::hostile
