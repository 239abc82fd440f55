// Wire: a nonblocking TCP connection on loopback, plain or with TLS, that keeps what the peer does not take.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "hostile/loop.h"

namespace sluice::hostile {

class Wire {
 public:
  using OnBytes = std::function<void(std::string_view)>;
  using OnEnd = std::function<void(const std::string& why)>;

  // `on_end` is called once, when the peer has ended the connection, and never after Close or Abort. Both may destroy
  // the wire.
  Wire(Loop& loop, OnBytes on_bytes, OnEnd on_end);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Connects to 127.0.0.1. With `tls`: as a client of TLS with ALPN h2. False: the kernel refuses.
  bool Connect(uint16_t port, SSL_CTX* tls = nullptr);
  void Take(int fd);  // a connection that was accepted

  void Send(std::string_view bytes);
  // Past TLS: what the peer reads as records.
  void SendRaw(std::string_view bytes);
  // Asks the peer for new keys, and changes ours (TLS 1.3). Before the handshake's end: nothing.
  void UpdateKeys();
  void Close();  // FIN; what waits is dropped
  void Abort();  // RST
  void HalfClose();
  // Whether the peer's bytes are taken from the kernel.
  void Read(bool on);

  bool open() const { return fd_ >= 0; }
  size_t waiting() const { return out_.size() - sent_; }

 private:
  void Handle(uint32_t events);
  bool Fill();
  void Flush();
  void Ended(const std::string& why);
  void Arm();
  bool Handshaken();

  Loop& loop_;
  OnBytes on_bytes_;
  OnEnd on_end_;
  int fd_ = -1;
  SSL* ssl_ = nullptr;
  bool reading_ = true, wants_write_ = false;
  bool* gone_ = nullptr;  // set where the wire is destroyed within Handle
  std::string out_;
  size_t sent_ = 0;
};

// Listens on a free port of 127.0.0.1 and gives each connection to `accepted`.
class Listener {
 public:
  Listener(Loop& loop, std::function<void(int fd)> accepted);
  ~Listener();
  uint16_t port() const { return port_; }

 private:
  Loop& loop_;
  int fd_ = -1;
  uint16_t port_ = 0;
};

// A port of 127.0.0.1 that nothing listens on now.
uint16_t FreePort();

}  // namespace sluice::hostile
