#include "hostile/grammar.h"

#include <algorithm>
#include <utility>

#include "hostile/dice.h"
#include "hostile/productions.h"

namespace sluice::hostile {

std::string VariantOf(const Script& script) {
  return !script.empty() && script.front().verb == "variant" ? script.front().arg(0) : std::string();
}

Script Draw(uint64_t seed, const GrammarOptions& options) {
  const bool tight = seed / kBlock % kBlocks == kBlocks - 1;
  std::vector<const Production*> pool;
  uint64_t weights = 0;
  auto named = [](const std::vector<std::string>& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const Production& production : AllProductions()) {
    if (!options.only.empty() && !named(options.only, production.name)) continue;
    if (named(options.without, production.name)) continue;
    if (tight && production.tight == 0) continue;
    pool.push_back(&production);
    weights += tight ? production.tight : production.weight;
  }
  Script script;
  if (pool.empty()) return script;
  if (tight) script.push_back({"variant", {"tight"}});
  Dice dice(seed);
  for (uint64_t count = dice.Of<uint64_t>({1, 1, 2, 3}); count > 0; --count) {
    uint64_t at = dice.Below(weights);
    size_t i = 0;
    auto weight = [tight](const Production* one) { return tight ? one->tight : one->weight; };
    while (at >= weight(pool[i])) at -= weight(pool[i++]);
    pool[i]->draw(dice, script);
    if (dice.OneIn(2)) script.push_back({"wait", {std::to_string(dice.In(0, 15))}});
  }
  return script;
}

std::vector<std::string> Productions() {
  std::vector<std::string> names;
  for (const Production& production : AllProductions()) names.emplace_back(production.name);
  return names;
}

}  // namespace sluice::hostile
