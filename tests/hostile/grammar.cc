#include "hostile/grammar.h"

#include <algorithm>
#include <utility>

#include "hostile/dice.h"
#include "hostile/productions.h"

namespace sluice::hostile {

Script Draw(uint64_t seed, const GrammarOptions& options) {
  std::vector<const Production*> pool;
  uint64_t weights = 0;
  auto named = [](const std::vector<std::string>& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const Production& production : AllProductions()) {
    if (!options.only.empty() && !named(options.only, production.name)) continue;
    if (named(options.without, production.name)) continue;
    pool.push_back(&production);
    weights += production.weight;
  }
  Script script;
  if (pool.empty()) return script;
  Dice dice(seed);
  for (uint64_t count = dice.Of<uint64_t>({1, 1, 2, 3}); count > 0; --count) {
    uint64_t at = dice.Below(weights);
    size_t i = 0;
    while (at >= pool[i]->weight) at -= pool[i++]->weight;
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
