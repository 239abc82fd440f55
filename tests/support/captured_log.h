// CapturedLog: the process's log as text, for as long as it lives.
#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace sluice::test {

class CapturedLog {
 public:
  CapturedLog() : sink_(std::make_shared<Sink>()), former_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("captured", sink_);
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~CapturedLog() { spdlog::set_default_logger(former_); }
  CapturedLog(const CapturedLog&) = delete;

  // Lines ("info text\n") since the last Take.
  std::string Take() { return sink_->Take(); }

 private:
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::string Take() {
      std::lock_guard lock(mutex_);
      return std::exchange(text_, {});
    }

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t line;
      formatter_->format(message, line);
      text_.append(line.data(), line.size());
    }
    void flush_() override {}
    std::string text_;
  };

  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::logger> former_;
};

}  // namespace sluice::test
