// Paths and authorities: what is taken is what the grammars of PROTOCOL-HTTP2 and RFC 3986 say, and each value has one
// spelling, which is its own.
#include <cstdint>
#include <regex>
#include <string_view>

#include "base/ascii.h"
#include "base/check.h"
#include "proxy/canonical/authority.h"
#include "proxy/canonical/path.h"

namespace sluice::proxy {
namespace {

// Every byte that a server may decode, cut off, merge or resolve.
constexpr std::string_view kMoot = "%?#;\\ \t:@&=+$,!*'()~[]{}|^`\"<>";

void CheckPath(std::string_view path) {
  const bool grpc = IsGrpcPath(path);
  const std::string lenient = LenientPath(path);
  SLUICE_CHECK(lenient.starts_with('/') && lenient.find("//") == lenient.npos);
  SLUICE_CHECK(lenient == base::ToLower(lenient));
  if (path.size() < 200) {  // std::regex recurses
    static const std::regex* const rule = new std::regex("/[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*/[A-Za-z0-9_-]+");
    SLUICE_CHECK(grpc == std::regex_match(path.begin(), path.end(), *rule));
  }
  if (!grpc) return;
  SLUICE_CHECK(path.find_first_of(kMoot) == path.npos);
  SLUICE_CHECK(lenient == base::ToLower(path));
}

void CheckAuthority(std::string_view authority) {
  const auto canonical = CanonicalAuthority(authority);
  if (IsCanonicalAuthority(authority)) SLUICE_CHECK(canonical == authority);
  if (!canonical) return;
  SLUICE_CHECK(canonical->find_first_of("%?#;\\/ \t@&=+$,!*'()~{}|^`\"<>") == canonical->npos);
  SLUICE_CHECK(*canonical == base::ToLower(*canonical));
  SLUICE_CHECK(CanonicalAuthority(*canonical) == canonical);
  SLUICE_CHECK(canonical->starts_with('[') || IsCanonicalAuthority(*canonical));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckPath(text);
  CheckAuthority(text);
  return 0;
}

}  // namespace sluice::proxy
