// TlsStream: a Stream of plain text over a Stream of TLS records, made by a handshake that has succeeded.
//
// Differences that a user of Stream sees:
//   - An end without close_notify (RFC 8446 6.1) is kError with ECONNRESET: bytes may be missing. With it: kEof.
//   - A peer that breaks TLS, or sends an alert: kError with EPROTO; Problem() says more.
//   - A read takes TlsWire::kRecordsMax records at most, and says what they were good for (IoResult::useless).
//   - Write may take bytes that the transport has not: at most kBatchBytes, and they are written without being asked.
// After the handshake a write never has to read first (no renegotiation) and a read never has to write first.
// On its worker only, as any Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/stream.h"
#include "net/tls/callbacks.h"
#include "net/tls/context.h"
#include "net/tls/wire.h"
#include "runtime/fd_watch.h"
#include "runtime/worker.h"

namespace sluice::net {

// OpenSSL's side of one connection.
struct TlsEngine {
  std::shared_ptr<const TlsContext> context;
  TlsNotes notes;
  TlsWire wire;
  OpenSslPtr<ssl_st> ssl;  // goes first
};

// What the handshake has shown of the peer.
struct TlsPeer {
  bool has_certificate = false;
  TlsNames names;  // of it
  // When its certificate ends, on the steady clock: connections live longer than certificates.
  base::TimePoint certificate_ends = base::kNever;
  std::string client_cert;  // a client's: its element of x-forwarded-client-cert
  std::string version;      // "TLSv1.3"
  std::string cipher;
  bool resumed = false;
};

class TlsStream final : public Stream, private IoEvents, private runtime::FdWatch {
 public:
  // Plain text that one write of the transport carries: four full records (RFC 8446 5.1).
  static constexpr size_t kRecordBytes = 16 * 1024;
  static constexpr size_t kBatchBytes = 4 * kRecordBytes;

  TlsStream(runtime::Worker& worker, std::unique_ptr<Stream> transport, std::unique_ptr<TlsEngine> engine,
            TlsPeer peer);
  ~TlsStream() override;

  IoResult Read(uint8_t* into, size_t capacity) override;
  IoResult Write(const iovec* parts, size_t count) override;
  void WaitReadable(IoEvents& events) override;
  void WaitWritable(IoEvents& events) override;
  void ShutdownWrite() override;
  void Close() override;
  std::string PeerName() const override { return transport_->PeerName(); }

  const TlsPeer& peer() const { return peer_; }
  // Why TLS failed: the peer's alert, what it broke.
  std::string Problem() const override { return problem_; }

 private:
  void OnReadable() override;  // of the transport
  void OnWritable() override;
  void OnEdge(uint32_t) override {}
  void OnRequeued() override;
  IoResult ReadRecords(uint8_t* into, size_t capacity);
  // One record of what is left of the parts. False: TLS has failed.
  bool WriteRecord(const iovec* parts, size_t count, size_t from, size_t size);
  // Writes what waits; waits itself for the rest. What the transport said.
  IoResult Flush();
  IoResult Fail(std::string_view what);
  void SayGoodbye();

  runtime::Worker& worker_;
  std::unique_ptr<Stream> transport_;
  std::unique_ptr<TlsEngine> engine_;
  const TlsPeer peer_;
  std::string problem_;
  IoEvents* reader_ = nullptr;
  IoEvents* writer_ = nullptr;
  bool pending_ = false;          // OpenSSL may hold bytes for which no socket event will come
  bool transport_reads_ = false;  // waits of the transport that are under way
  bool transport_writes_ = false;
  bool goodbye_ = false;  // close_notify is out, or in the wire
  bool shut_ = false;     // the transport's write side is to be shut when the wire is empty
  bool failed_ = false, closed_ = false;
};

}  // namespace sluice::net
