#include "upstream/health/state.h"

#include "upstream/health/outcome_cell.h"

namespace sluice::upstream {

std::string_view ToString(HealthState state) {
  switch (state) {
    case HealthState::kUp:
      return "up";
    case HealthState::kSuspect:
      return "suspect";
    case HealthState::kEjected:
      return "ejected";
    case HealthState::kProbing:
      return "probing";
    case HealthState::kWarming:
      return "warming";
    case HealthState::kDraining:
      return "draining";
    case HealthState::kNotServing:
      return "not_serving";
  }
  return "up";
}

std::optional<HealthState> HealthStateOf(std::string_view name) {
  for (size_t i = 0; i < kHealthStates; ++i) {
    if (ToString(static_cast<HealthState>(i)) == name) return static_cast<HealthState>(i);
  }
  return std::nullopt;
}

std::optional<Detector> DetectorOf(std::string_view name) {
  for (size_t i = 0; i < kDetectors; ++i) {
    if (ToString(static_cast<Detector>(i)) == name) return static_cast<Detector>(i);
  }
  return std::nullopt;
}

std::string_view ToString(Detector detector) {
  switch (detector) {
    case Detector::kNone:
      return "none";
    case Detector::kConsecutive:
      return "consecutive";
    case Detector::kStuck:
      return "stuck";
    case Detector::kErrorRate:
      return "error_rate";
    case Detector::kSlow:
      return "slow";
    case Detector::kManual:
      return "manual";
  }
  return "none";
}

std::string_view ToString(Suppression reason) {
  switch (reason) {
    case Suppression::kNone:
      return "none";
    case Suppression::kLast:
      return "last";
    case Suppression::kMinAvailable:
      return "min_available";
    case Suppression::kAllFailing:
      return "all_failing";
  }
  return "none";
}

std::string_view ToString(Cause cause) {
  switch (cause) {
    case Cause::kNone:
      return "none";
    case Cause::kConnect:
      return "no connection";
    case Cause::kNoStream:
      return "its server allows no streams";
    case Cause::kLost:
      return "connection lost";
    case Cause::kReset:
      return "stream reset";
    case Cause::kProtocol:
      return "broke HTTP/2";
    case Cause::kUnavailable:
      return "UNAVAILABLE";
    case Cause::kDeadline:
      return "deadline passed without an answer";
    case Cause::kInternal:
      return "INTERNAL";
    case Cause::kUnknown:
      return "UNKNOWN";
    case Cause::kCancelled:
      return "CANCELLED";
  }
  return "none";
}

}  // namespace sluice::upstream
