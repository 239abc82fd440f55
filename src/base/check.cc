#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice::base {

void CheckFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace sluice::base
