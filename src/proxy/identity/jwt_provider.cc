#include "proxy/identity/jwt_provider.h"

#include <array>

#include "base/random.h"

namespace sluice::proxy {
namespace {

// Behind the faults: no token was needed, or the table knew it.
constexpr size_t kAbsent = kJwtFaults, kKnown = kJwtFaults + 1, kResults = kJwtFaults + 2;

std::vector<std::unique_ptr<JwtTable>> MakeTables(uint32_t workers, uint32_t tokens_max) {
  std::vector<std::unique_ptr<JwtTable>> out;
  const uint64_t seed = base::Random::SystemSeed();
  for (uint32_t i = 0; i < workers; ++i) out.push_back(std::make_unique<JwtTable>(tokens_max / workers, seed));
  return out;
}

}  // namespace

JwtProvider::JwtProvider(JwtProviderOptions options, std::shared_ptr<const KeySet> keys, WallClock wall,
                         uint32_t workers, metrics::Registry& registry)
    : options_(std::move(options)),
      wall_(std::move(wall)),
      tables_(MakeTables(workers, options_.tokens_max)),
      keys_(std::move(keys)) {
  std::array<std::string_view, kResults> results;
  for (size_t i = 0; i < kJwtFaults; ++i) results[i] = ToString(static_cast<JwtFault>(i));
  results[kAbsent] = "absent";
  results[kKnown] = "known";
  calls_ = registry.AddCounters("sluice_jwt_calls_total", "Calls that met a gate for JWTs, by its result.",
                                {{"provider", options_.name}}, "result", results, metrics::Show::kTouched);
}

void JwtProvider::PutKeys(std::shared_ptr<const KeySet> keys) {
  std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const KeySet> JwtProvider::keys() const { return Current().set; }

JwtProvider::Keys JwtProvider::Current() const {
  std::lock_guard lock(mutex_);
  return {keys_, generation_.load(std::memory_order_relaxed)};
}

JwtFault JwtProvider::Check(std::string_view token, uint32_t worker, base::TimePoint now, FailedChecks& failed,
                            const VerifiedJwt** jwt) const {
  JwtTable& table = *tables_[worker];
  const int64_t wall = wall_();
  *jwt = table.Find(token, generation_.load(std::memory_order_acquire));
  if (*jwt != nullptr) [[likely]] {
    const JwtFault fault = (*jwt)->At(wall);
    if (fault == JwtFault::kNone) [[likely]]
      calls_[kKnown].Add(worker);
    else
      CountFault(fault, worker);
    return fault;
  }
  if (!failed.May(now)) {
    CountFault(JwtFault::kUnchecked, worker);
    return JwtFault::kUnchecked;
  }
  const Keys keys = Current();
  VerifiedJwt verified;
  uint32_t tried = 0;
  const JwtFault fault = VerifyJwt(token, options_, *keys.set, wall, &verified, &tried);
  if (fault != JwtFault::kNone && tried > 0) failed.Charge(tried, now);
  CountFault(fault, worker);
  if (fault == JwtFault::kNone) *jwt = table.Put(token, keys.generation, std::move(verified));
  return fault;
}

void JwtProvider::Count(Unchecked what, uint32_t worker) const {
  switch (what) {
    case Unchecked::kAbsent:
      return calls_[kAbsent].Add(worker);
    case Unchecked::kMissing:
      return CountFault(JwtFault::kMissing, worker);
    case Unchecked::kRepeated:
      return CountFault(JwtFault::kRepeated, worker);
    case Unchecked::kMalformed:
      return CountFault(JwtFault::kMalformed, worker);
  }
}

void JwtProvider::CountFault(JwtFault fault, uint32_t worker) const { calls_[static_cast<size_t>(fault)].Add(worker); }

}  // namespace sluice::proxy
