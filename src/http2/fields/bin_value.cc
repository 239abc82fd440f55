#include "http2/fields/bin_value.h"

#include <array>

namespace sluice::http2 {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 64;

constexpr std::array<uint8_t, 256> MakeDigits() {
  std::array<uint8_t, 256> digits{};
  for (uint8_t& digit : digits) digit = kNone;
  for (size_t i = 0; i < kAlphabet.size(); ++i) digits[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return digits;
}
constexpr std::array<uint8_t, 256> kDigits = MakeDigits();

uint8_t Digit(char c) { return kDigits[static_cast<uint8_t>(c)]; }

// `value` without its padding. None: no base64.
std::optional<std::string_view> Characters(std::string_view value) {
  if (value.ends_with('=')) {
    if (value.size() % 4 != 0) return std::nullopt;
    value.remove_suffix(value.ends_with("==") ? 2 : 1);
    // "Y===" and "===="; "YWJj" has no room for padding.
    if (value.size() % 4 < 2) return std::nullopt;
  }
  if (value.size() % 4 == 1) return std::nullopt;
  uint8_t seen = 0;
  for (char c : value) seen |= Digit(c);
  if ((seen & kNone) != 0) return std::nullopt;
  return value;
}

// Bits of the last character that stand for nothing (RFC 4648 3.5).
uint8_t UnusedBits(std::string_view characters) {
  if (characters.size() % 4 == 0) return 0;
  return Digit(characters.back()) & (characters.size() % 4 == 2 ? 15 : 3);
}

BinForm FormOfMember(std::string_view member) {
  const auto characters = Characters(member);
  if (!characters) return BinForm::kBroken;
  return characters->size() == member.size() && UnusedBits(*characters) == 0 ? BinForm::kCanonical : BinForm::kOther;
}

}  // namespace

BinForm FormOfBin(std::string_view value) {
  if (value.find_first_of(", \t") == value.npos) return FormOfMember(value);
  bool more = true;
  while (more) {
    if (FormOfMember(TakeBinMember(&value, &more)) == BinForm::kBroken) return BinForm::kBroken;
  }
  return BinForm::kOther;
}

std::optional<std::string> DecodeBin(std::string_view value) {
  const auto characters = Characters(value);
  if (!characters) return std::nullopt;
  std::string bytes;
  bytes.reserve(characters->size() * 3 / 4);
  uint32_t bits = 0;
  int held = 0;
  for (char c : *characters) {
    bits = bits << 6 | Digit(c);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xff);
  }
  return bytes;
}

std::string EncodeBin(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int held = 0;
  for (char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      out += kAlphabet[bits >> held & 63];
    }
  }
  if (held > 0) out += kAlphabet[bits << (6 - held) & 63];
  return out;
}

std::optional<std::string> CanonicalBin(std::string_view value) {
  const auto characters = Characters(value);
  if (!characters) return std::nullopt;
  std::string out(*characters);
  if (const uint8_t unused = UnusedBits(*characters)) out.back() = kAlphabet[Digit(out.back()) & ~unused];
  return out;
}

std::string_view TakeBinMember(std::string_view* list, bool* more) {
  const size_t comma = list->find(',');
  *more = comma != list->npos;
  std::string_view member = list->substr(0, comma);
  list->remove_prefix(*more ? comma + 1 : list->size());
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!member.empty() && blank(member.front())) member.remove_prefix(1);
  while (!member.empty() && blank(member.back())) member.remove_suffix(1);
  return member;
}

}  // namespace sluice::http2
