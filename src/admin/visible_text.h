// Text that came from outside as text that can be shown and is what it looks like. Values in, text out.
#pragma once

#include <string>
#include <string_view>

namespace sluice::admin {

// UTF-8 of characters that show: all bytes that are not, as "\x1b". Those are bytes that are no UTF-8 (RFC 3629),
// control characters, what is no character at all (U+FFFE and the like), and what changes the direction of the text
// around it (U+202E and the like), with which one name can look like another.
std::string VisibleText(std::string_view text);

// For text between tags and in quoted attributes of HTML and XML: visible, and & < > " ' as entities.
std::string EscapeHtml(std::string_view text);
// A string of JSON with its quotes (RFC 8259 7), visible.
std::string JsonString(std::string_view text);
// For a value in the query of a link: all but letters, digits, "-", "_", "." and "~" as %XX (RFC 3986 2.1).
std::string EscapeQuery(std::string_view text);

}  // namespace sluice::admin
