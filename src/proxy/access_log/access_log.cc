#include "proxy/access_log/access_log.h"

#include "proxy/access_log/log_stream.h"
#include "proxy/access_log/log_thread.h"

namespace sluice::proxy {

base::Result<std::shared_ptr<AccessLog>> AccessLog::Open(const AccessLogOptions& options, uint32_t workers) {
  std::shared_ptr<AccessLog> log(new AccessLog(options));
  if (options.format == AccessLogOptions::Format::kOff) return log;
  LogThread& thread = LogThread::Instance();
  auto stream = std::make_shared<LogStream>(options, workers, thread.totals());
  if (auto status = stream->Open(); !status) return status.error();
  log->stream_ = stream;
  thread.Add(std::move(stream));
  return log;
}

AccessLog::~AccessLog() {
  if (enabled() && !closed_) LogThread::Instance().BeginClose(*stream_, kCloseMax);
}

void AccessLog::Write(const CallRecord& record, uint32_t worker) {
  if (enabled() && stream_->Write(record, worker)) LogThread::Instance().Ring();
}

base::Status AccessLog::Reopen() {
  if (!enabled()) return base::Ok();
  auto status = stream_->Open();
  LogThread::Instance().Ring();
  return status;
}

bool AccessLog::Close(base::Nanos bound) {
  if (!enabled() || closed_) return true;
  closed_ = true;
  return LogThread::Instance().Close(*stream_, bound);
}

AccessLog::Totals AccessLog::AllTotals() {
  const LogTotals& totals = LogThread::Instance().totals();
  return {totals.written.load(std::memory_order_relaxed), totals.dropped.load(std::memory_order_relaxed),
          totals.lost.load(std::memory_order_relaxed)};
}

bool AccessLog::Flush(base::Nanos bound) { return LogThread::Instance().Flush(bound); }

}  // namespace sluice::proxy
