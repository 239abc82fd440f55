// Doorkeeper: remembers, in two bytes a slot, the keys that lately asked to be let in.
//
// Each word holds the fingerprints of the last four keys that came to it, oldest in the high end; there are slots / 4
// words, so about the last `slots` keys are remembered. A stranger passes for a known key once in 16000 times. Two
// threads that note keys in one word at once may lose one of them: that key is noted again when it comes again.
//
// Thread-safe. Relaxed throughout: nothing hangs on these words but a guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/clock_types.h"

namespace sluice::cache {

template <typename Traits>
class Doorkeeper {
 public:
  // `slots`: a power of two, at least 4. Before Init, Note must not be called.
  void Init(size_t slots) {
    mask_ = slots / 4 - 1;
    words_ = std::make_unique<Word[]>(slots / 4);
  }

  // Whether the key is remembered; it is now, in any case.
  bool Note(const Key128& key) {
    Word& word = words_[key.lo & mask_];
    const uint64_t print = Print(key);
    const uint64_t seen = word.load(std::memory_order_relaxed);
    for (int shift = 0; shift < 64; shift += 16) {
      if (((seen >> shift) & 0xffff) == print) return true;
    }
    word.store((seen << 16) | print, std::memory_order_relaxed);
    return false;
  }

 private:
  using Word = typename Traits::template Atomic<uint64_t>;

  // Bits that neither choose the shard nor the word; never 0, which stands for nothing.
  static uint64_t Print(const Key128& key) {
    const uint64_t print = (key.hi >> 32) & 0xffff;
    return print == 0 ? 1 : print;
  }

  size_t mask_ = 0;
  std::unique_ptr<Word[]> words_;
};

}  // namespace sluice::cache
