// ReadText: a file's text, if it is no longer than a configuration may be.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace sluice::config {

inline constexpr size_t kFileBytesMax = 16 * 1024 * 1024;

// kIo, with why. One byte above kFileBytesMax is enough for the parser to refuse it, also from a file without end.
// Blocks, for as long as a pipe has no writer.
base::Result<std::string> ReadText(const std::string& path);
// The same of a file that another one names. A pipe is an error: a reload would wait for its writer for ever.
base::Result<std::string> ReadNamedText(const std::string& path);

}  // namespace sluice::config
