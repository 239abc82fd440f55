// Record: what a run has seen: the faults found, a hash of all that the proxy has written and when, and, if asked for,
// a trace to read.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"

namespace sluice::chaos {

class Record {
 public:
  Record(const base::ManualClock& clock, bool trace) : clock_(clock), start_(clock.Now()), trace_(trace) {}

  bool traces() const { return trace_; }
  // One line of the trace. Make `what` only if traces().
  void Say(std::string_view speaker, std::string_view what) const {
    if (trace_)
      std::printf("%10.3f ms  %-12.*s %.*s\n", Millis(), Width(speaker), speaker.data(), Width(what), what.data());
  }
  // The proxy has written `bytes` on its connection number `connection`.
  void Wrote(uint64_t connection, std::string_view bytes) {
    hash_ = base::Hash64(
        bytes, base::Hash64(connection, hash_ ^ static_cast<uint64_t>(clock_.Now().time_since_epoch().count())));
    bytes_ += bytes.size();
  }
  void Fault(std::string what) {
    Say("FAULT", what);
    if (faults_.size() < kFaultsMax) faults_.push_back(std::move(what));
  }
  const std::vector<std::string>& faults() const { return faults_; }
  uint64_t hash() const { return hash_; }
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kFaultsMax = 20;
  static int Width(std::string_view text) { return static_cast<int>(text.size()); }
  double Millis() const { return static_cast<double>((clock_.Now() - start_).count()) / 1e6; }

  const base::ManualClock& clock_;
  const base::TimePoint start_;
  const bool trace_;
  std::vector<std::string> faults_;
  uint64_t hash_ = 0, bytes_ = 0;
};

}  // namespace sluice::chaos
