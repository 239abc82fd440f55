// HealthReport: what a Watch or a Check has come to so far, from the worker that its stream lives on to the pass that
// judges it.
//
// One worker writes, one pass at a time reads. A status that changes between two passes is read as the last one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "upstream/health/health_message.h"

namespace sluice::upstream {

// How a stream of the health service ended.
struct HealthEnd {
  enum class Kind : uint8_t {
    kStatus,        // with a gRPC status
    kBroken,        // reset by the server, or with what is no answer of a health service
    kLost,          // with its connection
    kRefused,       // it was never begun: nothing listens at the address
    kNoConnection,  // it was never begun: there was no connection for another reason
    kMoved,         // by us, or not begun, for a reason that says nothing of the endpoint: its connection takes no new
                    // streams, or is to be closed
    kGaveWay,       // by us: a call waited for its place
  };
  Kind kind = Kind::kMoved;
  uint32_t status = 0;  // of kStatus: as gRPC numbers it
  std::string detail;
};

class HealthReport {
 public:
  // --- The worker's side ---
  void Opened() { word_.store(word_.load(std::memory_order_relaxed) | kOpened, std::memory_order_relaxed); }
  void Answered(ServingStatus status) {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    const uint64_t count = (word >> kCountShift) + 1;
    word_.store(count << kCountShift | (word & (kOpened | kEnded)) | static_cast<uint64_t>(status) << kStatusShift,
                std::memory_order_relaxed);
  }
  // Once, last.
  void Ended(HealthEnd end) {
    end_ = std::move(end);
    // Publishes end_. Pairs with the acquire load in Read().
    word_.store(word_.load(std::memory_order_relaxed) | kEnded, std::memory_order_release);
  }

  // --- The pass's side ---
  struct View {
    bool opened = false, ended = false;
    uint64_t answers = 0;
    ServingStatus status = ServingStatus::kUnknown;  // the last answer's
  };
  View Read() const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    return {(word & kOpened) != 0, (word & kEnded) != 0, word >> kCountShift,
            static_cast<ServingStatus>(word >> kStatusShift & 3)};
  }
  // When ended.
  const HealthEnd& end() const { return end_; }

 private:
  // Bit 0: opened. Bit 1: ended. Bits 2 and 3: the status. From bit 4 on: how many answers.
  static constexpr uint64_t kOpened = 1, kEnded = 2;
  static constexpr int kStatusShift = 2, kCountShift = 4;
  std::atomic<uint64_t> word_{0};
  HealthEnd end_;
};

}  // namespace sluice::upstream
