// Move: one act of the hostile caller or backend, as a line of text that can be played again. A Script is a list of
// moves: what a seed draws, what is cut down when it fails, and what a test in scripts/ is.
//
//   open c1 plain
//   call c1 end :path=/t.Good/Unary x-bin=%%%
//   wait 20
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::hostile {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Move {
  std::string verb;
  std::vector<std::string> args;

  std::string arg(size_t i) const { return i < args.size() ? args[i] : std::string(); }
  long number(size_t i) const;
  // The arguments from `from` on as name=value; the first "=" divides them.
  Fields fields(size_t from) const;
};
using Script = std::vector<Move>;

// name=value, as fields() reads it.
std::string FieldArg(std::string_view name, std::string_view value);

// A line for each move. Words are divided by blanks; other bytes than printable ASCII, and blank, backslash and '#'
// at the beginning of a line, are written \xHH; a run of 16 or more of the same byte is \{N:HH}.
std::string Print(const Script& script);
// Empty lines and those that begin with '#' are left out. False: `error` says which line is none.
bool Parse(std::string_view text, Script& script, std::string& error);

}  // namespace sluice::hostile
