// TlsTicketKeys: what a listener seals session tickets with (RFC 5077, RFC 8446 4.6.1). Kept over reloads of
// certificates, so clients resume; changed in time, so that keys taken out of this process's memory open no old
// session.
//
// Thread safety: all of it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace sluice::net {

class TlsTicketKeys {
 public:
  // A key seals for kLifetime and opens for one more: longer than tickets are good for (kTlsSessionLifetime).
  static constexpr std::chrono::hours kLifetime{12};

  struct Key {
    std::array<uint8_t, 16> name;  // in the ticket, in clear
    std::array<uint8_t, 32> cipher;
    std::array<uint8_t, 32> mac;
  };

  TlsTicketKeys();
  ~TlsTicketKeys();
  TlsTicketKeys(const TlsTicketKeys&) = delete;
  TlsTicketKeys& operator=(const TlsTicketKeys&) = delete;

  // Makes a new key when the current one has been in use for kLifetime, counted from the first call.
  void RotateIfDue(base::TimePoint now);
  void Rotate();

  Key current() const;
  enum class Found : uint8_t { kNo, kCurrent, kFormer };
  Found Find(const uint8_t name[16], Key* out) const;

 private:
  static Key NewKey();

  mutable std::mutex mutex_;  // for a copy of 80 bytes; once a handshake
  Key current_, former_;      // under mutex_
  base::TimePoint due_{};     // under mutex_; the epoch: not known yet
};

}  // namespace sluice::net
