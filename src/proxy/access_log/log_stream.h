// LogStream: one log's way from the workers to its file.
//
//   worker 0 --Write--> ring 0 --+
//   worker 1 --Write--> ring 1 --+-- the log's thread, Round: format --> batch --write(2)--> file
//
//   open --BeginClose--> closing --all is written, or its time is over--> closed
//
// Thread safety: Write on the worker that it names; Round, GiveUp and those beside them on the log's thread; the rest
// from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "concurrent/record_ring.h"
#include "proxy/access_log/line_format.h"
#include "proxy/access_log/log_file.h"
#include "proxy/options.h"

namespace sluice::proxy {

// Lines of all access logs of the process. Written by the log's thread, read by any: each publishes nothing but itself.
struct LogTotals {
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> dropped{0};  // by workers: their ring was full
  std::atomic<uint64_t> lost{0};     // the file could not be written, or took too little until the end
};

// What a stream has lost, for lines of the process's log: one when it begins, one when it is over.
struct LogLosses {
  uint64_t lines = 0;  // since it began; 0: nothing is being lost
  base::TimePoint last{};
  std::string why;
};

class LogStream {
 public:
  // A batch is written when it has reached this, and at the end of a round.
  static constexpr size_t kBatchBytes = 128 << 10;
  // A worker wakes the log's thread when this much has gathered, or half a ring if that is less.
  static constexpr uint64_t kWakeBytes = 512 << 10;
  static constexpr uint64_t kNoWake = uint64_t{1} << 62;
  // Workers keep up again when they have dropped nothing for so long.
  static constexpr base::Nanos kDropsEnd = std::chrono::seconds(1);

  LogStream(const AccessLogOptions& options, uint32_t workers, LogTotals& totals);

  // As LogFile::Open.
  base::Status Open() { return file_.Open(); }

  // True: the log's thread is to be woken. Never waits: without room in the ring, the call is dropped and counted.
  bool Write(const CallRecord& call, uint32_t worker) {
    concurrent::RecordRing& ring = *rings_[worker];
    RecordLayout::Lengths lengths;
    uint8_t* room = ring.Begin(format_.layout().Measure(call, lengths));
    if (room == nullptr) [[unlikely]]
      return false;
    format_.layout().Copy(call, lengths, room);
    return ring.End();
  }

  // No Write comes any more. What was written is to reach the file until `deadline`.
  void BeginClose(base::TimePoint deadline);
  bool closing() const { return state_.load(std::memory_order_acquire) != State::kOpen; }
  bool closed() const { return state_.load(std::memory_order_acquire) == State::kClosed; }

  // --- The log's thread ---

  struct Result {
    uint64_t lines = 0;  // taken from the rings
    bool full = false;   // the file takes nothing more now
  };
  // Takes what is in the rings, formats and writes it. `wall_offset`: from the steady clock to the time since 1970.
  bool full() const { return full_; }  // of the last one
  Result Round(base::TimePoint now, base::Nanos wall_offset);
  // After a Round that was not `full`, or when the time is over: counts what is left as lost.
  void End(base::TimePoint now);
  base::TimePoint deadline() const { return deadline_; }  // while closing
  int poll_fd() const { return file_.poll_fd(); }
  // The next record of any worker wakes the thread.
  void WakeForAny();
  bool Empty() const;

 private:
  enum class State : uint8_t { kOpen, kClosing, kClosed };
  bool Push(base::TimePoint now);
  void Append(std::span<const uint8_t> record, int64_t wall_offset);
  uint64_t LinesLeft() const;
  void LoseRest(int error, base::TimePoint now);
  void CountDrops(base::TimePoint now);
  void Lose(LogLosses& losses, uint64_t lines, base::TimePoint now, std::string_view why);
  void EndLosses(LogLosses& losses, std::string_view what);

  const LineFormat format_;
  LogFile file_;
  LogTotals& totals_;
  std::vector<std::unique_ptr<concurrent::RecordRing>> rings_;  // by worker
  std::atomic<State> state_{State::kOpen};
  base::TimePoint deadline_{};  // published by state_

  // Of the log's thread.
  TimeText time_;
  std::unique_ptr<char[]> batch_;
  size_t room_ = 0, used_ = 0, sent_ = 0;  // of batch_
  uint64_t batch_lines_ = 0;
  bool full_ = false;
  bool cut_ = false;  // the file's last line has no end, and its rest is lost
  uint64_t dropped_seen_ = 0;
  LogLosses drops_, losses_;
};

}  // namespace sluice::proxy
