// RawTls: OpenSSL itself on an end of a stream in memory, for peers that say what our own client and server never say.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "net/stream.h"

namespace sluice::test {

class RawTls {
 public:
  // A client that offers ALPN h2 and believes any certificate.
  explicit RawTls(net::Stream& transport) : transport_(transport) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context_, SSL_VERIFY_NONE, nullptr);
    static const unsigned char kH2[] = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context_, kH2, sizeof kH2);
    ssl_ = SSL_new(context_);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_, in_, out_);
    SSL_set_connect_state(ssl_);
  }
  ~RawTls() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  RawTls(const RawTls&) = delete;
  RawTls& operator=(const RawTls&) = delete;

  SSL* ssl() { return ssl_; }
  // What it wants to send, taken off it.
  std::string Said() {
    char* data = nullptr;
    const long size = BIO_get_mem_data(out_, &data);
    std::string bytes(data, static_cast<size_t>(size));
    (void)BIO_reset(out_);
    return bytes;
  }
  // Sends `bytes` as far as there is room, and hears what has come. True: bytes have passed.
  bool Pass(std::string& bytes) {
    bool passed = false;
    iovec part{bytes.data(), bytes.size()};
    if (!bytes.empty()) {
      if (const net::IoResult result = transport_.Write(&part, 1); result.kind == net::IoResult::Kind::kOk) {
        bytes.erase(0, result.bytes);
        passed = true;
      }
    }
    uint8_t buffer[16384];
    const net::IoResult result = transport_.Read(buffer, sizeof buffer);
    if (result.kind != net::IoResult::Kind::kOk) return passed;
    BIO_write(in_, buffer, static_cast<int>(result.bytes));
    return true;
  }

 private:
  net::Stream& transport_;
  SSL_CTX* context_;
  SSL* ssl_;
  BIO *in_, *out_;
};

}  // namespace sluice::test
