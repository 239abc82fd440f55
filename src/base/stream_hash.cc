#include "base/stream_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>

namespace sluice::base {

static_assert(sizeof(XXH64_state_t) <= 88 && alignof(XXH64_state_t) <= 8);

namespace {

XXH64_state_t* StateOf(std::array<std::byte, 88>& bytes) {
  return std::launder(reinterpret_cast<XXH64_state_t*>(bytes.data()));
}

}  // namespace

StreamHash::StreamHash() : state_{} { XXH64_reset(new (state_.data()) XXH64_state_t, 0); }

void StreamHash::Add(std::string_view bytes) {
  if (!bytes.empty()) XXH64_update(StateOf(state_), bytes.data(), bytes.size());
}

uint64_t StreamHash::Value() const {
  std::array<std::byte, 88> copy = state_;
  return XXH64_digest(StateOf(copy));
}

}  // namespace sluice::base
