// MailedPtr: how mail names an object that both its sender and its reader know. No raw pointer goes into mail
// (tests/tidy, "raw pointer in mail").
//
// The object's owner keeps two promises:
//   1. Memory: the object is freed after every mail that names it has been read. An owner that frees an object while
//   the
//      other worker may still write about it, or be written to, waits for its mail to come back
//      (WorkerChannel::HasRead).
//   2. Use: an object that is used again is named anew (Begin) by mail behind all mail about the use before.
//
// A checked build (without NDEBUG: debug, asan, tsan) proves both: the mail carries the number of the use, each half of
// the object has the number that its worker knows, and a mismatch ends the process with words. Other builds carry the
// address alone and compare nothing.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace sluice::runtime {

#ifdef NDEBUG
inline constexpr bool kMailIsChecked = false;
#else
inline constexpr bool kMailIsChecked = true;
#endif

// The uses of an object as one worker knows them; a part of that worker's half of the object.
class MailUse {
 public:
  MailUse() = default;
  MailUse(const MailUse&) = delete;
  MailUse& operator=(const MailUse&) = delete;
  // Volatile: the compiler may not leave out the last write to memory that is freed.
  ~MailUse() {
    if constexpr (kMailIsChecked) *const_cast<volatile uint32_t*>(&number_) = kFreed;
  }

  // The owner's half: the object is used again.
  void Next() {
    if constexpr (kMailIsChecked) ++number_;
  }

 private:
  template <typename T>
  friend class MailedPtr;
  static constexpr uint32_t kFreed = 0xdeadf4ee;

  uint32_t number_ = 0;
};

template <typename T>
class MailedPtr {
 public:
  MailedPtr() = default;
  // `own`: the sender's half of `object`.
  MailedPtr(T& object, const MailUse& own) : object_(&object) {
    if constexpr (kMailIsChecked) use_ = own.number_;
  }

  // The reader: mail about the use that its half knows.
  T& Open(MailUse T::*half) const {
    if constexpr (kMailIsChecked) Expect((object_->*half).number_ == use_);
    return *object_;
  }
  // The reader: the first mail about the next use.
  T& Begin(MailUse T::*half) const {
    if constexpr (kMailIsChecked) Expect(++(object_->*half).number_ == use_);
    return *object_;
  }

 private:
  static void Expect(bool good) {
    if (!good)
      base::CheckFailed("mail names an object that has been freed, or is used for something else", __FILE__, __LINE__);
  }

  T* object_ = nullptr;
#ifndef NDEBUG
  uint32_t use_ = 0;
#else
  static constexpr uint32_t use_ = 0;
#endif
};

}  // namespace sluice::runtime
