#include "proxy/identity/jwt_table.h"

#include <algorithm>

#include "base/hash.h"

namespace sluice::proxy {

JwtTable::JwtTable(size_t max, uint64_t seed) : sets_(std::max<size_t>(1, (max + kWays - 1) / kWays)), seed_(seed) {}

// A good signature is as random as a hash, and 16 of its characters are enough of it. Only good tokens are in the
// table, so a stranger cannot crowd a set.
uint64_t JwtTable::HashOf(std::string_view token) const {
  constexpr size_t kBytes = 16;
  return base::Hash64(token.substr(token.size() - std::min(token.size(), kBytes)), seed_);
}

const VerifiedJwt* JwtTable::Renew(uint64_t generation) {
  if (generation != generation_) {
    generation_ = generation;
    entries_.clear();
    entries_.shrink_to_fit();
  }
  return nullptr;
}

const VerifiedJwt* JwtTable::Put(std::string_view token, uint64_t generation, VerifiedJwt jwt) {
  if (generation != generation_) Renew(generation);
  if (entries_.empty()) entries_.resize(sets_ * kWays);
  const uint64_t hash = HashOf(token);
  Entry* const set = SetOf(hash);
  Entry& entry = *std::min_element(set, set + kWays, [](const Entry& a, const Entry& b) { return a.used < b.used; });
  entry.hash = hash;
  entry.used = ++uses_;
  entry.token = token;
  entry.jwt = std::move(jwt);
  return &entry.jwt;
}

size_t JwtTable::size() const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.used != 0; }));
}

}  // namespace sluice::proxy
