#include "concurrent/reader_thread.h"

#include <atomic>

#include "base/check.h"

namespace sluice::concurrent {
namespace {

thread_local SharedRead* innermost = nullptr;
thread_local uint64_t token = 0;

}  // namespace

__attribute__((noinline)) uint64_t ReaderThread::Token() {
  static std::atomic<uint64_t> last{0};
  if (token == 0) token = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return token;
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
