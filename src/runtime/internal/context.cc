#include "runtime/internal/context.h"

#include "base/check.h"
#include "runtime/resume.h"

namespace sluice::runtime {
namespace {

constinit thread_local ThreadContext t_context;

}  // namespace

[[gnu::noinline]] ThreadContext& Context() {
  asm volatile("");  // keeps an inter-procedural pass from finding this function constant
  return t_context;
}

[[gnu::noinline]] void ResumeNext(std::coroutine_handle<> next) noexcept {
  asm volatile("");
  SLUICE_DCHECK(t_context.current != nullptr && !t_context.next);
  t_context.next = next;
}

}  // namespace sluice::runtime
