// Quarantine: calls that may be poison, by method and key: connections were lost under them. They share a connection
// with no other call until one of them is answered, or for kTime after the last loss.
//
// A table of kMax; the entry whose time ends first makes room. One a worker; not thread-safe; time is a parameter.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace sluice::proxy {

class Quarantine {
 public:
  static constexpr size_t kMax = 64;
  static constexpr base::Nanos kTime = std::chrono::seconds(10);
  // So many connections lost under calls of one method and key mean quarantine; one where nothing else was on it.
  static constexpr uint32_t kLosses = 2;

  // Whether it may hold anything: for a look that costs nothing.
  bool any(base::TimePoint now) const { return now < until_; }
  bool Holds(uint64_t what, base::TimePoint now) const;
  // A connection was lost with such a call on it, `alone` or beside others.
  void Lost(uint64_t what, bool alone, base::TimePoint now);
  // Such a call was answered, alone on its connection.
  void Answered(uint64_t what);

 private:
  struct Entry {
    uint64_t what = 0;
    base::TimePoint until = base::TimePoint::min();
    uint32_t losses = 0;
  };
  std::array<Entry, kMax> entries_{};
  base::TimePoint until_ = base::TimePoint::min();  // of all
};

}  // namespace sluice::proxy
