// What a route hashes by; names of message fields become numbers here, by the descriptor set.
#include <algorithm>
#include <array>
#include <optional>

#include "config/parsers.h"
#include "config/route_cover.h"
#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::HashBy;
using proxy::RouteOptions;

constexpr std::string_view kHashBys = "random, method, peer, {metadata: name}, {field: name}";
constexpr uint64_t kFieldNumberMax = (1u << 29) - 1;  // protobuf's largest
constexpr size_t kMethodsShownMax = 5;

bool IsNumbers(std::string_view field) {
  return !field.empty() && field.find_first_not_of("0123456789.") == field.npos;
}

// "3.1" -> {3, 1}; none if one is no field number or there are too many.
std::optional<std::vector<uint32_t>> ParseNumbers(std::string_view field) {
  std::vector<uint32_t> out;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find('.', begin), field.size());
    const auto number = ParseUnsigned(field.substr(begin, end - begin));
    if (!number || *number == 0 || *number > kFieldNumberMax || out.size() == proxy::kFieldDepthMax)
      return std::nullopt;
    out.push_back(static_cast<uint32_t>(*number));
    begin = end + 1;
  }
  return out;
}

// The methods of the route's service that it can get: not those that a route before it takes whole.
std::vector<DescriptorSet::Method> MethodsOf(const RouteOptions& route, const std::vector<RouteOptions>& before,
                                             const DescriptorSet& set) {
  std::vector<const RouteOptions*> rivals;
  const std::string start = Cat("/", route.service, "/");
  for (const RouteOptions& other : before) {
    const bool may = other.service.empty() ? other.prefix.starts_with(start)
                                           : other.service == route.service && !other.method.empty();
    if (may) rivals.push_back(&other);
  }
  std::vector<DescriptorSet::Method> out;
  for (DescriptorSet::Method& method : set.Methods(route.service)) {
    if (!route.method.empty() && route.method != method.name) continue;
    RouteOptions narrow = route;
    narrow.method = method.name;
    const bool taken =
        std::any_of(rivals.begin(), rivals.end(), [&](const RouteOptions* other) { return Covers(*other, narrow); });
    if (!taken) out.push_back(std::move(method));
  }
  return out;
}

// The service, or the method, that the route names is not in the set.
std::string Unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  const std::string_view near = Suggest(name, std::vector<std::string_view>(known.begin(), known.end()));
  return Cat("descriptor_set has no ", what, " ", Shown(name),
             near.empty() ? "" : Cat("; did you mean \"", near, "\"?"));
}

void ResolveNames(Section& section, const std::string& field, const Descriptors& descriptors,
                  const std::vector<RouteOptions>& before, const RouteOptions& route, HashBy* out) {
  if (descriptors.state == Descriptors::State::kFailed) return;
  if (descriptors.state == Descriptors::State::kNone) {
    return section.Fail(
        "field", Cat(Shown(field), " is a name, which needs descriptor_set; allowed without: field numbers, like 3.1"));
  }
  if (route.service.empty()) {
    return section.Fail("field", "a name is only allowed in a route with service: which message has the field?");
  }
  const DescriptorSet& set = descriptors.set;
  if (!std::binary_search(set.services().begin(), set.services().end(), route.service)) {
    return section.Fail("field", Unknown("service", route.service, set.services()));
  }
  std::string wrong;  // why the first method has no such field
  std::vector<std::string> without;
  std::vector<std::string> names;
  for (const auto& method : set.Methods(route.service)) names.push_back(method.name);
  if (!route.method.empty() && std::find(names.begin(), names.end(), route.method) == names.end()) {
    return section.Fail("field", Unknown(Cat("method of ", route.service), route.method, names));
  }
  for (const DescriptorSet::Method& method : MethodsOf(route, before, set)) {
    auto numbers = set.Resolve(method.input, field);
    if (numbers.ok()) {
      out->fields.push_back({method.path, std::move(*numbers)});
      continue;
    }
    if (wrong.empty()) wrong = numbers.error().detail;
    without.push_back(method.name);
  }
  std::sort(out->fields.begin(), out->fields.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  if (without.empty()) return;
  if (out->fields.empty()) return section.Fail("field", Cat(Shown(field), ": ", wrong));
  std::vector<std::string_view> shown(without.begin(), without.end());
  if (shown.size() > kMethodsShownMax) shown.resize(kMethodsShownMax);
  section.Fail("field", Cat(Shown(field), " is not in the requests of ", Join(shown),
                            without.size() > shown.size() ? Cat(" and ", without.size() - shown.size(), " more") : "",
                            " (", wrong, "); write routes with method for those that have it"));
}

void ParseField(Section& section, const Descriptors& descriptors, const std::vector<RouteOptions>& before,
                const RouteOptions& route, HashBy* out) {
  std::string field;
  if (!section.Text("field", &field)) return;
  out->kind = HashBy::Kind::kField;
  out->field = field;
  if (!IsNumbers(field)) return ResolveNames(section, field, descriptors, before, route, out);
  if (auto numbers = ParseNumbers(field)) {
    out->fields.push_back({"", std::move(*numbers)});
  } else {
    section.Fail("field", Cat(Shown(field), " is not 1 to ", proxy::kFieldDepthMax, " field numbers in [1, ",
                              kFieldNumberMax, "] with dots between them, like 3.1"));
  }
}

void ParseHashMap(Reader& reader, const Node& node, const std::string& path, const Descriptors& descriptors,
                  const std::vector<RouteOptions>& before, const RouteOptions& route, HashBy* out) {
  Section section(reader, node, path);
  const bool field = section.Find("field") != nullptr;
  const bool metadata = section.Find("metadata") != nullptr;
  if (field && metadata) {
    reader.Fail(node, path, "has more than one of metadata, field; one is allowed");
  } else if (field) {
    ParseField(section, descriptors, before, route, out);
  } else if (std::string name; ParseMetadataName(section, "metadata", &name)) {
    out->metadata = std::move(name);
    out->kind = HashBy::Kind::kMetadata;
  }
  section.Options(proxy::kHashByOptions, out);
  section.Choice("repeated", proxy::kRepeated, &out->repeated);
  if (!field && section.Find("bytes_max") != nullptr) section.Fail("bytes_max", "is only allowed together with field");
  if (field && section.Find("repeated") != nullptr) section.Fail("repeated", "is only allowed together with metadata");
}

}  // namespace

void ParseHashBy(Reader& reader, const Node& node, const std::string& path, const Descriptors& descriptors,
                 const std::vector<RouteOptions>& before, const RouteOptions& route, HashBy* out) {
  constexpr std::array<std::pair<std::string_view, HashBy::Kind>, 3> kKinds = {
      {{"random", HashBy::Kind::kRandom}, {"method", HashBy::Kind::kMethod}, {"peer", HashBy::Kind::kPeer}}};
  if (node.kind == Node::Kind::kMap) return ParseHashMap(reader, node, path, descriptors, before, route, out);
  if (node.kind == Node::Kind::kScalar) {
    for (const auto& [name, kind] : kKinds) {
      if (node.text != name) continue;
      out->kind = kind;
      return;
    }
  }
  const std::string shown = node.kind == Node::Kind::kScalar ? Shown(node.text) + " " : "";
  reader.Fail(node, path, Cat(shown, "is not one of: ", kHashBys));
}

void ParseDescriptorSet(Section& root, Descriptors* descriptors, std::string* out) {
  std::string path;
  if (!root.Text("descriptor_set", &path) || path.empty()) return;
  path = root.Beside("descriptor_set", std::move(path));
  if (base::Status loaded = descriptors->set.Load(path); loaded.ok()) {
    descriptors->state = Descriptors::State::kLoaded;
    *out = std::move(path);
  } else {
    descriptors->state = Descriptors::State::kFailed;
    root.Fail("descriptor_set", Cat(Shown(path), " ", loaded.error().detail));
  }
}

}  // namespace sluice::config
