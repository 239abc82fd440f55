#include "base/reopenable_sink.h"

#include <cerrno>
#include <cstring>

namespace sluice::base {

ReopenableSink::~ReopenableSink() {
  if (file_ != nullptr && file_ != standard_) std::fclose(file_);
}

Status ReopenableSink::Open() {
  std::FILE* opened = path_.empty() ? standard_ : std::fopen(path_.c_str(), "ae");
  if (opened == nullptr) return MakeError(ErrorKind::kIo, "cannot open " + path_ + ": " + std::strerror(errno));
  std::lock_guard lock(mutex_);
  if (file_ != nullptr && file_ != standard_) std::fclose(file_);
  file_ = opened;
  return Ok();
}

void ReopenableSink::sink_it_(const spdlog::details::log_msg& message) {
  if (file_ == nullptr) return;
  if (raw_) {
    std::fwrite(message.payload.data(), 1, message.payload.size(), file_);
    std::fputc('\n', file_);
    return;
  }
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  std::fwrite(line.data(), 1, line.size(), file_);
}

void ReopenableSink::flush_() {
  if (file_ != nullptr) std::fflush(file_);
}

}  // namespace sluice::base
