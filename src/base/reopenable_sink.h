// ReopenableSink: a spdlog sink over a file that can be opened anew under its name, after it was rotated away.
//
// A line is one write, so there is nothing to flush. Where the disk is full, lines are lost: no thread waits and
// nothing is kept for later. The process's log reports the loss once when it begins, and the number of lines at its
// end.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace sluice::base {

// Thread-safe; only to stand behind spdlog's background thread (an asynchronous logger): it logs itself.
class ReopenableSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `raw`: lines are complete messages, without spdlog's pattern. `standard`: the descriptor used where `path` is
  // empty.
  ReopenableSink(std::string path, int standard, bool raw) : path_(std::move(path)), standard_(standard), raw_(raw) {}
  ~ReopenableSink() override;

  // Opens, or opens again; on an error (kIo) what was open stays in use.
  Status Open();

  // Whether all sinks of the process, and the access logs, report losses (initially yes). Switch off before the
  // process's logger is destroyed: once this has returned, no sink is about to use the logger.
  static void SayLosses(bool on);
  // Calls `say`, which logs of a loss, where that is on. For others that write logs by a thread of their own.
  static void SayIfHeard(const std::function<void()>& say);
  // From `when` on no sink of the process waits for a pipe that is full: its lines are lost. Before, they wait for its
  // reader.
  static void WaitUntil(TimePoint when);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool WaitForRoom() const;
  void Write(std::string_view text, std::string_view end);
  void Lost(int error);
  void CloseOurs();
  std::string_view name() const { return path_.empty() ? "on a standard stream" : std::string_view(path_); }

  const std::string path_;
  const int standard_;
  const bool raw_;
  // Under base_sink's mutex_.
  int fd_ = -1;
  bool cut_ = false;   // the file's last line has no end
  uint64_t lost_ = 0;  // lines, since it could last be written
  int error_ = 0;
};

}  // namespace sluice::base
