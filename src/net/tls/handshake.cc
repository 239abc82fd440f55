#include "net/tls/handshake.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/ascii.h"
#include "net/tls/client_cert.h"
#include "runtime/runtime.h"
#include "runtime/timer_wheel.h"

namespace sluice::net {

std::string_view ToString(TlsFailure failure) {
  constexpr std::array<std::string_view, kTlsFailures> kNames = {
      "none", "timeout", "closed", "no_alpn", "no_certificate", "certificate", "name", "alert", "protocol"};
  return kNames[static_cast<size_t>(failure)];
}

namespace {

// Of a certificate that has not ended. The system's clock says what time it is, as OpenSSL asked it for the handshake.
base::Nanos TimeLeft(const X509* certificate) {
  int days = 0, seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1) return base::Nanos::zero();
  constexpr int kDaysMax = 36500;  // RFC 5280 4.1.2.5: 99991231235959Z is "no end"
  return std::chrono::hours(24) * std::min(days, kDaysMax) + std::chrono::seconds(seconds);
}

}  // namespace

// Shared with what was posted, which may come after the TlsHandshake is gone.
struct TlsHandshake::Impl final : public IoEvents, public runtime::Timer, public std::enable_shared_from_this<Impl> {
  Impl(runtime::Worker& w, std::unique_ptr<Stream> s, std::shared_ptr<const TlsContext> context, OnDone callback)
      : worker(w), transport(std::move(s)), engine(std::make_unique<TlsEngine>()), on_done(std::move(callback)) {
    engine->context = std::move(context);
    engine->notes.allowed_names = &engine->context->allowed_names();
    engine->notes.sessions = &engine->context->sessions();
    engine->notes.tickets = engine->context->tickets();
    engine->notes.own = &engine->context->own();
    engine->ssl.reset(SSL_new(engine->context->native()));
    if (engine->ssl == nullptr) return;
    SSL* ssl = engine->ssl.get();
    SSL_set_app_data(ssl, &engine->notes);
    bio_st* bio = engine->wire.NewBio();
    SSL_set_bio(ssl, bio, bio);
    if (!apart()) engine->wire.Attach(*transport);
  }

  // OpenSSL works on memory, on a helper thread.
  bool apart() const { return engine->context->slow_key(); }

  static constexpr const char* kEndedEarly = "closed by peer during the TLS handshake";

  // Sets the server's name, to send (SNI) and to verify, and offers a session with it. False: there is no name to
  // verify.
  bool Name(const Address& endpoint) {
    SSL* ssl = engine->ssl.get();
    const TlsContext& context = *engine->context;
    std::string dns = context.server_name();
    if (dns.empty() && endpoint.kind() == Address::Kind::kName) dns = base::HostAsNamed(endpoint.host());
    if (!dns.empty() && SSL_set_tlsext_host_name(ssl, dns.c_str()) != 1) return false;
    if (context.allowed_names().empty()) {
      X509_VERIFY_PARAM* rules = SSL_get0_param(ssl);
      // RFC 9525 6.3: no partial wildcards; and the common name is not a host name.
      X509_VERIFY_PARAM_set_hostflags(rules,
                                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
      if (!dns.empty()) {
        if (X509_VERIFY_PARAM_set1_host(rules, dns.data(), dns.size()) != 1) return false;
      } else if (endpoint.kind() != Address::Kind::kIp ||
                 X509_VERIFY_PARAM_set1_ip_asc(rules, endpoint.host().c_str()) != 1) {
        return false;
      }
    }
    engine->notes.session_key = endpoint.ToString() + " " + dns;
    if (auto session = context.sessions().Take(engine->notes.session_key)) SSL_set_session(ssl, session.get());
    return true;
  }

  void Start(base::TimePoint deadline, bool named) {
    worker.timers().Arm(*this, deadline);
    if (engine->ssl == nullptr) return Later(TlsFailure::kProtocol, "out of memory");
    if (!named)
      return Later(TlsFailure::kName, "no name to look for in the certificate: give server_name or allowed_names");
    if (engine->context->role() == TlsContext::Role::kServer)
      SSL_set_accept_state(engine->ssl.get());
    else
      SSL_set_connect_state(engine->ssl.get());
    worker.Post([self = shared_from_this()] {
      if (!self->done) self->Begin();
    });
  }
  // What there is to do before the peer has said anything.
  void Begin() {
    if (!apart() || engine->context->role() == TlsContext::Role::kClient) return Step();
    WaitToRead();
  }

  void Later(TlsFailure failure, std::string detail) {
    worker.Post([self = shared_from_this(), failure, detail = std::move(detail)] {
      if (!self->done) self->Fail(failure, detail);
    });
  }

  // What OpenSSL said, taken from the thread that asked it.
  struct Progress {
    int error = SSL_ERROR_NONE;  // SSL_get_error
    unsigned long code = 0;      // of what failed
    std::string text;
  };
  static Progress Advance(SSL* ssl) {
    Progress progress;
    ERR_clear_error();
    const int rc = SSL_do_handshake(ssl);
    if (rc == 1) return progress;
    progress.error = SSL_get_error(ssl, rc);
    if (progress.error == SSL_ERROR_WANT_READ) return progress;
    progress.code = ERR_peek_error();
    progress.text = TakeOpenSslError("unknown reason");
    return progress;
  }

  void Step() {
    engine->wire.AllowRead();
    if (apart() && StepApart()) return;
    After(Advance(engine->ssl.get()));
  }

  // What has come goes to the wire, and OpenSSL has its turn elsewhere. False: it has it here.
  bool StepApart() {
    auto self = shared_from_this();
    auto progress = std::make_shared<Progress>();
    // `done` is destroyed on the worker, run or not, and keeps what the helper uses.
    helping = worker.runtime().Block(
        worker, [ssl = engine->ssl.get(), progress] { *progress = Advance(ssl); },
        [self, progress] {
          self->helping = false;
          if (!self->done) self->After(*progress);
        });
    return helping;
  }
  // One read a readiness, as ever. False: there is nothing to take a step with; the rest is seen to.
  bool TakeIn() {
    uint8_t bytes[4096];
    const IoResult result = transport->Read(bytes, sizeof(bytes));
    switch (result.kind) {
      case IoResult::Kind::kOk:
        engine->wire.PutIn(bytes, result.bytes);
        return true;
      case IoResult::Kind::kWouldBlock:
        WaitToRead();
        break;
      case IoResult::Kind::kEof:
        Fail(TlsFailure::kClosed, kEndedEarly);
        break;
      case IoResult::Kind::kError:
        Fail(TlsFailure::kClosed, std::strerror(result.error));
        break;
    }
    return false;
  }
  void WaitToRead() {
    if (std::exchange(reading, true)) return;
    transport->WaitReadable(*this);
  }

  void After(const Progress& progress) {
    const int error = progress.error;
    const IoResult flushed = engine->wire.Flush(*transport);
    if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ) return Failed(progress);
    if (flushed.kind == IoResult::Kind::kError) return Fail(TlsFailure::kClosed, std::strerror(flushed.error));
    if (flushed.kind == IoResult::Kind::kWouldBlock && !writing) {
      writing = true;
      transport->WaitWritable(*this);
    }
    if (error == SSL_ERROR_NONE) {
      finished = true;  // and the transport has taken all of it, or OnWritable goes on
      if (!writing) Finish();
      return;
    }
    // More records than a step takes are here already: no socket event will come for them.
    if (engine->wire.holds_input()) {
      return worker.Post([self = shared_from_this()] {
        if (!self->done) self->Step();
      });
    }
    WaitToRead();
  }

  void OnReadable() override {
    reading = false;
    auto self = shared_from_this();
    if (apart() && !TakeIn()) return;
    Step();
  }
  void OnWritable() override {
    writing = false;
    if (helping) return;  // After goes on with it
    auto self = shared_from_this();
    const IoResult flushed = engine->wire.Flush(*transport);
    if (flushed.kind == IoResult::Kind::kError) return Fail(TlsFailure::kClosed, std::strerror(flushed.error));
    if (flushed.kind != IoResult::Kind::kWouldBlock) {
      if (finished) Finish();
      return;
    }
    writing = true;
    transport->WaitWritable(*this);
  }
  void OnTimer(base::TimePoint) override {
    auto self = shared_from_this();
    Fail(TlsFailure::kTimeout, "no TLS handshake in time");
  }

  // What OpenSSL, its callbacks and the transport say of the end.
  void Failed(const Progress& progress) {
    const int reason = ERR_GET_REASON(progress.code);
    const TlsNotes& notes = engine->notes;
    const long verified = SSL_get_verify_result(engine->ssl.get());
    if (notes.no_alpn) return Fail(TlsFailure::kNoAlpn, "the client does not offer ALPN h2");
    if (!notes.refused.empty())
      return Fail(TlsFailure::kName, "the peer's name is not in allowed_names: " + notes.refused);
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
      return Fail(TlsFailure::kNoCertificate, "the client has no certificate");
    }
    if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return Fail(TlsFailure::kName, "the peer's certificate is for another name");
    }
    if (verified != X509_V_OK) {
      return Fail(TlsFailure::kCertificate,
                  std::string("the peer's certificate: ").append(X509_verify_cert_error_string(verified)));
    }
    const IoResult last = engine->wire.last();
    if (last.kind == IoResult::Kind::kError) return Fail(TlsFailure::kClosed, std::strerror(last.error));
    if (last.kind == IoResult::Kind::kEof) return Fail(TlsFailure::kClosed, kEndedEarly);
    if (reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)
      return Fail(TlsFailure::kNoAlpn, "the server has no ALPN h2");
    // OpenSSL numbers a peer's alerts so: SSL_AD_REASON_OFFSET and the alert.
    const bool alert = ERR_GET_LIB(progress.code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET;
    if (alert) return Fail(TlsFailure::kAlert, "the peer's alert: " + progress.text);
    Fail(TlsFailure::kProtocol, "TLS handshake: " + progress.text);
  }

  void Finish() {
    SSL* ssl = engine->ssl.get();
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl, &protocol, &size);
    if (size != 2 || std::memcmp(protocol, "h2", 2) != 0)
      return Fail(TlsFailure::kNoAlpn, "the peer did not choose ALPN h2");
    TlsPeer peer;
    if (X509* certificate = SSL_get0_peer_certificate(ssl)) {
      // A session that is resumed is not verified again, but time goes on.
      if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
        return Fail(TlsFailure::kCertificate, "the peer's certificate: certificate has expired");
      }
      peer.has_certificate = true;
      peer.names = NamesOf(certificate);
      peer.certificate_ends = base::DeadlineAfter(worker.now(), TimeLeft(certificate));
      if (engine->context->role() == TlsContext::Role::kServer)
        peer.client_cert = ClientCertElement(certificate, ShownToClient());
    }
    peer.version = SSL_get_version(ssl);
    peer.cipher = SSL_get_cipher_name(ssl);
    peer.resumed = SSL_session_reused(ssl) == 1;
    done = true;
    worker.timers().Disarm(*this);
    TlsOutcome outcome;
    outcome.stream = std::make_unique<TlsStream>(worker, std::move(transport), std::move(engine), std::move(peer));
    auto callback = std::move(on_done);
    callback(std::move(outcome));
  }

  // Our certificate that the client asked for; a resumed session shows none, and OpenSSL would say the first.
  X509* ShownToClient() const {
    const std::vector<OwnCertificate>& own = engine->context->own();
    const char* host = SSL_get_servername(engine->ssl.get(), TLSEXT_NAMETYPE_host_name);
    const OwnCertificate* chosen = host != nullptr ? ChooseCertificate(own, host) : nullptr;
    return (chosen != nullptr ? *chosen : own.front()).certificate.get();
  }

  void Fail(TlsFailure failure, std::string detail) {
    done = true;
    ERR_clear_error();
    worker.timers().Disarm(*this);
    transport->Close();
    TlsOutcome outcome;
    outcome.failure = failure;
    outcome.detail = std::move(detail);
    auto callback = std::move(on_done);
    callback(std::move(outcome));
  }

  void Cancel() {
    if (std::exchange(done, true)) return;
    worker.timers().Disarm(*this);
    transport->Close();
    on_done = nullptr;
  }

  runtime::Worker& worker;
  std::unique_ptr<Stream> transport;
  std::unique_ptr<TlsEngine> engine;
  OnDone on_done;
  bool helping = false;                   // a helper thread has the engine
  bool reading = false, writing = false;  // waits of the transport under way; none when it is handed on
  bool finished = false;                  // TLS has, its last bytes may wait
  bool done = false;
};

TlsHandshake::TlsHandshake(runtime::Worker& worker, std::unique_ptr<Stream> transport,
                           std::shared_ptr<const TlsContext> context, base::TimePoint deadline, OnDone on_done)
    : impl_(std::make_shared<Impl>(worker, std::move(transport), std::move(context), std::move(on_done))) {
  impl_->Start(deadline, true);
}

TlsHandshake::TlsHandshake(runtime::Worker& worker, std::unique_ptr<Stream> transport,
                           std::shared_ptr<const TlsContext> context, const Address& endpoint, base::TimePoint deadline,
                           OnDone on_done)
    : impl_(std::make_shared<Impl>(worker, std::move(transport), std::move(context), std::move(on_done))) {
  impl_->Start(deadline, impl_->engine->ssl == nullptr || impl_->Name(endpoint));
}

TlsHandshake::~TlsHandshake() { impl_->Cancel(); }

}  // namespace sluice::net
