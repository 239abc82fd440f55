#include "net/tls/wire.h"

#include <openssl/bio.h>

#include <algorithm>
#include <cstring>

namespace sluice::net {

TlsWire& TlsWire::Of(bio_st* bio) { return *static_cast<TlsWire*>(BIO_get_data(bio)); }

bio_st* TlsWire::NewBio() {
  // Made once and kept: OpenSSL counts the kinds of BIOs.
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sluice");
    BIO_meth_set_read_ex(made, &TlsWire::OnRead);
    BIO_meth_set_write_ex(made, &TlsWire::OnWrite);
    BIO_meth_set_ctrl(made, &TlsWire::OnControl);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

size_t TlsRecords::Take(const uint8_t* data, size_t size, uint32_t& most) {
  size_t at = 0;
  while (at < size) {
    if (head_ == 0 && body_left_ > 0) {
      const size_t part = std::min<size_t>(body_left_, size - at);
      at += part;
      body_left_ -= static_cast<uint32_t>(part);
      continue;
    }
    if (head_ == 0) {
      if (most == 0) break;
      --most;
    }
    // The length is in the last two bytes of the head.
    for (; head_ < kHeadBytes && at < size; ++head_, ++at) {
      if (head_ >= kHeadBytes - 2) body_left_ = (body_left_ << 8 | data[at]) & 0xffff;
    }
    if (head_ == kHeadBytes) head_ = 0;
  }
  return at;
}

// What came before OpenSSL asked for it, or more of it than a turn has room for.
bool TlsWire::TakeHeld(char* into, size_t capacity, size_t* done) {
  *done = records_.Take(in_.data() + in_at_, std::min(capacity, in_.size() - in_at_), records_left_);
  std::memcpy(into, in_.data() + in_at_, *done);
  in_at_ += *done;
  if (in_at_ == in_.size()) {
    std::vector<uint8_t>().swap(in_);
    in_at_ = 0;
  }
  return *done > 0;
}

int TlsWire::OnRead(bio_st* bio, char* into, size_t capacity, size_t* done) {
  TlsWire& wire = Of(bio);
  BIO_clear_retry_flags(bio);
  *done = 0;
  if (wire.holds_input()) {
    if (wire.TakeHeld(into, capacity, done)) return 1;
    BIO_set_retry_read(bio);
    return 0;
  }
  if (wire.stream_ == nullptr || !wire.may_read_) {
    BIO_set_retry_read(bio);
    return 0;
  }
  wire.may_read_ = false;
  auto* bytes = reinterpret_cast<uint8_t*>(into);
  wire.last_ = wire.stream_->Read(bytes, capacity);
  if (wire.last_.kind == IoResult::Kind::kOk) {
    *done = wire.records_.Take(bytes, wire.last_.bytes, wire.records_left_);
    if (*done < wire.last_.bytes) [[unlikely]]
      wire.PutIn(bytes + *done, wire.last_.bytes - *done);
    return 1;
  }
  if (wire.last_.kind == IoResult::Kind::kWouldBlock) BIO_set_retry_read(bio);
  return 0;
}

int TlsWire::OnWrite(bio_st* bio, const char* from, size_t size, size_t* done) {
  TlsWire& wire = Of(bio);
  BIO_clear_retry_flags(bio);
  *done = 0;
  if (wire.out_size() + size > kOutBytesMax) return 0;
  wire.out_.insert(wire.out_.end(), from, from + size);
  *done = size;
  return 1;
}

long TlsWire::OnControl(bio_st*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

IoResult TlsWire::Flush(Stream& stream) {
  while (out_size() > 0) {
    iovec part{out_.data() + out_at_, out_size()};
    IoResult result = stream.Write(&part, 1);
    if (result.kind != IoResult::Kind::kOk) return result;
    const bool all = result.bytes == out_size();
    out_at_ += result.bytes;
    if (!all) return {IoResult::Kind::kWouldBlock, 0, 0};
  }
  // Capacity goes back: an idle connection keeps no buffer.
  std::vector<uint8_t>().swap(out_);
  out_at_ = 0;
  return {IoResult::Kind::kOk, 0, 0};
}

}  // namespace sluice::net
