#include "config/dump_writer.h"

#include <filesystem>

#include "base/hash.h"
#include "config/expand.h"
#include "config/text.h"

namespace sluice::config {
namespace {

// Needs no quotes: neither YAML nor a reader could take it for something else than a text.
bool IsPlain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || std::string_view("_-./").find(c) != std::string_view::npos;
  };
  constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), inside) &&
         std::find(std::begin(kWords), std::end(kWords), lower) == std::end(kWords);
}

}  // namespace

std::string DumpWriter::Quoted(std::string_view text) {
  if (IsPlain(text)) return std::string(text);
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : EscapeVariables(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += Cat("\\x", std::string_view(&kHex[byte >> 4], 1), std::string_view(&kHex[byte & 15], 1));
    } else {
      out += c;
    }
  }
  return out + '"';
}

void DumpWriter::Line(std::string_view key, std::string_view value) {
  std::string start(indent_, ' ');
  if (dash_) start[indent_ - 2] = '-';
  dash_ = false;
  out_ += Cat(start, key, value.empty() ? ":" : ": ", value, "\n");
}

void DumpWriter::Comment(std::string_view text) { out_ += Cat(std::string(indent_, ' '), "# ", text, "\n"); }

void DumpWriter::Texts(std::string_view key, std::span<const std::string> texts) {
  std::string list;
  for (const std::string& text : texts) list += Cat(list.empty() ? "" : ", ", Quoted(text));
  Line(key, Cat("[", list, "]"));
}

void DumpWriter::File(std::string_view key, const std::string& path) {
  const bool as_it_is = path.empty() || folder_.empty() || path[0] == '/';
  Text(key, as_it_is ? path : (std::filesystem::path(folder_) / path).lexically_normal().string());
}

// 16 bits say that two differ, and too little to find one by trying.
void DumpWriter::Secret(std::string_view key, std::string_view text) {
  constexpr uint64_t kSeed = 0x736c75696365;
  if (text.empty() || !hide_secrets_) return Text(key, text);
  Text(key, Cat("(hidden; its mark is ", base::Hash64(text, kSeed) & 0xffff, ")"));
}

}  // namespace sluice::config
