// ReopenableSink: a spdlog sink over a file that can be opened anew under its name, after it was rotated away.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "base/error.h"

namespace sluice::base {

// Thread-safe; meant to stand behind spdlog's background thread.
class ReopenableSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `raw`: lines are complete messages, without spdlog's pattern. `standard` is used where `path` is empty.
  ReopenableSink(std::string path, std::FILE* standard, bool raw) : path_(std::move(path)), standard_(standard), raw_(raw) {}
  ~ReopenableSink() override;

  // Opens, or opens again; on an error (kIo) what was open stays in use.
  Status Open();

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override;

  const std::string path_;
  std::FILE* const standard_;
  const bool raw_;
  std::FILE* file_ = nullptr;  // under base_sink's mutex_
};

}  // namespace sluice::base
