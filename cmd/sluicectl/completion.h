// Completion: what may stand where the shell's cursor is. The scripts in deploy/completion ask the program itself, with
// `sluicectl __complete WORD...`; the last word is the one under the cursor, and may be empty. The answer is a
// candidate in each line, then a tab and what it is; or ":files", for the names of files.
#pragma once

#include "sluicectl/args.h"

namespace CLI {
class App;
}

namespace sluice::ctl {

inline constexpr std::string_view kCompleteCommand = "__complete";
// Type names of a command's words: their candidates are to be asked of the daemon. Any other type name is the
// candidates, with blanks between them.
inline constexpr const char* kOfferClusters = ":clusters";
inline constexpr const char* kOfferEndpoints = ":endpoints";  // a cluster first, then those that are in its list
inline constexpr const char* kOfferLimits = ":limits";
inline constexpr const char* kOfferRoutes = ":routes";
inline constexpr const char* kOfferFaults = ":faults";
inline constexpr const char* kOfferFiles = ":files";  // names of files, which the shell knows

// `words`: after __complete. The answer becomes kPrint with a text; or one of kComplete*.
void Complete(const CLI::App& root, const std::vector<std::string>& words, Args* answer);

}  // namespace sluice::ctl
