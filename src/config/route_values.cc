#include "config/route_values.h"

#include <algorithm>
#include <array>

#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {

using proxy::RouteOptions;

namespace {

// grpc.io/docs/guides/status-codes, in the order of their numbers.
constexpr std::array<std::string_view, kCodeCount> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// Empty after reporting.
std::string FullPath(Reader& reader, const Node& at, const std::string& place, const RouteOptions& route,
                     std::string_view name) {
  const size_t slash = name.find('/');
  const bool full = slash != name.npos;
  if (name.empty() || name.size() > kTextBytesMax || !IsPathSegment(name.substr(0, slash)) ||
      (full && (slash == 0 || slash + 1 == name.size() || !IsPathSegment(name.substr(slash + 1))))) {
    reader.Fail(at, place, Cat(Shown(name), " is not a method; allowed: Get, or pkg.Service/Get"));
    return "";
  }
  if (full) return Cat("/", name);
  if (!route.service.empty()) return Cat("/", route.service, "/", name);
  reader.Fail(at, place, Cat(Shown(name), ": of which service? The route names none; allowed: pkg.Service/Get"));
  return "";
}

}  // namespace

std::string_view CodeName(uint8_t code) { return kCodes[code]; }

bool TakesPath(const RouteOptions& route, std::string_view path) {
  if (route.service.empty()) return path.starts_with(route.prefix);
  const std::string start = Cat("/", route.service, "/");
  return path.starts_with(start) && (route.method.empty() || path.substr(start.size()) == route.method);
}

std::string MethodPath(Reader& reader, const Node& at, const std::string& place, const RouteOptions& route,
                       std::string_view name) {
  std::string path = FullPath(reader, at, place, route, name);
  if (path.empty() || TakesPath(route, path)) return path;
  reader.Fail(at, place, Cat(Shown(path), " is not a method that the route takes"));
  return "";
}

bool FindMethod(Reader& reader, const Node& at, const std::string& place, const Descriptors& descriptors,
                std::string_view path, std::optional<DescriptorSet::Method>* out) {
  const size_t slash = path.find('/', 1);
  const std::string_view service = path.substr(1, slash - 1);
  const std::string_view name = path.substr(slash + 1);
  auto methods = descriptors.set.Methods(service);
  if (methods.empty()) return true;
  std::vector<std::string_view> names;
  for (DescriptorSet::Method& method : methods) {
    if (method.name == name) {
      *out = std::move(method);
      return true;
    }
    names.push_back(method.name);
  }
  const std::string_view near = reader.full() ? "" : Suggest(name, names);
  reader.Fail(at, place,
              Cat("descriptor_set has no method ", Shown(name), " of ", service,
                  near.empty() ? "" : Cat("; did you mean \"", near, "\"?")));
  return false;
}

bool ParseCodes(Section& section, std::string_view key, std::string_view ok_is, std::vector<uint8_t>* out) {
  const bool listed = section.Each(key, kCodes.size(), [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "a gRPC code like NOT_FOUND");
    if (name == nullptr) return;
    const auto found = std::find(kCodes.begin(), kCodes.end(), *name);
    const uint8_t code = static_cast<uint8_t>(found - kCodes.begin());
    if (found == kCodes.end()) {
      const std::vector<std::string_view> known(kCodes.begin() + 1, kCodes.end());
      const std::string_view near = Suggest(*name, known);
      section.reader().Fail(
          node, path,
          Cat(Shown(*name), " is not a gRPC code",
              near.empty() ? Cat("; allowed: ", Join(known)) : Cat("; did you mean \"", near, "\"?")));
    } else if (code == 0) {
      section.reader().Fail(node, path, std::string(ok_is));
    } else if (std::find(out->begin(), out->end(), code) != out->end()) {
      section.reader().Fail(node, path, Cat(*name, " is there twice"));
    } else {
      out->push_back(code);
    }
  });
  std::sort(out->begin(), out->end());
  return listed;
}

}  // namespace sluice::config
