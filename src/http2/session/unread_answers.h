// UnreadAnswers: how many frames that the peer has made us write still wait in the output.
//
// They are counted in two generations: those up to a mark in the output's stream of bytes, and those since. When the
// mark has been written, the second generation becomes the first. So the count is exact where the output drains, and at
// most one generation too high where it never does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace sluice::http2 {

class UnreadAnswers {
 public:
  // Whether Count may be more than 0.
  bool any() const { return (old_ | new_) != 0; }
  // `appended`: bytes of output so far; `waiting`: of these, not written yet.
  uint32_t Count(uint64_t appended, size_t waiting) {
    if (!any()) return 0;
    if (waiting == 0) {
      old_ = new_ = 0;
    } else if (appended - waiting >= mark_) {
      old_ = std::exchange(new_, 0);
      mark_ = appended;
    }
    return old_ + new_;
  }
  // One is about to be appended.
  void Add(uint64_t appended, size_t waiting) {
    Count(appended, waiting);
    ++new_;
  }

 private:
  uint64_t mark_ = 0;
  uint32_t old_ = 0;
  uint32_t new_ = 0;
};

}  // namespace sluice::http2
