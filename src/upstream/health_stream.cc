#include "upstream/health_stream.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "http2/session/stream.h"

namespace sluice::upstream {

using http2::Token;
using Kind = HealthEnd::Kind;

namespace {

constexpr uint32_t kUnknownStatus = 2;
constexpr std::string_view kLeft = "its connection takes no new streams";
constexpr std::array<std::string_view, 17> kStatusNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};
// Of a server's grpc-message that goes into logs and views.
constexpr size_t kMessageShownMax = 200;

// The peer's text, fit for a line of the log.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, kMessageShownMax));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

http2::HeaderList MakeRequest(const ClusterOptions& options, const net::Address& address, bool watch) {
  const bool tls = options.tls.enabled;
  http2::HeaderList fields;
  fields.Add(":method", "POST");
  fields.Add(":scheme", tls ? "https" : "http");
  fields.Add(":path", watch ? "/grpc.health.v1.Health/Watch" : "/grpc.health.v1.Health/Check");
  if (tls && !options.tls.server_name.empty())
    fields.Add(":authority", base::HostAsNamed(options.tls.server_name));
  else
    fields.Add(":authority", address.kind() == net::Address::Kind::kUnix ? "localhost" : address.ToString());
  fields.Add("te", "trailers");
  fields.Add("content-type", "application/grpc");
  fields.Add("user-agent", "sluice-health");
  // gRPC allows eight digits; the option's bound is below that.
  if (!watch) fields.Add("grpc-timeout", std::to_string(options.health.timeout.count()) + "m");
  return fields;
}

}  // namespace

void HealthStream::Open(http2::Connection& connection, const ClusterOptions& options, const net::Address& address) {
  stream_ = connection.Open(MakeRequest(options, address, watch_), false, *this);
  if (stream_ == nullptr) return Stop({Kind::kMoved, 0, "the connection took no more streams"});
  connection_ = &connection;
  connection.set_background_streams(1);
  stream_->AllowSilence();
  report_->Opened();
  stream_->SendData(base::Slice::Copy(EncodeHealthRequest(options.health.service)), true);
}

void HealthStream::Stop(HealthEnd end) {
  if (ended_) return;
  ended_ = true;
  // What follows of the stream's end is the pool's business, and comes after this.
  if (auto* connection = std::exchange(connection_, nullptr)) connection->set_background_streams(0);
  report_->Ended(std::move(end));
  if (auto* stream = std::exchange(stream_, nullptr)) stream->Release();
}

void HealthStream::Leave() {
  if (!AwaitsAnswer()) return Stop({Kind::kMoved, 0, std::string(kLeft)});
  leaving_ = true;
}

void HealthStream::OnHeaders(http2::HeaderList&& fields, bool end_stream) {
  if (!headers_seen_) {
    const http2::Field* status = fields.Find(Token::kStatus);
    if (status != nullptr && status->value().starts_with('1')) return;  // the final response follows
    headers_seen_ = true;
    http_ok_ = status != nullptr && status->value() == "200";
    if (!http_ok_ && !end_stream)
      return Stop({Kind::kBroken, 0, "HTTP status " + (status != nullptr ? Shown(status->value()) : "missing")});
    if (!end_stream) return;
  }
  End(fields);
}

// The response is complete.
void HealthStream::End(const http2::HeaderList& trailers) {
  const http2::Field* field = trailers.Find(Token::kGrpcStatus);
  if (field == nullptr)
    return Stop({Kind::kBroken, 0, http_ok_ ? "it ended without a gRPC status" : "no gRPC, and not HTTP's 200"});
  if (reader_.in_message()) return Stop({Kind::kBroken, 0, "it ended within a message"});
  uint32_t code = 0;
  const std::string_view text = field->value();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (error != std::errc() || end != text.data() + text.size() || code >= kStatusNames.size()) code = kUnknownStatus;
  std::string detail(kStatusNames[code]);
  if (const http2::Field* message = trailers.Find(Token::kGrpcMessage); message != nullptr && !message->value().empty())
    detail.append(": ").append(Shown(message->value()));
  Stop({Kind::kStatus, code, std::move(detail)});
}

void HealthStream::OnData(const base::Slice& bytes, bool end_stream) {
  const uint64_t before = reader_.messages();
  const bool good = reader_.Feed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (reader_.messages() != before) report_->Answered(reader_.status());
  if (!good) return Stop({Kind::kBroken, 0, std::string(reader_.problem())});
  if (end_stream) return Stop({Kind::kBroken, 0, "it ended without a gRPC status"});
  if (leaving_ && !AwaitsAnswer()) return Stop({Kind::kMoved, 0, std::string(kLeft)});
  stream_->Consume(bytes.size());
}

void HealthStream::OnReset(http2::ErrorCode code, http2::ResetCause cause) {
  using Cause = http2::ResetCause;
  switch (cause) {
    case Cause::kRefused:
      return Stop({Kind::kMoved, 0, "the stream was refused"});
    case Cause::kRetired:
    case Cause::kWentAway:
      return Stop({Kind::kMoved, 0, std::string(kLeft)});
    case Cause::kConnectionLost:
      if (leaving_) return Stop({Kind::kMoved, 0, std::string(kLeft)});
      return Stop({Kind::kLost, 0, "the connection was lost"});
    case Cause::kMetadata:
    case Cause::kMalformedBody:  // of requests only
    case Cause::kTooLarge:
    case Cause::kPeerReset:
      return Stop({Kind::kBroken, 0, "reset: " + std::string(http2::ToString(code))});
    case Cause::kProtocolError:
      return Stop({Kind::kBroken, 0, "its answer broke HTTP/2: " + std::string(http2::ToString(code))});
    case Cause::kStalled:
      return Stop({Kind::kBroken, 0, "the server did not take the request"});
  }
}

}  // namespace sluice::upstream
