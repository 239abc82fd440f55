// Text: putting messages together. (absl::StrCat of this platform's absl takes no std::string_view.)
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace sluice::config {

inline void AppendPiece(std::string* out, std::string_view piece) { out->append(piece); }
template <std::integral T>
void AppendPiece(std::string* out, T number) {
  out->append(std::to_string(number));
}

template <typename... Pieces>
std::string Cat(const Pieces&... pieces) {
  std::string out;
  (AppendPiece(&out, pieces), ...);
  return out;
}

inline std::string Join(std::span<const std::string_view> words) {
  std::string out;
  for (std::string_view word : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

}  // namespace sluice::config
