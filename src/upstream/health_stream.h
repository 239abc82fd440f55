// HealthStream: one Watch or Check of grpc.health.v1 on a connection to an endpoint, and the report of its answers.
//
//   waiting --Open--> open --END_STREAM, reset, loss, Stop--> ended
//      +-------------------------Stop---------------------------^
//
// Its stream is beside those of calls: it is no call for the pool's counts, a connection that has nothing but it is
// idle, and its silence is in order. One worker, the connection's; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "http2/connection/connection.h"
#include "http2/session/stream_io.h"
#include "upstream/health/health_message.h"
#include "upstream/health/health_report.h"
#include "upstream/options.h"

namespace sluice::upstream {

class HealthStream final : private http2::StreamEvents {
 public:
  // `report` is ended when this is, at the latest by the destructor.
  HealthStream(std::shared_ptr<HealthReport> report, bool watch) : report_(std::move(report)), watch_(watch) {}
  ~HealthStream() { Stop({HealthEnd::Kind::kMoved, 0, "the pool has gone"}); }
  HealthStream(const HealthStream&) = delete;
  HealthStream& operator=(const HealthStream&) = delete;

  bool waiting() const { return connection_ == nullptr && !ended_; }
  // The connection that it is open on; null: it is not open.
  const http2::Connection* connection() const { return connection_; }
  const HealthReport* report() const { return report_.get(); }

  // waiting -> open. `connection` has room for a stream, and is to `address`.
  void Open(http2::Connection& connection, const ClusterOptions& options, const net::Address& address);
  // Open, and not answered as far as it is to be: a Watch once, a Check with its end. Bounded by what began it
  // (ActiveHealth: `timeout`).
  bool AwaitsAnswer() const { return connection_ != nullptr && (!watch_ || reader_.messages() == 0); }
  // Its connection takes no new streams, and ends when those on it have: it ends at once, but for one that awaits its
  // answer, which ends with it. Else an endpoint whose connections are short would never be heard.
  void Leave();
  // -> ended, with RST_STREAM (CANCEL) if it is open. Without effect if it has ended.
  void Stop(HealthEnd end);

 private:
  void OnHeaders(http2::HeaderList&& fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t) override {}
  void End(const http2::HeaderList& trailers);

  const std::shared_ptr<HealthReport> report_;
  const bool watch_;
  bool ended_ = false;
  bool leaving_ = false;  // Leave was called
  bool http_ok_ = false, headers_seen_ = false;
  http2::Connection* connection_ = nullptr;
  http2::Stream* stream_ = nullptr;
  HealthMessageReader reader_;
};

}  // namespace sluice::upstream
