// CHECK: a bug of ours stops the process, loudly. Never for what a peer or a file may cause.
#pragma once

namespace sluice::base {

// Prints the expression and its place to stderr and aborts.
[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);

}  // namespace sluice::base

#define SLUICE_CHECK(condition) \
  (__builtin_expect(!!(condition), 1) ? (void)0 : ::sluice::base::CheckFailed(#condition, __FILE__, __LINE__))

#ifndef NDEBUG
#define SLUICE_DCHECK(condition) SLUICE_CHECK(condition)
#else
#define SLUICE_DCHECK(condition) ((void)sizeof(!(condition)))
#endif
