// Text that came from outside as text that can be shown and is what it looks like. Values in, text out.
#pragma once

#include <string>
#include <string_view>

#include "base/visible_text.h"

namespace sluice::admin {

using base::VisibleText;

// For text between tags and in quoted attributes of HTML and XML: visible, and & < > " ' as entities.
std::string EscapeHtml(std::string_view text);
// A string of JSON with its quotes (RFC 8259 7), visible.
std::string JsonString(std::string_view text);
// For a value in the query of a link: all but letters, digits, "-", "_", "." and "~" as %XX (RFC 3986 2.1).
std::string EscapeQuery(std::string_view text);

}  // namespace sluice::admin
