#include "config/expand.h"

#include <algorithm>

#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

constexpr std::string_view kForms = "allowed: ${NAME}, ${NAME:-default}, and $${ for the characters ${";

base::Error Bad(std::string detail) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(detail)); }

// As a shell has it (POSIX.1-2017 3.235).
bool IsName(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && name.size() <= kVariableNameBytesMax && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// What stands for `inside`, the text between ${ and }.
base::Result<std::string> ValueOf(std::string_view inside, const Variables& variables) {
  const size_t colon = inside.find(':');
  const std::string name(inside.substr(0, colon));
  const bool has_default = colon != inside.npos;
  if (!IsName(name) || (has_default && !inside.substr(colon).starts_with(":-")))
    return Bad(Cat(Shown(Cat("${", inside, "}")), " names no variable; ", kForms));
  const std::string_view fallback = has_default ? inside.substr(colon + 2) : std::string_view();
  if (fallback.find("${") != fallback.npos)
    return Bad(Cat("the default of ${", name, "} has a variable in it; only a text is allowed there"));
  std::optional<std::string> value = variables(name);
  if (has_default && (!value || value->empty())) return std::string(fallback);
  if (!value) {
    return base::MakeError(base::ErrorKind::kNotFound, Cat("the environment has no variable ", name,
                                                           "; allowed: set it, or write ${", name, ":-default}"));
  }
  const bool control = std::any_of(value->begin(), value->end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control) return Bad(Cat("the variable ", name, " has a control character in it; only text is allowed"));
  return std::move(*value);
}

// The length of the run of $ at `begin`, where there is one.
size_t RunAt(std::string_view text, size_t begin) {
  return std::min(text.find_first_not_of('$', begin), text.size()) - begin;
}

}  // namespace

bool HasVariables(std::string_view text) { return text.find("${") != text.npos; }

base::Result<std::string> Expand(std::string_view text, const Variables& variables) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t dollar = std::min(text.find('$', at), text.size());
    out.append(text.substr(at, dollar - at));
    const size_t run = RunAt(text, dollar);
    const size_t brace = dollar + run;
    at = brace;
    if (run == 0 || brace == text.size() || text[brace] != '{') {
      out.append(run, '$');
      continue;
    }
    out.append(run / 2, '$');
    if (run % 2 == 0) continue;
    const size_t end = text.find('}', brace);
    if (end == text.npos) return Bad(Cat(Shown(text.substr(brace - 1)), " has no }; ", kForms));
    auto value = ValueOf(text.substr(brace + 1, end - brace - 1), variables);
    if (!value.ok()) return value;
    out += *value;
    if (out.size() > kExpandedBytesMax) return Bad(Cat("more than ", kExpandedBytesMax, " bytes with its variables"));
    at = end + 1;
  }
  return out;
}

std::string EscapeVariables(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t dollar = std::min(text.find('$', at), text.size());
    out.append(text.substr(at, dollar - at));
    const size_t run = RunAt(text, dollar);
    at = dollar + run;
    out.append(at < text.size() && text[at] == '{' ? 2 * run : run, '$');
  }
  return out;
}

}  // namespace sluice::config
