// TlsWire: what stands between OpenSSL and a Stream: a BIO that reads what has come and collects what is to go, so that
// several records cost one write and one read. Private to this folder.
//
// One thread at a time. While a handshake with a slow key runs it is memory only (no stream), as a helper thread takes
// the steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/stream.h"
#include "net/tls/openssl.h"

namespace sluice::net {

// Where the records of a stream of them begin (RFC 8446 5.1). What is no record is OpenSSL's to refuse.
class TlsRecords {
 public:
  // How many of these bytes, which follow those of the call before, belong to records of which at most `most` begin
  // here. `most` is what is left of it.
  size_t Take(const uint8_t* data, size_t size, uint32_t& most);

 private:
  static constexpr uint32_t kHeadBytes = 5;
  uint32_t head_ = 0;       // bytes of a head that is cut
  uint32_t body_left_ = 0;  // of the record
};

class TlsWire {
 public:
  // Ciphertext that waits for the transport. More is refused, as a failed write: only a peer that makes us answer and
  // does not read gets there, as Write puts in kBatchBytes at a time.
  static constexpr size_t kOutBytesMax = 160 * 1024;
  // Records that OpenSSL gets for one Allow: a record may cost a key schedule (RFC 8446 4.6.3), and a read has room for
  // ten thousand. The others wait for the next turn.
  static constexpr uint32_t kRecordsMax = 256;

  // A BIO that OpenSSL owns, for SSL_set_bio. The wire outlives it.
  bio_st* NewBio();

  // From now on Read takes from `stream` when `in` is used up, once for each Allow.
  void Attach(Stream& stream) { stream_ = &stream; }
  void AllowRead() {
    may_read_ = true;
    records_left_ = kRecordsMax;
  }
  // Bytes are here that OpenSSL has not got: no socket event will come for them.
  bool holds_input() const { return in_at_ < in_.size(); }
  // What the last read of the stream said; kOk if there was none since AllowRead.
  const IoResult& last() const { return last_; }

  void PutIn(const uint8_t* data, size_t size) { in_.insert(in_.end(), data, data + size); }
  size_t out_size() const { return out_.size() - out_at_; }
  // Writes what is there as far as the stream takes it. kOk: all of it is gone.
  IoResult Flush(Stream& stream);

 private:
  static int OnRead(bio_st* bio, char* into, size_t capacity, size_t* done);
  static int OnWrite(bio_st* bio, const char* from, size_t size, size_t* done);
  static long OnControl(bio_st* bio, int command, long, void*);
  static TlsWire& Of(bio_st* bio);

  bool TakeHeld(char* into, size_t capacity, size_t* done);

  Stream* stream_ = nullptr;
  bool may_read_ = false;
  uint32_t records_left_ = kRecordsMax;
  TlsRecords records_;
  IoResult last_;
  std::vector<uint8_t> in_, out_;
  size_t in_at_ = 0, out_at_ = 0;
};

}  // namespace sluice::net
