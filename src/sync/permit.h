// Permit: units taken from a semaphore; the destructor gives them back. Ownership is this object,
// never a thread.
//
// Not thread-safe; may be moved to and destroyed on any thread, also after its semaphore was broken or destroyed:
// units held keep the semaphore's state alive (sync/semaphore_core.h). Nothing here suspends.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace sluice::sync {

template <typename Core>
class [[nodiscard]] BasicPermit {
 public:
  using Units = int64_t;

  BasicPermit() = default;
  // Adopts `units` that the caller has taken from `core`.
  BasicPermit(Core& core, Units units) : core_(&core), units_(units) {}
  BasicPermit(BasicPermit&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), units_(std::exchange(other.units_, 0)) {}
  // The units of this one go back first: so a new grant onto an old permit leaks nothing.
  BasicPermit& operator=(BasicPermit&& other) noexcept {
    if (this == &other) return *this;
    Return();
    core_ = std::exchange(other.core_, nullptr);
    units_ = std::exchange(other.units_, 0);
    return *this;
  }
  ~BasicPermit() { Return(); }

  Units units() const { return units_; }

  // A second permit with `units` of this one's. Empty, and nothing changed, if this has fewer. units >= 0.
  std::optional<BasicPermit> Split(Units units) {
    if (units < 0 || units > units_) return std::nullopt;
    units_ -= units;
    return BasicPermit(core_, units);
  }
  // Takes over the units of `other`, which is empty then. False, and nothing changed, if it is of another semaphore.
  [[nodiscard]] bool Merge(BasicPermit&& other) {
    if (this == &other) return true;
    if (other.units_ == 0) return true;
    if (units_ > 0 && core_ != other.core_) return false;
    core_ = other.core_;
    units_ += std::exchange(other.units_, 0);
    return true;
  }
  // Gives back some now. False, and nothing changed, if this has fewer. units >= 0.
  [[nodiscard]] bool GiveBack(Units units) {
    if (units < 0 || units > units_) return false;
    units_ -= units;
    if (units > 0) core_->Give(units);
    return true;
  }
  // Hands the units to the caller, which may Signal them to the semaphore if it still lives. Returns how many.
  Units Forget() {
    const Units units = std::exchange(units_, 0);
    if (units > 0) core_->Forget(units);
    return units;
  }

 private:
  BasicPermit(Core* core, Units units) : core_(core), units_(units) {}
  void Return() {
    // A permit without units does not touch the core: it does not keep it alive either.
    if (const Units units = std::exchange(units_, 0); units > 0) core_->Give(units);
  }

  Core* core_ = nullptr;
  Units units_ = 0;
};

}  // namespace sluice::sync
