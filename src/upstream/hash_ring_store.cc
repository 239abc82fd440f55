#include "upstream/hash_ring_store.h"

#include <utility>

#include "base/check.h"

namespace sluice::upstream {

RingStore::~RingStore() {
  for (const auto& block : blocks_) SLUICE_CHECK(block == nullptr);
}

bool RingStore::AddMembers(std::span<std::unique_ptr<const RingMember>> members, std::span<uint16_t> numbers) {
  SLUICE_CHECK(members.size() == numbers.size());
  std::lock_guard lock(mutex_);
  if (members_.size() - free_members_.size() + members.size() > kMembersMax) return false;
  for (size_t i = 0; i < members.size(); ++i) {
    if (free_members_.empty()) {
      numbers[i] = static_cast<uint16_t>(members_.size());
      members_.push_back(std::move(members[i]));
      member_holders_.push_back(1);
      continue;
    }
    numbers[i] = free_members_.back();
    free_members_.pop_back();
    members_[numbers[i]] = std::move(members[i]);
    member_holders_[numbers[i]] = 1;
  }
  return true;
}

void RingStore::Hold(std::span<RingBlock> blocks, std::span<const uint16_t> members) {
  std::lock_guard lock(mutex_);
  for (RingBlock& block : blocks) {
    if (block.size == 0) continue;
    if (block.number != RingBlock::kUnnumbered) {
      ++block_holders_[block.number];
      continue;
    }
    if (free_blocks_.empty()) {
      block.number = static_cast<uint32_t>(blocks_.size());
      blocks_.emplace_back(block.points);
      block_holders_.push_back(1);
      continue;
    }
    block.number = free_blocks_.back();
    free_blocks_.pop_back();
    blocks_[block.number].reset(block.points);
    block_holders_[block.number] = 1;
  }
  for (uint16_t member : members) ++member_holders_[member];
}

void RingStore::Release(std::span<const RingBlock> blocks, std::span<const uint16_t> members) {
  std::lock_guard lock(mutex_);
  for (const RingBlock& block : blocks) {
    if (block.size == 0 || --block_holders_[block.number] != 0) continue;
    blocks_[block.number].reset();
    free_blocks_.push_back(block.number);
  }
  for (uint16_t member : members) {
    if (--member_holders_[member] != 0) continue;
    members_[member].reset();
    free_members_.push_back(member);
  }
}

}  // namespace sluice::upstream
