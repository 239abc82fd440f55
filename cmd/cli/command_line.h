// What the three programs do alike with CLI11: options whose errors name the wrong word, help for each command, and one
// way to end with a usage error. CLI11's header is heavy: only the files that build a command tree include it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

// Exit code of every program for a wrong command line.
inline constexpr int kUsageError = 2;

// kInvalidArgument with `why`.
base::Error Bad(std::string why);
std::string Quoted(std::string_view text);

// Gives `app`, before commands are added to it, the help flag, the version flag and the layout of the help, which its
// commands inherit. Flags of `app` may also stand after a command.
void SetUp(CLI::App& app, std::string version);
// A flag with one value, shown as `type` in the help; "FILE" is completed with file names. If it is given more than
// once the last one counts. `read` stores the value, or says what is wrong with it.
using ReadValue = std::function<base::Status(std::string_view)>;
CLI::Option* AddValue(CLI::App& app, std::string names, std::string type, std::string help, ReadValue read);
// The same, but each value counts, in their order.
CLI::Option* AddRepeated(CLI::App& app, std::string names, std::string type, std::string help, ReadValue read);
CLI::Option* AddText(CLI::App& app, std::string names, std::string type, std::string help, std::string* out);
CLI::Option* AddSwitch(CLI::App& app, std::string names, std::string help, bool* out);
// The words of `app` that are not flags, stored in `out` as they stand. `shown` says in the help what they are.
CLI::Option* AddWords(CLI::App& app, std::string shown, std::vector<std::string>* out);

// Reads `words`, without the program's name. Empty: done. A text: it is to be printed to the standard output, then the
// program ends (help, version). kInvalidArgument: a usage error, which names the wrong flag.
base::Result<std::string> Parse(CLI::App& app, std::vector<std::string> words);
// After Parse: the words that no command has taken.
std::vector<std::string> Surplus(const CLI::App& app);

}  // namespace sluice::cli
