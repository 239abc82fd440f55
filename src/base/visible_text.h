// VisibleText: text that came from outside, as text that can be shown and is what it looks like.
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// UTF-8 of characters that show: all bytes that are not, as "\x1b". Those are bytes that are no UTF-8 (RFC 3629),
// control characters, what is no character at all (U+FFFE and the like), and what changes the direction of the text
// around it (U+202E and the like), with which one name can look like another.
std::string VisibleText(std::string_view text);

}  // namespace sluice::base
