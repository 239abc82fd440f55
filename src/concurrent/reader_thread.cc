#include "concurrent/reader_thread.h"

#include <pthread.h>

#include <atomic>

#include "base/check.h"

namespace sluice::concurrent {
namespace {

thread_local SharedRead* innermost = nullptr;
thread_local uint64_t token = 0;

struct Stack {
  uintptr_t lowest = 0;
  size_t bytes = 0;
};

// pthread_getattr_np(3): for the main thread as far as the stack may grow.
Stack OwnStack() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  Stack stack;
  if (::pthread_attr_getstack(&attributes, &lowest, &stack.bytes) == 0) {
    stack.lowest = reinterpret_cast<uintptr_t>(lowest);
  }
  ::pthread_attr_destroy(&attributes);
  return stack;
}

}  // namespace

__attribute__((noinline)) uint64_t ReaderThread::Token() {
  static std::atomic<uint64_t> last{0};
  if (token == 0) token = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return token;
}

// Asked for by writers that find a reader inside, so nothing is kept.
__attribute__((noinline)) bool ReaderThread::OnThisStack(uint64_t address) {
  const Stack stack = OwnStack();
  return address - stack.lowest < stack.bytes;
}

__attribute__((noinline)) void ReaderThread::Push(SharedRead& read) {
  read.outer = innermost;
  innermost = &read;
}

__attribute__((noinline)) void ReaderThread::Pop(SharedRead& read) {
  SLUICE_CHECK(innermost == &read);
  innermost = read.outer;
}

__attribute__((noinline)) bool ReaderThread::Reads(const void* data) {
  for (const SharedRead* read = innermost; read != nullptr; read = read->outer) {
    if (read->data == data) return true;
  }
  return false;
}

}  // namespace sluice::concurrent
