#include "hostile/move.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace sluice::hostile {
namespace {

constexpr size_t kRunMin = 16;
constexpr char kEquals = '=';

std::string Hex(uint8_t byte) {
  char text[3];
  std::snprintf(text, sizeof text, "%02x", byte);
  return text;
}

std::string Quote(std::string_view word) {
  std::string out;
  if (word.empty()) return "\\e";
  for (size_t i = 0; i < word.size();) {
    size_t run = 1;
    while (i + run < word.size() && word[i + run] == word[i]) ++run;
    const auto byte = static_cast<uint8_t>(word[i]);
    if (run >= kRunMin) {
      out += "\\{" + std::to_string(run) + ":" + Hex(byte) + "}";
      i += run;
    } else {
      const bool plain = byte > 0x20 && byte < 0x7f && byte != '\\' && byte != '#';
      out += plain ? std::string(1, word[i]) : "\\x" + Hex(byte);
      ++i;
    }
  }
  return out;
}

bool Unquote(std::string_view word, std::string& out) {
  out.clear();
  if (word == "\\e") return true;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '\\') {
      out += word[i];
    } else if (word.substr(i, 2) == "\\x" && i + 4 <= word.size()) {
      out += static_cast<char>(std::strtoul(std::string(word.substr(i + 2, 2)).c_str(), nullptr, 16));
      i += 3;
    } else if (word.substr(i, 2) == "\\{") {
      const size_t colon = word.find(':', i), end = word.find('}', i);
      if (colon == std::string_view::npos || end != colon + 3) return false;
      const size_t count = std::strtoul(std::string(word.substr(i + 2, colon - i - 2)).c_str(), nullptr, 10);
      if (count > (64u << 20)) return false;
      out.append(count, static_cast<char>(std::strtoul(std::string(word.substr(colon + 1, 2)).c_str(), nullptr, 16)));
      i = end;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

long Move::number(size_t i) const { return std::strtol(arg(i).c_str(), nullptr, 10); }

Fields Move::fields(size_t from) const {
  Fields out;
  for (size_t i = from; i < args.size(); ++i) {
    const size_t at = args[i].find(kEquals);
    if (at == std::string::npos)
      out.emplace_back(args[i], "");
    else
      out.emplace_back(args[i].substr(0, at), args[i].substr(at + 1));
  }
  return out;
}

std::string FieldArg(std::string_view name, std::string_view value) {
  return std::string(name) + kEquals + std::string(value);
}

std::string Print(const Script& script) {
  std::string out;
  for (const Move& move : script) {
    out += move.verb;
    for (const std::string& arg : move.args) out += " " + Quote(arg);
    out += "\n";
  }
  return out;
}

bool Parse(std::string_view text, Script& script, std::string& error) {
  script.clear();
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (rest.empty() || rest[0] == '#') continue;
    Move move;
    for (bool first = true; !rest.empty(); first = false) {
      const size_t blank = std::min(rest.find(' '), rest.size());
      std::string word;
      if (!Unquote(rest.substr(0, blank), word)) {
        error = "line " + std::to_string(line) + ": " + std::string(rest.substr(0, blank)) + " is not a word";
        return false;
      }
      rest.remove_prefix(std::min(blank + 1, rest.size()));
      if (first)
        move.verb = word;
      else
        move.args.push_back(word);
    }
    script.push_back(std::move(move));
  }
  return true;
}

}  // namespace sluice::hostile
