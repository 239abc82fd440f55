// TlsHandshake: TLS's beginning on a connected Stream, with a deadline; ends with a TlsStream or with the reason why
// not.
//
// Nothing blocks: the transport is read and written as it is ready. Where our private key is slow to sign with
// (TlsContext::slow_key) OpenSSL's part runs on a helper thread (runtime::Runtime::Block), which has the engine for
// itself meanwhile; if the helpers' queue is full, on the worker.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/address.h"
#include "net/dialer.h"
#include "net/tls/stream.h"

namespace sluice::net {

// Why a handshake failed; the label of a metric.
enum class TlsFailure : uint8_t {
  kNone,
  kTimeout,
  kClosed,
  kNoAlpn,
  kNoCertificate,
  kCertificate,
  kName,
  kAlert,
  kProtocol
};
inline constexpr size_t kTlsFailures = static_cast<size_t>(TlsFailure::kProtocol) + 1;
std::string_view ToString(TlsFailure failure);

struct TlsOutcome {
  std::unique_ptr<TlsStream> stream;  // null: it failed
  TlsFailure failure = TlsFailure::kNone;
  std::string detail;  // for a person: what was wrong, with the peer's name where that is the reason
};

class TlsHandshake final : public Attempt {
 public:
  // Called once, on the worker, not from inside the constructor. It may destroy the TlsHandshake.
  using OnDone = std::function<void(TlsOutcome)>;

  // A server's. Make and destroy on `worker`; destroying it cancels and closes the transport.
  TlsHandshake(runtime::Worker& worker, std::unique_ptr<Stream> transport, std::shared_ptr<const TlsContext> context,
               base::TimePoint deadline, OnDone on_done);
  // A client's, with `endpoint`: its name or IP address is what the certificate must have, unless the context has a
  // server_name or allowed_names. Of a Unix socket with neither: kName.
  TlsHandshake(runtime::Worker& worker, std::unique_ptr<Stream> transport, std::shared_ptr<const TlsContext> context,
               const Address& endpoint, base::TimePoint deadline, OnDone on_done);
  ~TlsHandshake() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
