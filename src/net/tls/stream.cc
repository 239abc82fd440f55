#include "net/tls/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace sluice::net {

TlsStream::TlsStream(runtime::Worker& worker, std::unique_ptr<Stream> transport, std::unique_ptr<TlsEngine> engine,
                     TlsPeer peer)
    : worker_(worker), transport_(std::move(transport)), engine_(std::move(engine)), peer_(std::move(peer)) {
  engine_->notes.settled = true;
  engine_->wire.Attach(*transport_);
  pending_ = true;  // what came behind the peer's Finished is in the engine already
  Flush();          // a server's tickets
}

TlsStream::~TlsStream() {
  Close();
  // Else OpenSSL takes an end without the peer's close_notify for a reason to forget the session.
  if (!failed_) SSL_set_shutdown(engine_->ssl.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

IoResult TlsStream::Fail(std::string_view what) {
  if (!failed_) {
    failed_ = true;
    problem_ = TakeOpenSslError(what);
    if (!closed_) Flush();  // the alert
  }
  return {IoResult::Kind::kError, 0, EPROTO};
}

IoResult TlsStream::Read(uint8_t* into, size_t capacity) {
  IoResult result = ReadRecords(into, capacity);
  result.useless = std::exchange(engine_->notes.useless, 0);
  return result;
}

// One read of the transport at most: what it leaves behind is told by its own rule. Several records are joined.
IoResult TlsStream::ReadRecords(uint8_t* into, size_t capacity) {
  if (closed_) return {IoResult::Kind::kEof, 0, 0};
  if (failed_) return {IoResult::Kind::kError, 0, EPROTO};
  SSL* ssl = engine_->ssl.get();
  engine_->wire.AllowRead();
  size_t done = 0;
  pending_ = true;
  while (done < capacity) {
    ERR_clear_error();
    size_t bytes = 0;
    if (SSL_read_ex(ssl, into + done, capacity - done, &bytes) == 1) {
      done += bytes;
      continue;
    }
    pending_ = engine_->wire.holds_input();
    const int error = SSL_get_error(ssl, 0);
    if (error == SSL_ERROR_WANT_READ) break;
    if (done > 0) {  // first what came before the end
      pending_ = true;
      break;
    }
    pending_ = true;  // an end or an error stays readable
    if (error == SSL_ERROR_ZERO_RETURN) return {IoResult::Kind::kEof, 0, 0};
    const IoResult last = engine_->wire.last();
    if (last.kind == IoResult::Kind::kError) return last;
    if (last.kind == IoResult::Kind::kEof) {
      ERR_clear_error();
      problem_ = "the peer's end of the connection came without close_notify";
      return {IoResult::Kind::kError, 0, ECONNRESET};
    }
    return Fail("TLS failed while reading");
  }
  if (engine_->wire.out_size() > 0) Flush();  // an answer of TLS's own
  if (done == 0) return {IoResult::Kind::kWouldBlock, 0, 0};
  return {IoResult::Kind::kOk, done, 0};
}

bool TlsStream::WriteRecord(const iovec* parts, size_t count, size_t from, size_t size) {
  uint8_t joined[kRecordBytes];
  size_t at = 0;
  for (size_t i = 0; i < count && at < size; ++i) {
    const size_t length = parts[i].iov_len;
    if (from >= length) {
      from -= length;
      continue;
    }
    const size_t part = std::min(length - from, size - at);
    const uint8_t* data = static_cast<const uint8_t*>(parts[i].iov_base) + from;
    size_t bytes = 0;
    if (part == size) return SSL_write_ex(engine_->ssl.get(), data, size, &bytes) == 1 && bytes == size;
    std::memcpy(joined + at, data, part);
    at += part;
    from = 0;
  }
  size_t bytes = 0;
  return SSL_write_ex(engine_->ssl.get(), joined, at, &bytes) == 1 && bytes == at;
}

IoResult TlsStream::Write(const iovec* parts, size_t count) {
  if (closed_ || goodbye_) return {IoResult::Kind::kError, 0, EPIPE};
  if (failed_) return {IoResult::Kind::kError, 0, EPROTO};
  if (engine_->wire.out_size() > 0) {
    const IoResult before = Flush();
    if (before.kind != IoResult::Kind::kOk) return before;
  }
  size_t offered = 0;
  for (size_t i = 0; i < count; ++i) offered += parts[i].iov_len;
  size_t done = 0;
  while (done < offered && done < kBatchBytes) {
    const size_t size = std::min(kRecordBytes, offered - done);
    ERR_clear_error();
    if (!WriteRecord(parts, count, done, size)) return Fail("TLS failed while writing");
    done += size;
  }
  const IoResult flushed = Flush();
  if (flushed.kind == IoResult::Kind::kError) return flushed;
  return {IoResult::Kind::kOk, done, 0};
}

IoResult TlsStream::Flush() {
  const IoResult result = engine_->wire.Flush(*transport_);
  if (result.kind == IoResult::Kind::kWouldBlock && !transport_writes_) {
    transport_writes_ = true;
    transport_->WaitWritable(*this);
  }
  if (result.kind == IoResult::Kind::kOk && shut_) transport_->ShutdownWrite();
  return result;
}

void TlsStream::WaitReadable(IoEvents& events) {
  if (closed_) return;
  SLUICE_DCHECK(reader_ == nullptr);
  reader_ = &events;
  if (pending_) {
    worker_.RequeueNextTurn(*this);
  } else if (!transport_reads_) {
    transport_reads_ = true;
    transport_->WaitReadable(*this);
  }
}

void TlsStream::WaitWritable(IoEvents& events) {
  if (closed_) return;
  SLUICE_DCHECK(writer_ == nullptr);
  writer_ = &events;
  // With bytes in the wire the transport tells us, see Flush.
  if (!transport_writes_) worker_.RequeueNextTurn(*this);
}

void TlsStream::OnReadable() {
  transport_reads_ = false;
  if (reader_ != nullptr) std::exchange(reader_, nullptr)->OnReadable();
}

// An error shows in the write that follows.
void TlsStream::OnWritable() {
  transport_writes_ = false;
  Flush();
  if (!transport_writes_ && writer_ != nullptr) std::exchange(writer_, nullptr)->OnWritable();
}

void TlsStream::OnRequeued() {
  if (pending_ && reader_ != nullptr) {
    if (writer_ != nullptr) worker_.RequeueNextTurn(*this);  // one at a time: a listener may destroy us
    return std::exchange(reader_, nullptr)->OnReadable();
  }
  if (!transport_writes_ && writer_ != nullptr) std::exchange(writer_, nullptr)->OnWritable();
}

void TlsStream::SayGoodbye() {
  if (std::exchange(goodbye_, true) || failed_) return;
  ERR_clear_error();
  SSL_shutdown(engine_->ssl.get());  // puts close_notify into the wire; the peer's is Read's to see
  ERR_clear_error();
}

void TlsStream::ShutdownWrite() {
  if (closed_ || shut_) return;
  SayGoodbye();
  shut_ = true;
  Flush();
}

void TlsStream::Close() {
  if (closed_) return;
  SayGoodbye();
  engine_->wire.Flush(*transport_);  // as far as it goes
  closed_ = true;
  reader_ = writer_ = nullptr;
  transport_->Close();
}

}  // namespace sluice::net
