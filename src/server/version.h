// The version of this build; the same as in CMakeLists.txt and CHANGELOG.md.
#pragma once

namespace sluice::server {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace sluice::server
