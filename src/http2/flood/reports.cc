#include "http2/flood/reports.h"

#include <string>

#include "base/log.h"

namespace sluice::http2 {

FloodRecord::FloodRecord(metrics::Registry& registry) {
  for (size_t i = 1; i < kFloodKinds; ++i) {
    std::string kind(ToString(static_cast<FloodKind>(i)));
    for (bool down : {true, false}) {
      (down ? downstream : upstream)[i] =
          registry.AddCounter("sluice_http2_abuse_total",
                              "Connections ended, or calls reset, with ENHANCE_YOUR_CALM for what their peer did.",
                              {{"side", down ? "downstream" : "upstream"}, {"kind", kind}});
    }
  }
  delayed =
      registry.AddCounter("sluice_http2_delayed_connections_total",
                          "Client connections read only after abuse_delay, for what others of their address did.");
}

bool FloodReports::Report(runtime::Worker& worker, bool downstream, std::string_view peer, FloodKind kind,
                          std::string_view why) {
  if (record_ != nullptr) {
    (downstream ? record_->downstream : record_->upstream)[static_cast<size_t>(kind)]->Add(worker.index());
    // Not of unread data, whose connection goes on, nor for a block that is too large: that is one call's metadata, and
    // beside an application all connections have its address.
    if (downstream && kind != FloodKind::kUnreadData && kind != FloodKind::kHeaderBlock)
      record_->clients.Note(peer, worker.now());
  }
  const auto note = log_.Allow(worker.now());
  if (!note) return false;
  SLUICE_LOG_WARN("{} {}: {}: {}{}", downstream ? "client" : "backend", peer,
                  kind == FloodKind::kUnreadData ? "calls reset" : "connection ended", why, *note);
  return true;
}

bool FloodReports::Delays(runtime::Worker& worker, std::string_view peer) {
  if (record_ == nullptr || !record_->clients.Has(peer, worker.now())) return false;
  record_->delayed->Add(worker.index());
  return true;
}

}  // namespace sluice::http2
