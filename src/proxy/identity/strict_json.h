// ParseStrictJson: RFC 8259 text as a tree, for what a stranger sends. No member twice (RFC 8725 2.4: parsers differ in
// which one they take), no more depth, values or bytes than a caller allows.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::proxy {

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kDecimal, kString, kArray, kObject } kind = Kind::kNull;
  // kString: unescaped UTF-8, which may have any character. kInteger: its digits; kDecimal: as it was written.
  std::string text;
  bool truth = false;              // kBool
  double number = 0;               // kInteger, kDecimal
  std::vector<JsonValue> items;    // kArray; kObject: the values
  std::vector<std::string> names;  // kObject

  // Of an object; null: it has no such member, or is none.
  const JsonValue* Find(std::string_view name) const;
  bool is_string() const { return kind == Kind::kString; }
};

// An issuer may hand out claims that are deep (policies) or wide (a member for each of 300 clients).
inline constexpr size_t kJsonDepthMax = 32;
inline constexpr size_t kJsonValuesMax = 8192;

// None: it is no JSON, or not within the bounds; the latter sets *beyond, which may be null.
std::optional<JsonValue> ParseStrictJson(std::string_view text, bool* beyond = nullptr);

}  // namespace sluice::proxy
