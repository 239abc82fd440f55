// WaitUntil: the one place where a test waits: for a state it can observe, looked at again and again, bounded.
#pragma once

#include <chrono>
#include <thread>

namespace sluice::integration {

// Far more than any wait here should take on a loaded machine; reaching it is a failure.
inline constexpr std::chrono::seconds kLongWait{30};

// True as soon as `holds()` is; false if it is not within `bound`.
template <typename Holds>
[[nodiscard]] bool WaitUntil(Holds&& holds, std::chrono::milliseconds bound = kLongWait) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace sluice::integration
