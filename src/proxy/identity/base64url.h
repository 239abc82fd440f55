// Base64url without padding, as JOSE has it (RFC 7515 2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::proxy {

// None: another character than A-Z a-z 0-9 - _, a length that no bytes have, or bits behind the last byte that are not
// 0: each text of bytes has one spelling. Any thread.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace sluice::proxy
