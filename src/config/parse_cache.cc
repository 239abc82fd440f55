// The response cache: its size, and what each route caches.
#include <algorithm>
#include <array>
#include <map>

#include "config/parsers.h"
#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;
using proxy::CacheRule;
using proxy::RouteOptions;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kTiB = kMiB * kMiB;
constexpr std::chrono::milliseconds kTtlMax = 8760h;  // a year
constexpr std::string_view kNoSideEffects = "no_side_effects";

// grpc.io/docs/guides/status-codes, in the order of their numbers.
constexpr std::array<std::string_view, 17> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

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
        if (method.no_side_effects && method.unary() && Takes(method.path)) {
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
    std::chrono::milliseconds ttl = ttl_;
    const Node* at = &node;
    if (node.kind == Node::Kind::kScalar) {
      name = node.text;
    } else {
      Section item(section_.reader(), node, path);
      at = item.Require("name");
      const bool named = at != nullptr && item.Text("name", &name);
      item.Duration("ttl", {1ms, kTtlMax}, &ttl);
      if (!named) return;
      path = item.PathOf("name");
    }
    if (const std::string full = FullPath(*at, path, name); !full.empty()) Add(*at, path, full, ttl);
  }

  // Empty after reporting.
  std::string FullPath(const Node& at, const std::string& path, std::string_view name) {
    const size_t slash = name.find('/');
    const bool full = slash != name.npos;
    if (name.empty() || name.size() > kTextBytesMax || !IsPathSegment(name.substr(0, slash)) ||
        (full && (slash == 0 || slash + 1 == name.size() || !IsPathSegment(name.substr(slash + 1))))) {
      section_.reader().Fail(at, path, Cat(Shown(name), " is not a method; allowed: Get, or pkg.Service/Get"));
      return "";
    }
    if (full) return Cat("/", name);
    if (!route_.service.empty()) return Cat("/", route_.service, "/", name);
    section_.reader().Fail(at, path,
                           Cat(Shown(name), ": of which service? The route names none; allowed: pkg.Service/Get"));
    return "";
  }

  bool Takes(std::string_view path) const {
    if (route_.service.empty()) return path.starts_with(route_.prefix);
    const std::string start = Cat("/", route_.service, "/");
    return path.starts_with(start) && (route_.method.empty() || path.substr(start.size()) == route_.method);
  }

  void Add(const Node& at, const std::string& path, const std::string& full, std::chrono::milliseconds ttl) {
    Reader& reader = section_.reader();
    if (!Takes(full)) return reader.Fail(at, path, Cat(Shown(full), " is not a method that the route takes"));
    const auto [first, added] = places_.emplace(full, path);
    if (!added) return reader.Fail(at, path, Cat(Shown(full), " is also ", first->second));
    if (Unary(at, path, full)) out_->methods.push_back({full, ttl});
  }

  // Also where the descriptor set says nothing of the service.
  bool Unary(const Node& at, const std::string& path, std::string_view full) {
    const size_t slash = full.find('/', 1);
    const std::string_view service = full.substr(1, slash - 1);
    const std::string_view name = full.substr(slash + 1);
    const auto methods = descriptors_.set.Methods(service);
    if (methods.empty()) return true;
    std::vector<std::string_view> names;
    for (const DescriptorSet::Method& method : methods) {
      names.push_back(method.name);
      if (method.name != name) continue;
      if (method.unary()) return true;
      section_.reader().Fail(at, path, Cat(Shown(full), " is a streaming method; only unary ones are cached"));
      return false;
    }
    const std::string_view near = section_.reader().full() ? "" : Suggest(name, names);
    section_.reader().Fail(at, path,
                           Cat("descriptor_set has no method ", Shown(name), " of ", service,
                               near.empty() ? "" : Cat("; did you mean \"", near, "\"?")));
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
  section.Each("vary", kVaryMax, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "a metadata name");
    if (name == nullptr) return;
    if (!IsMetadataName(*name)) {
      section.reader().Fail(node, path, Cat(Shown(*name), " is not a metadata name: ", kMetadataNameIs));
    } else if (std::find(out->begin(), out->end(), *name) != out->end()) {
      section.reader().Fail(node, path, Cat(Shown(*name), " is there twice"));
    } else {
      out->push_back(*name);
    }
  });
  std::sort(out->begin(), out->end());
}

void ParseErrors(Section& section, std::vector<uint8_t>* out) {
  section.Each("errors", kCodes.size(), [&](const Node& node, std::string path) {
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
      section.reader().Fail(node, path, "OK is no error; responses with it are cached anyway");
    } else if (std::find(out->begin(), out->end(), code) != out->end()) {
      section.reader().Fail(node, path, Cat(*name, " is there twice"));
    } else {
      out->push_back(code);
    }
  });
  std::sort(out->begin(), out->end());
}

}  // namespace

void ParseCache(Reader& reader, const Node& node, proxy::CacheOptions* out) {
  Section section(reader, node, "cache");
  section.Bytes("capacity", {kMiB, kTiB}, &out->capacity_bytes);
  section.Bytes("entry_max", {kKiB, 64 * kMiB}, &out->entry_bytes_max);
  section.Bytes("request_max", {0, kMiB}, &out->request_bytes_max);
  section.Bytes("entry_expected", {256, kMiB}, &out->entry_bytes_expected);
  section.Bool("strict", &out->strict);
  section.Bool("doorkeeper", &out->doorkeeper);
  section.Number("fetches_max", {1, 1'000'000}, &out->fetches_max);
  if (out->entry_bytes_max > out->capacity_bytes) {
    section.Fail("entry_max",
                 Cat(FormatBytes(out->entry_bytes_max), " is above capacity ", FormatBytes(out->capacity_bytes)));
  }
  if (out->entry_bytes_expected > out->entry_bytes_max) {
    section.Fail("entry_expected", Cat(FormatBytes(out->entry_bytes_expected), " is above entry_max ",
                                       FormatBytes(out->entry_bytes_max)));
  }
}

void ParseCacheRule(Reader& reader, const Node& node, std::string path, const Descriptors& descriptors,
                    const RouteOptions& route, CacheRule* out) {
  Section section(reader, node, std::move(path));
  std::chrono::milliseconds ttl{0};
  section.Require("ttl");
  section.Duration("ttl", {1ms, kTtlMax}, &ttl);
  MethodsReader(section, descriptors, route, ttl, out).Run();
  ParseVary(section, &out->vary);
  section.Bool("shared", &out->shared);
  ParseErrors(section, &out->errors);
  section.Duration("error_ttl", {1ms, 24h}, &out->error_ttl);
  section.Duration("stale_while_revalidate", {0ms, 24h}, &out->stale_while_revalidate);
  section.Duration("stale_if_unavailable", {0ms, 24h}, &out->stale_if_unavailable);
  section.Duration("fetch_timeout", {1ms, 24h}, &out->fetch_timeout);
}

}  // namespace sluice::config
