#include "http2/flood/reports.h"

#include <string>

#include "base/log.h"

namespace sluice::http2 {

namespace {

// A piece of what a peer has sent, for a line of the log: bounded, and printable ASCII.
std::string Printable(std::string_view text) {
  constexpr size_t kBytesMax = 256;
  std::string out(text.substr(0, kBytesMax));
  for (char& c : out) {
    if (c < 0x20 || c >= 0x7f || c == '"') c = '?';
  }
  return text.size() > kBytesMax ? out + "..." : out;
}

}  // namespace

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
  for (size_t i = 0; i < kRefusals; ++i) {
    refused[i] = registry.AddCounter("sluice_http2_refused_requests_total",
                                     "Requests of clients that were refused before they became calls, by what HTTP/2 "
                                     "demands or what a listener allows.",
                                     {{"reason", std::string(ToString(static_cast<Refusal>(i)))}});
  }
  for (bool down : {true, false}) {
    const auto add = [&](const char* change) {
      return registry.AddCounter(
          "sluice_http2_respelled_fields_total",
          "Header fields and trailers that went on in another spelling than they came, or, where "
          "they do not decode, not at all.",
          {{"side", down ? "downstream" : "upstream"}, {"change", change}});
    };
    (down ? respelled_downstream : respelled_upstream) = {add("blanks"), add("bin"), add("dropped")};
  }
  delayed = registry.AddCounter(
      "sluice_http2_delayed_connections_total",
      "Client connections read only after a part of abuse_delay, for what others of their address did.");
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

bool FloodReports::ReportRefused(runtime::Worker& worker, std::string_view peer, Refusal refusal, std::string_view why,
                                 std::string_view path) {
  if (record_ != nullptr) record_->refused[static_cast<size_t>(refusal)]->Add(worker.index());
  const auto note = refused_log_.Allow(worker.now());
  if (!note) return false;
  SLUICE_LOG_INFO("client {}: request refused: {}{}{}: path \"{}\"{}", peer, ToString(refusal), why.empty() ? "" : ": ",
                  why, Printable(path), *note);
  return true;
}

bool FloodReports::ReportRespelled(runtime::Worker& worker, bool downstream, std::string_view peer,
                                   const Respelled& respelled) {
  if (record_ != nullptr) {
    const auto& counters = downstream ? record_->respelled_downstream : record_->respelled_upstream;
    if (respelled.blanks > 0) counters.blanks->Add(worker.index(), respelled.blanks);
    if (respelled.bin > 0) counters.bin->Add(worker.index(), respelled.bin);
    if (respelled.undecodable > 0) counters.dropped->Add(worker.index(), respelled.undecodable);
  }
  if (downstream || respelled.undecodable == 0) return false;  // a request is refused, which says more
  const auto note = dropped_log_.Allow(worker.now());
  if (!note) return false;
  SLUICE_LOG_WARN("backend {}: response metadata \"{}\" dropped: its value is not base64, as names in -bin demand{}",
                  peer, respelled.first_undecodable, *note);
  return true;
}

base::Nanos FloodReports::Delay(runtime::Worker& worker, std::string_view peer, base::Nanos most) {
  if (record_ == nullptr) return base::Nanos(0);
  const base::Nanos wait = record_->clients.Wait(peer, worker.now(), most);
  if (wait.count() > 0) record_->delayed->Add(worker.index());
  return wait;
}

}  // namespace sluice::http2
