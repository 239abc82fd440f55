// gRPC-Web of a listener: which pages of other origins may use it.
#include <algorithm>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

constexpr std::string_view kAny = "*";
constexpr std::string_view kOriginIs =
    "scheme://host in lower case, with :port only where it is not the scheme's own, as browsers say it; "
    "https://*.example.com for every name below; or \"*\" for every origin";

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 && text.front() != '0' && ParseUnsigned(text).value_or(0) - 1 < 65535;
}

// Labels, an IPv4 address, or an IPv6 address in brackets.
bool IsHost(std::string_view host) {
  if (host.starts_with('[')) {
    return host.size() > 2 && host.ends_with(']') &&
           host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdef:.") == host.npos;
  }
  return !host.empty() && !host.starts_with('.') && host.find("..") == host.npos &&
         host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") == host.npos;
}

// An origin as it is serialised (HTML, "Origin"), or a pattern of one whose host begins with "*.".
bool IsOrigin(std::string_view text) {
  const size_t scheme_end = text.find("://");
  if (scheme_end == text.npos || scheme_end == 0) return false;
  const std::string_view scheme = text.substr(0, scheme_end);
  if (scheme.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+.-") != scheme.npos) return false;
  std::string_view host = text.substr(scheme_end + 3);
  if (host.starts_with("*.")) host.remove_prefix(2);
  const size_t colon = host.rfind(':');
  if (colon != host.npos && (!host.starts_with('[') || host.find(']') < colon)) {
    const std::string_view port = host.substr(colon + 1);
    const bool schemes_own = (scheme == "https" && port == "443") || (scheme == "http" && port == "80");
    if (!IsPort(port) || schemes_own) return false;
    host = host.substr(0, colon);
  }
  return IsHost(host);
}

void ParseOrigins(Section& section, std::vector<std::string>* out) {
  const bool listed = section.Each("origins", proxy::kCorsListMax, [&](const Node& node, std::string path) {
    const std::string* origin = section.Scalar(node, path, "an origin");
    if (origin == nullptr) return;
    if (*origin != kAny && !IsOrigin(*origin)) {
      section.reader().Fail(node, std::move(path), Cat(Shown(*origin), " is not an origin: ", kOriginIs));
    } else if (std::find(out->begin(), out->end(), *origin) != out->end()) {
      section.reader().Fail(node, std::move(path), Cat(Shown(*origin), " is there twice"));
    } else {
      out->push_back(*origin);
    }
  });
  if (listed && section.Find("origins")->items.empty())
    section.Fail("origins", "is empty; leave cors out where no page of another origin may call, or name one");
}

// "*" is one, too: every header.
void ParseNames(Section& section, std::string_view key, std::vector<std::string>* out) {
  section.Each(key, proxy::kCorsListMax, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "the name of a header");
    if (name == nullptr) return;
    if (!IsMetadataName(*name)) {
      section.reader().Fail(node, std::move(path),
                            Cat(Shown(*name), " is not a header's name: ", kMetadataNameIs, "; or \"*\" for all"));
    } else if (std::find(out->begin(), out->end(), *name) != out->end()) {
      section.reader().Fail(node, std::move(path), Cat(Shown(*name), " is there twice"));
    } else {
      out->push_back(*name);
    }
  });
}

// A pattern for all hosts below one label (https://*.com), or for IP addresses by their last number.
bool IsTooWide(std::string_view origin) {
  const size_t star = origin.find("*.");
  if (star == origin.npos) return false;
  std::string_view host = origin.substr(star + 2);
  host = host.substr(0, host.find(':'));
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return host.find('.') == host.npos || last.find_first_not_of("0123456789") == last.npos;
}

bool HasAny(const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), kAny) != list.end(); }

void ParseCors(Section& section, proxy::CorsOptions* out) {
  section.Require("origins");
  ParseOrigins(section, &out->origins);
  ParseNames(section, "headers", &out->headers);
  ParseNames(section, "expose", &out->expose);
  section.Options(proxy::kCorsOptions, out);
  const bool any = HasAny(out->origins);
  if (any && out->credentials) {
    section.Fail("credentials",
                 "with origins: [\"*\"] every page on the web could act for each user that opens it; name the origins");
  } else if (any && out->origins.size() > 1) {
    section.Warn("origins", "\"*\" is every origin, so that the others say nothing");
  }
  for (const std::string& origin : out->origins) {
    if (!IsTooWide(origin)) continue;
    const std::string why =
        Cat(Shown(origin), " covers hosts that have nothing in common; name a domain, as https://*.example.com");
    out->credentials ? section.Fail("origins", why) : section.Warn("origins", why);
  }
  if (out->credentials && HasAny(out->expose))
    section.Fail("expose", "\"*\" is all headers only without credentials (the Fetch standard); name them");
}

}  // namespace

void ParseGrpcWeb(Section& section, proxy::GrpcWebOptions* out) {
  out->enabled = true;
  section.Map("cors", [&](Section& cors) { ParseCors(cors, &out->cors); });
}

}  // namespace sluice::config
