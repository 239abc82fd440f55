#include "http2/fields/grpc_type.h"

#include <algorithm>

#include "base/ascii.h"

namespace sluice::http2 {
namespace {

constexpr size_t kFormatBytesMax = 64;

// True, and the front is gone, if `text` begins with it.
bool Take(std::string_view front, std::string_view* text) {
  if (text->size() < front.size() || !base::EqualsIgnoreCase(text->substr(0, front.size()), front)) return false;
  text->remove_prefix(front.size());
  return true;
}

// A word that may stand in a content-type of ours.
bool IsFormat(std::string_view text) {
  return text.size() <= kFormatBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '_' || c == '+';
         });
}

}  // namespace

GrpcType ParseGrpcType(std::string_view rest) {
  using Kind = GrpcType::Kind;
  rest = rest.substr(0, rest.find(';'));
  while (!rest.empty() && base::IsBlank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && base::IsBlank(rest.back())) rest.remove_suffix(1);
  if (!Take("application/grpc", &rest)) return {};
  Kind kind = Kind::kGrpc;
  if (Take("-web", &rest)) {
    kind = Take("-text", &rest) ? Kind::kWebText : Kind::kWeb;
    if (kind == Kind::kWebText) Take("-base64", &rest);  // the default encoding, which may be named
  }
  if (rest.empty()) return {kind, {}};
  if (rest.size() == 1 || rest.front() != '+') return {};
  rest.remove_prefix(1);
  return {kind, IsFormat(rest) ? rest : std::string_view()};
}

}  // namespace sluice::http2
