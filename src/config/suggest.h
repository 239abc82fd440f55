// Suggest: the known word a misspelt one was probably meant to be.
#pragma once

#include <string_view>
#include <vector>

namespace sluice::config {

// Empty if none is near: at most two edits, and fewer than half the word. Ties go to the first.
std::string_view Suggest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace sluice::config
