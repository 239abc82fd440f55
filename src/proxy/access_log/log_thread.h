// LogThread: the one thread that formats and writes the access logs of the process. It is there while there is a log.
//
//   rounds over all logs --nothing for kDozeAfter--> doze until the next record
//      |        ^
//      +--------+  after kTick; sooner where a ring fills or a full file has room again
//
// So a line is on its way to its file within kTick and the time that a round takes, and no worker makes a system call
// for a line but for the first one after kDozeAfter without any, and one whenever a ring has filled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "proxy/access_log/log_stream.h"
#include "proxy/bell.h"

namespace sluice::proxy {

// Thread safety: any thread but for what is private.
class LogThread {
 public:
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::milliseconds kDozeAfter{1000};

  // The process's. Never destroyed: its thread may be in a system call when the process ends.
  static LogThread& Instance();

  LogTotals& totals() { return totals_; }
  void Add(std::shared_ptr<LogStream> stream);
  void Ring() { bell_.Ring(); }
  // `stream` takes no more lines; those it has are written until `bound` is over, then lost and counted. Returns at
  // once.
  void BeginClose(LogStream& stream, base::Nanos bound);
  // Waits for that. False: the thread has not come back from a write in `bound` and a bit; what is lost is not known.
  bool Close(LogStream& stream, base::Nanos bound);
  // Waits, for `bound` at most, until what was written to all logs before is in their files.
  bool Flush(base::Nanos bound);

 private:
  LogThread() = default;
  struct Seen {
    uint64_t lines = 0;
    bool full = false;
  };
  void Run();
  Seen RoundOfAll(const std::vector<std::shared_ptr<LogStream>>& streams);
  bool Remove();
  void Wait(const std::vector<std::shared_ptr<LogStream>>& streams, bool full);
  bool MayDoze(const std::vector<std::shared_ptr<LogStream>>& streams);
  void TellWaiters(uint32_t flushed);

  LogTotals totals_;
  Bell bell_;
  std::atomic<uint32_t> flushes_{0};  // asked for
  std::atomic<uint32_t> done_{0};     // a word to wait on: changes when a flush or a close is done
  std::atomic<uint32_t> flushed_{0};  // of flushes_

  std::mutex mutex_;
  // Under mutex_:
  std::vector<std::shared_ptr<LogStream>> streams_;
  bool running_ = false;

  // Of the thread.
  base::TimePoint last_line_{};
};

}  // namespace sluice::proxy
