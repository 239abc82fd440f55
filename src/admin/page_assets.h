// What the pages load beside themselves, from the same port: a style sheet, a script that renews them, an icon.
#pragma once

#include <string_view>

namespace sluice::admin {

// At /style.css.
std::string_view PageStyle();
// At /refresh.js: a page that is looked at is renewed in place.
std::string_view RefreshScript();
// At /icon.svg.
std::string_view PageIcon();

}  // namespace sluice::admin
