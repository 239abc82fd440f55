// RingStore: what the rings of one cluster have in common from change to change: blocks of points, and members.
//
// A ring holds the numbers of its blocks and members, and each number counts how many rings hold it. The counts are
// plain numbers side by side, changed under a mutex: to hold a whole ring is one pass over 20 KB, where a counted
// pointer a block would be a few thousand cache misses. docs/hash-ring.md
//
// Thread safety: all functions, any thread. What a ring holds neither moves nor changes, and is read without the mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace sluice::upstream {

// An endpoint with its points on the circle, as long as its name and their number stay.
struct RingMember {
  std::string name;
  std::vector<uint64_t> points;  // ascending, each once
  uint64_t digest = 0;           // its part of HashRing::Digest
};

// The points of one arc of the circle, ascending, and their owners. An empty one has no memory and no number.
struct RingBlock {
  static constexpr uint32_t kUnnumbered = UINT32_MAX;

  const uint64_t* points = nullptr;  // `size` points, then `size` member numbers
  uint32_t size = 0;
  uint32_t number = kUnnumbered;

  // To be filled by the caller. `size` is not 0.
  static RingBlock Make(uint32_t size) {
    return {static_cast<const uint64_t*>(::operator new(size*(sizeof(uint64_t) + sizeof(uint16_t)))), size,
            kUnnumbered};
  }
  const uint16_t* members() const { return reinterpret_cast<const uint16_t*>(points + size); }
};

class RingStore {
 public:
  // Numbers are 16 bits wide; one is no member's.
  static constexpr uint16_t kNoMember = UINT16_MAX;
  static constexpr size_t kMembersMax = UINT16_MAX;

  RingStore() = default;
  ~RingStore();
  RingStore(const RingStore&) = delete;
  RingStore& operator=(const RingStore&) = delete;

  // Numbers for `members`, each held once. False, and nothing has happened, where they would be too many.
  bool AddMembers(std::span<std::unique_ptr<const RingMember>> members, std::span<uint16_t> numbers);
  // Holds each of these once more; a block without a number is taken over and gets one.
  void Hold(std::span<RingBlock> blocks, std::span<const uint16_t> members);
  // Lets go of each; those that are held no longer are freed.
  void Release(std::span<const RingBlock> blocks, std::span<const uint16_t> members);

 private:
  struct Free {
    void operator()(const uint64_t* memory) const { ::operator delete(const_cast<uint64_t*>(memory)); }
  };

  std::mutex mutex_;
  // By number; free numbers are used again, the last one first.
  std::vector<uint32_t> block_holders_, member_holders_;
  std::vector<std::unique_ptr<const uint64_t, Free>> blocks_;
  std::vector<std::unique_ptr<const RingMember>> members_;
  std::vector<uint32_t> free_blocks_;
  std::vector<uint16_t> free_members_;
};

}  // namespace sluice::upstream
