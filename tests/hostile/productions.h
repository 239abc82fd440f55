// Productions: what the grammar is made of. Each adds moves of one kind to a script; connections are called c0 to c3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostile/dice.h"
#include "hostile/move.h"

namespace sluice::hostile {

struct Production {
  const char* name;
  uint64_t weight;  // how often, beside the others
  void (*draw)(Dice& dice, Script& script);
  uint64_t tight = 0;  // the same on the configuration of that name
};

const std::vector<Production>& AllProductions();

// Parts that productions share.
std::string AnyKey(Dice& dice);      // x-key=...
std::string AnyService(Dice& dice);  // :path=... of a call that reaches a backend
std::string AnyConnection(Dice& dice);
void OpenIt(Dice& dice, Script& script, const std::string& connection);
void Wait(Dice& dice, Script& script, uint64_t most);
// A name of a program, with "answer" moves for it.
std::string AnyProgram(Dice& dice, Script& script);

// Productions by file: of what callers send, of frames and time, of backends.
extern const std::vector<Production> kFieldProductions, kFrameProductions, kBackendProductions;

}  // namespace sluice::hostile
