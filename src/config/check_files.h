// CheckFiles: whether the files that a configuration names are there, each with the place that names it.
#pragma once

#include "config/config.h"

namespace sluice::config {

// Of a result without errors: each file that a start needs and that cannot be read becomes an error, each that is read
// later and is not there now a warning, in the order of the files. With an error the result has no configuration any
// more. Blocks.
void CheckFiles(ParseResult* result);

// "file:line:column: path" of the first key that names `file`; empty: none does.
std::string PlaceOfFile(const ParseResult& result, std::string_view file);
// The same of the file that `text`, an error of a start, names; empty: it names none of the configuration's.
std::string PlaceOfFileIn(const ParseResult& result, std::string_view text);

}  // namespace sluice::config
