// Grammar: the scripts of hostile callers and backends, drawn from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostile/move.h"

namespace sluice::hostile {

struct GrammarOptions {
  // Productions (their names are in grammar.cc) that are drawn, or left out; empty: all, or none.
  std::vector<std::string> only, without;
};

// Seeds come in blocks of kBlock; one block in kBlocks is played on another configuration, which the script's first
// move names ("variant tight"), with productions that are made for it.
inline constexpr uint64_t kBlock = 50, kBlocks = 10;
// The configuration that a script is for; empty: the usual one.
std::string VariantOf(const Script& script);

// The script of a seed: one to three productions. The same seed and options give the same script.
Script Draw(uint64_t seed, const GrammarOptions& options);
std::vector<std::string> Productions();

}  // namespace sluice::hostile
