// Expand: variables of the environment in one value of the configuration.
//
//   ${NAME}            its value; an error where it is not set
//   ${NAME:-default}   `default` where it is not set, or empty
//   $${                the two characters ${
//
// Before { two $ are one, so that a run of them can be written; every other $ is itself. What a variable is replaced
// with is not looked at again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::config {

// The value of a variable, or none if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// Bytes of a variable's name, and of a value when all in it has been replaced.
inline constexpr size_t kVariableNameBytesMax = 128;
inline constexpr size_t kExpandedBytesMax = 4096;

// Something in `text` would be replaced.
bool HasVariables(std::string_view text);
// kInvalidArgument, kNotFound: which variable, and what is allowed; never a value of one.
base::Result<std::string> Expand(std::string_view text, const Variables& variables);
// The text that Expand makes `text` of.
std::string EscapeVariables(std::string_view text);

}  // namespace sluice::config
