// The states of an endpoint's health, what may move it from one to another, and the record of such changes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace sluice::upstream {

// docs/health.md draws the changes.
enum class HealthState : uint8_t {
  kUp,          // takes its calls
  kSuspect,     // there is evidence; takes its calls, of a slow one a quarter
  kEjected,     // takes no calls while another endpoint can
  kProbing,     // the same, and a connection to it is being tried
  kWarming,     // back, or new in the list: takes a growing share of its keys
  kDraining,    // the list says so; not judged
  kNotServing,  // its health service says so: takes no calls while another endpoint can
};
inline constexpr size_t kHealthStates = 7;
std::string_view ToString(HealthState state);
// nullopt: there is none of that name.
std::optional<HealthState> HealthStateOf(std::string_view name);

// What an endpoint's port has done with connections. A port that refuses one has no listener, and the next listener is
// another process.
enum class EndpointPort : uint8_t { kSame, kRefused, kRestarted };

// What an ejection is for.
enum class Detector : uint8_t { kNone, kConsecutive, kStuck, kErrorRate, kSlow, kManual };
inline constexpr size_t kDetectors = 6;
std::string_view ToString(Detector detector);
std::optional<Detector> DetectorOf(std::string_view name);

// Why an ejection was not made.
enum class Suppression : uint8_t { kNone, kLast, kMinAvailable, kAllFailing };
inline constexpr size_t kSuppressions = 4;
std::string_view ToString(Suppression reason);

struct HealthChange {
  base::TimePoint at;
  std::string endpoint;
  HealthState from, to;
  std::string why;  // the evidence: "5 failures in a row: connection lost"
};

// The last changes, oldest first. One thread at a time.
class ChangeLog {
 public:
  static constexpr size_t kChangesMax = 64;

  void Add(HealthChange change) {
    ++to_[static_cast<size_t>(change.to)];
    if (changes_.size() == kChangesMax) changes_.pop_front();
    changes_.push_back(std::move(change));
    ++total_;
  }
  const std::deque<HealthChange>& changes() const { return changes_; }
  uint64_t total() const { return total_; }
  // How many there were to each state.
  const std::array<uint64_t, kHealthStates>& to() const { return to_; }

 private:
  std::deque<HealthChange> changes_;
  uint64_t total_ = 0;
  std::array<uint64_t, kHealthStates> to_{};
};

}  // namespace sluice::upstream
