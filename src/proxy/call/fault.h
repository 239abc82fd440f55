// Fault: a failure of calls that an operator has asked for, to see what their clients make of it: a delay, a status, a
// response that is cut off. It is for a time, and of one route or one method.
//
//   call arrives --gates--> delayed? --> ended with the status?
//                                   \--> message, cache, upstream ... response --so many messages--> reset
//
// It is met before the cache, so also by calls that a stored response would answer; while there is any fault, the fast
// path gives no answer. Faults are not part of the configuration: each worker has the table as last published
// (CallContext::faults), and none where there is no fault.
//
// Thread safety: a Fault is immutable but for its count, which any worker writes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proxy/call/stream_filter.h"
#include "proxy/grpc_status.h"
#include "sync/event.h"

namespace sluice::proxy {

struct FaultOptions {
  static constexpr size_t kFaultsMax = 64;
  static constexpr std::chrono::milliseconds kTimeMax{3600 * 1000};

  std::string route;   // its name; or
  std::string method;  // "/pkg.Service/Get"
  // Counts as part of the call's time.
  std::chrono::milliseconds delay{0};
  GrpcCode abort = GrpcCode::kOk;       // kOk: it goes on
  std::optional<uint32_t> reset_after;  // messages of the response; 0: behind its headers
  double percent = 100;                 // of the calls, each by chance
};

struct Fault {
  Fault(uint64_t number, FaultOptions of, base::TimePoint end) : id(number), options(std::move(of)), ends(end) {}

  // Of a call that arrives `now` on `route`.
  bool Covers(std::string_view route, std::string_view path, base::TimePoint now) const {
    return now < ends && (options.route.empty() ? options.method == path : options.route == route);
  }

  const uint64_t id;
  const FaultOptions options;
  const base::TimePoint ends;
  mutable std::atomic<uint64_t> calls{0};  // that it has met
};
using FaultTable = std::vector<std::shared_ptr<const Fault>>;

// Cuts a response off behind so many of its messages: what was passed on is sent, then the stream is reset with
// INTERNAL_ERROR. A response that is shorter goes through as it is.
class CutFilter final : public StreamFilter {
 public:
  // `done` is set when the stream has been reset.
  CutFilter(uint32_t messages, sync::Event& done) : messages_left_(messages), done_(done) {}
  ~CutFilter() override { Abandon(); }

  // The last message has been passed on, and its bytes are on their way: the call must not end yet.
  bool pending() const { return state_ == State::kCutting; }
  bool cut() const { return state_ == State::kCut; }
  // The stream has framed so many bytes.
  void OnSent(size_t bytes);
  // The stream is dead, or there is no more time: it is let go of.
  void Abandon();

  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;
  void Consume(size_t bytes) override;
  void Reset(http2::ErrorCode code) override;
  void Release() override;

 private:
  enum class State : uint8_t { kOpen, kCutting, kCut, kReleased };
  size_t BytesOfMessages(const base::Slice& bytes);
  void Cut();

  uint32_t messages_left_;
  sync::Event& done_;
  State state_ = State::kOpen;
  uint32_t prefix_bytes_ = 0;  // of the next message's prefix, that were seen
  uint64_t body_left_ = 0;     // of the message that is passed on now; its length so far within a prefix
  uint64_t passed_ = 0, sent_ = 0;
};

}  // namespace sluice::proxy
