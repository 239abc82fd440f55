#include "proxy/canonical/field_name.h"

#include <algorithm>
#include <string>

namespace sluice::proxy {

bool IsAliasOfKnown(std::string_view name) {
  constexpr size_t kLongest = 64;  // of the names with a Token, and more
  if (name.size() > kLongest || name.find('_') == name.npos) return false;
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return http2::TokenOf(dashed) != http2::Token::kOther;
}

}  // namespace sluice::proxy
