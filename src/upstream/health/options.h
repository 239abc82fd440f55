// Options of ejection, slow start and active health. Parsed by config, documented in config/reference.yaml and
// docs/health.md.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::upstream {

// Time to first byte far above that of the other endpoints.
struct SlowOptions {
  // Above this multiple of the others' median; 0: this detector is off.
  double factor = 2.5;
  // And at least this much above it.
  std::chrono::milliseconds floor{10};
  bool operator==(const SlowOptions&) const = default;
};

struct EjectionOptions {
  // False: nothing is counted and no endpoint is ejected but by RPC.
  bool enabled = true;
  // Failures in a row of the endpoint's own making; 0: this detector is off.
  uint32_t consecutive = 5;
  // The endpoint's error rate is above the others' by this much, at 99% confidence on both sides; 0: this detector is
  // off.
  double error_rate = 0.1;
  // Calls are out and none is answered for this long, or for ten times the others' 99th percentile if that is more,
  // while the others answer; 0: this detector is off.
  std::chrono::milliseconds stuck{50};
  SlowOptions slow;
  // The share of the cluster's weight that stays in rotation whatever the detectors say; the last endpoint stays
  // in any case.
  double min_available = 0.5;
  // An ejected endpoint is probed after this, again and again, with 20% jitter. Doubled up to max with each ejection
  // that follows a return which no call that may be repeated has tried.
  std::chrono::milliseconds base{1000};
  std::chrono::milliseconds max{60000};
  bool operator==(const EjectionOptions&) const = default;
};

// An endpoint that comes back, or to a list that others serve, takes a share of its keys that grows from `first` to all
// of them.
struct SlowStartOptions {
  // 0: it takes all at once.
  std::chrono::milliseconds window{30000};
  // The share that it begins with.
  double first = 0.05;
  bool operator==(const SlowStartOptions&) const = default;
};

// How the endpoints are asked for their own word, by grpc.health.v1.
enum class HealthMode : uint8_t { kOff, kWatch, kCheck };
inline constexpr std::array<std::string_view, 3> kHealthModes = {"off", "watch", "check"};
inline std::string_view ToString(HealthMode mode) { return kHealthModes[static_cast<size_t>(mode)]; }

struct HealthOptions {
  HealthMode mode = HealthMode::kOff;
  // Asked for; empty: the server as a whole. At most kServiceBytesMax.
  std::string service;
  static constexpr size_t kServiceBytesMax = 1024;
  // Between two Checks, with 20% jitter; of `watch` where the server has no Watch.
  std::chrono::milliseconds interval{10000};
  // A Check, and the first answer to a Watch, must come in this time.
  std::chrono::milliseconds timeout{1000};
  // So many Checks in a row must fail, or pass, before they are believed.
  uint32_t fall = 3;
  uint32_t rise = 2;
  bool operator==(const HealthOptions&) const = default;
};

}  // namespace sluice::upstream
