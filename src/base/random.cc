#include "base/random.h"

#include <random>

namespace sluice::base {

uint64_t Random::SystemSeed() {
  std::random_device system;
  return system() | uint64_t{system()} << 32;
}

}  // namespace sluice::base
