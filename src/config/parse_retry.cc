// When the calls of a route are tried again.
#include <algorithm>

#include "config/parsers.h"
#include "config/route_values.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::RetryOptions;
using proxy::RouteOptions;
using Methods = RetryOptions::Methods;

void ParseMethodList(Section& section, const Descriptors& descriptors, const RouteOptions& route,
                     std::vector<std::string>* out) {
  Reader& reader = section.reader();
  section.Each("methods", kRetriedMethodsMax, [&](const Node& item, std::string place) {
    const std::string* name = section.Scalar(item, place, "a method like Get, or pkg.Service/Get");
    if (name == nullptr) return;
    std::string path = MethodPath(reader, item, place, route, *name);
    std::optional<DescriptorSet::Method> known;
    if (path.empty() || !FindMethod(reader, item, place, descriptors, path, &known)) return;
    if (std::find(out->begin(), out->end(), path) != out->end()) {
      reader.Fail(item, place, Cat(Shown(path), " is there twice"));
    } else {
      out->push_back(std::move(path));
    }
  });
  std::sort(out->begin(), out->end());
}

void ParseMethods(Section& section, const Descriptors& descriptors, const RouteOptions& route, RetryOptions* out) {
  const Node* methods = section.Find("methods");
  if (methods == nullptr) return;
  if (methods->kind != Node::Kind::kScalar) {
    out->methods = Methods::kListed;
    return ParseMethodList(section, descriptors, route, &out->paths);
  }
  section.Choice("methods", kRetriedMethods, &out->methods);
  if (methods->text == kRetriedMethods[0] && descriptors.state == Descriptors::State::kNone) {
    section.Fail("methods", "declared needs descriptor_set, which says which methods may be repeated");
  }
}

}  // namespace

void ParseRetry(Section& section, const Descriptors& descriptors, const RouteOptions& route, RetryOptions* out) {
  section.Options(proxy::kRetryOptions, out);
  ParseMethods(section, descriptors, route, out);
  std::vector<uint8_t> codes;
  if (ParseCodes(section, "on", "OK is no failure", &codes)) {
    out->on = 0;
    for (uint8_t code : codes) out->on |= 1u << code;
  }
  section.Map("backoff", [&](Section& backoff) {
    backoff.Options(proxy::kRetryBackoffOptions, out);
    if (out->backoff_base > out->backoff_max) {
      backoff.Fail(backoff.Find("max") != nullptr ? "max" : "base",
                   Cat("base ", FormatDuration(out->backoff_base), " is above max ", FormatDuration(out->backoff_max)));
    }
  });
}

void ParseHedge(Section& section, proxy::HedgeOptions* out) {
  out->max = 1;
  const Node* delay = section.Require("delay");
  if (delay != nullptr && (delay->kind != Node::Kind::kScalar || delay->text != "auto")) {
    section.Options(proxy::kHedgeDelayOptions, out);
  }
  section.Options(proxy::kHedgeOptions, out);
}

void AddDeclaredMethods(const Descriptors& descriptors, const RouteOptions& route, RetryOptions* out) {
  if (out->methods != Methods::kDeclared || descriptors.state != Descriptors::State::kLoaded) return;
  for (const std::string& service : descriptors.set.services()) {
    for (DescriptorSet::Method& method : descriptors.set.Methods(service)) {
      if (method.idempotent && TakesPath(route, method.path)) out->paths.push_back(std::move(method.path));
    }
  }
  std::sort(out->paths.begin(), out->paths.end());
}

}  // namespace sluice::config
