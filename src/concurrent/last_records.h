// LastRecords: the last records of one thread, which any other may read while that one goes on writing.
//
//   slots   [ n-2 | n-1 | n  (being written) | n-4 | n-3 ]        each a seqlock: version, size, words
//
// Write: the oldest slot's version becomes odd, its words are stored, and the version becomes even. The writer never
//        waits and takes no lock.
// Read:  a slot's words count if its version was that of the expected record before and after; one that was written
//        over meanwhile is left out.
//
// No fences (TSan does not model them): each word is stored with release and loaded with acquire. A reader that sees a
// word of a later record synchronises with it, so its second look at the version sees that record's (Boehm, "Can
// Seqlocks Get Along With Programming Language Memory Models?", 2012). On x86 all of them are plain moves.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"

namespace sluice::concurrent {

// Thread safety: Write on one thread at a time, the rest on any.
class LastRecords {
 public:
  // Keeps `records` (0: none) of at most `bytes_max` each. Their memory is taken with the first record.
  LastRecords(size_t records, size_t bytes_max) : records_(records), words_((bytes_max + kWord - 1) / kWord) {}
  ~LastRecords() { delete[] slots_.load(std::memory_order_relaxed); }
  LastRecords(const LastRecords&) = delete;
  LastRecords& operator=(const LastRecords&) = delete;

  size_t bytes_max() const { return words_ * kWord; }

  // `record`: at most bytes_max().
  void Write(std::span<const uint8_t> record) {
    SLUICE_CHECK(record.size() <= bytes_max());
    if (records_ == 0) return;
    const uint64_t number = written_.load(std::memory_order_relaxed);
    Word* const slot = Slots() + (number % records_) * slot_words();
    slot[kVersion].store(Begun(number), std::memory_order_relaxed);
    slot[kSize].store(record.size(), std::memory_order_release);
    for (size_t at = 0, i = kFirst; at < record.size(); at += kWord, ++i) {
      uint64_t word = 0;
      std::memcpy(&word, record.data() + at, std::min(kWord, record.size() - at));
      slot[i].store(word, std::memory_order_release);
    }
    slot[kVersion].store(Done(number), std::memory_order_release);
    written_.store(number + 1, std::memory_order_release);  // pairs with the load in Read
  }

  // Since the start; the last of them are there.
  uint64_t written() const { return written_.load(std::memory_order_acquire); }

  // Calls fn(std::span<const uint8_t>, aligned to 8) with each record that is there, from the oldest to the newest.
  template <typename Fn>
  void Read(Fn&& fn) const {
    const uint64_t end = written_.load(std::memory_order_acquire);
    const Word* const slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr) return;
    std::vector<uint64_t> copy(words_);
    for (uint64_t number = end > records_ ? end - records_ : 0; number < end; ++number) {
      const Word* const slot = slots + (number % records_) * slot_words();
      if (slot[kVersion].load(std::memory_order_acquire) != Done(number)) continue;
      const uint64_t size = slot[kSize].load(std::memory_order_acquire);
      if (size > bytes_max()) continue;  // of no record that the version below would let pass
      for (size_t i = 0; i * kWord < size; ++i) copy[i] = slot[kFirst + i].load(std::memory_order_acquire);
      if (slot[kVersion].load(std::memory_order_relaxed) != Done(number)) continue;
      fn(std::span<const uint8_t>(reinterpret_cast<const uint8_t*>(copy.data()), size));
    }
  }

 private:
  using Word = std::atomic<uint64_t>;
  static constexpr size_t kWord = sizeof(uint64_t);
  static constexpr size_t kVersion = 0, kSize = 1, kFirst = 2;  // words of a slot

  static uint64_t Begun(uint64_t number) { return 2 * number + 1; }
  static uint64_t Done(uint64_t number) { return 2 * number + 2; }
  size_t slot_words() const { return kFirst + words_; }
  Word* Slots() {
    Word* slots = slots_.load(std::memory_order_relaxed);
    if (slots != nullptr) return slots;
    slots = new Word[records_ * slot_words()];
    slots_.store(slots, std::memory_order_release);  // the words' zeros; pairs with the load in Read
    return slots;
  }

  const size_t records_, words_;
  std::atomic<Word*> slots_{nullptr};
  std::atomic<uint64_t> written_{0};
};

}  // namespace sluice::concurrent
