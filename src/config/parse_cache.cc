// The response cache: its size, and what each route caches.
#include <algorithm>
#include <map>

#include "config/parsers.h"
#include "config/route_values.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::CacheRule;
using proxy::RouteOptions;

// Reads the methods of one rule.
class MethodsReader {
 public:
  MethodsReader(Section& section, const Descriptors& descriptors, const RouteOptions& route,
                std::chrono::milliseconds ttl, CacheRule* out)
      : section_(section), descriptors_(descriptors), route_(route), ttl_(ttl), out_(out) {}

  void Run() {
    const Node* methods = section_.Find("methods");
    if (methods == nullptr) {
      OwnMethod();
    } else if (methods->kind == Node::Kind::kScalar) {
      if (methods->text == kNoSideEffects) {
        NoSideEffects();
      } else {
        section_.Fail("methods", Cat(Shown(methods->text), " is not a list of methods or the word ", kNoSideEffects));
      }
    } else {
      const bool listed = section_.Each("methods", kCachedMethodsMax,
                                        [&](const Node& item, std::string path) { Item(item, std::move(path)); });
      if (listed && methods->items.empty()) section_.Fail("methods", "is empty; leave out cache or name a method");
    }
    std::sort(out_->methods.begin(), out_->methods.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  }

 private:
  void OwnMethod() {
    if (route_.method.empty()) {
      section_.Fail("methods",
                    Cat("is missing: the route names no method; allowed: a list of methods, or ", kNoSideEffects));
    } else {
      Add(section_.node(), section_.path(), Cat("/", route_.service, "/", route_.method), ttl_);
    }
  }

  void NoSideEffects() {
    if (descriptors_.state == Descriptors::State::kFailed) return;
    if (descriptors_.state == Descriptors::State::kNone) {
      return section_.Fail("methods", Cat(kNoSideEffects, " needs descriptor_set, which says which methods have none"));
    }
    for (const std::string& service : descriptors_.set.services()) {
      for (DescriptorSet::Method& method : descriptors_.set.Methods(service)) {
        if (method.no_side_effects && method.unary() && TakesPath(route_, method.path)) {
          out_->methods.push_back({std::move(method.path), ttl_});
        }
      }
    }
    if (!out_->methods.empty()) return;
    section_.Fail("methods",
                  Cat("no unary method that the route takes has \"option idempotency_level = NO_SIDE_EFFECTS\" in "
                      "descriptor_set"));
  }

  // "Get", "pkg.Service/Get", or {name: ..., ttl: ...}.
  void Item(const Node& node, std::string path) {
    std::string name;
    proxy::CachedMethod method{"", ttl_};
    const Node* at = &node;
    if (node.kind == Node::Kind::kScalar) {
      name = node.text;
    } else {
      Section item(section_.reader(), node, path);
      at = item.Require("name");
      const bool named = at != nullptr && item.Text("name", &name);
      item.Options(proxy::kCachedMethodOptions, &method);
      if (!named) return;
      path = item.PathOf("name");
    }
    const std::string full = MethodPath(section_.reader(), *at, path, route_, name);
    if (!full.empty()) Add(*at, path, full, method.ttl);
  }

  void Add(const Node& at, const std::string& path, const std::string& full, std::chrono::milliseconds ttl) {
    Reader& reader = section_.reader();
    const auto [first, added] = places_.emplace(full, path);
    if (!added) return reader.Fail(at, path, Cat(Shown(full), " is also ", first->second));
    if (Unary(at, path, full)) out_->methods.push_back({full, ttl});
  }

  // Also where the descriptor set says nothing of the service.
  bool Unary(const Node& at, const std::string& path, std::string_view full) {
    std::optional<DescriptorSet::Method> method;
    if (!FindMethod(section_.reader(), at, path, descriptors_, full, &method)) return false;
    if (!method || method->unary()) return true;
    section_.reader().Fail(at, path, Cat(Shown(full), " is a streaming method; only unary ones are cached"));
    return false;
  }

  Section& section_;
  const Descriptors& descriptors_;
  const RouteOptions& route_;
  const std::chrono::milliseconds ttl_;
  CacheRule* out_;
  std::map<std::string, std::string> places_;  // full path -> where it stands
};

void ParseVary(Section& section, std::vector<std::string>* out) {
  ParseMetadataNames(
      section, "vary", kVaryMax, [](std::string_view) { return std::string_view(); }, out);
  std::sort(out->begin(), out->end());
}

}  // namespace

void ParseCache(Section& section, proxy::CacheOptions* out) {
  section.Options(proxy::kCacheOptions, out);
  if (out->entry_bytes_max > out->capacity_bytes) {
    section.Fail("entry_max",
                 Cat(FormatBytes(out->entry_bytes_max), " is above capacity ", FormatBytes(out->capacity_bytes)));
  }
  if (out->entry_bytes_expected > out->entry_bytes_max) {
    section.Fail("entry_expected", Cat(FormatBytes(out->entry_bytes_expected), " is above entry_max ",
                                       FormatBytes(out->entry_bytes_max)));
  }
}

void ParseCacheRule(Section& section, const Descriptors& descriptors, const RouteOptions& route, CacheRule* out) {
  proxy::CachedMethod method;
  section.Require("ttl");
  section.Options(proxy::kCachedMethodOptions, &method);
  MethodsReader(section, descriptors, route, method.ttl, out).Run();
  ParseVary(section, &out->vary);
  ParseCodes(section, "errors", "OK is no error; responses with it are cached anyway", &out->errors);
  section.Options(proxy::kCacheRuleOptions, out);
}

}  // namespace sluice::config
