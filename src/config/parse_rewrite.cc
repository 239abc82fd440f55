// What endpoints and clients of a route see of metadata otherwise than it was sent.
#include <algorithm>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

using proxy::FieldRewrite;
using proxy::RewriteOptions;

// What HTTP/2 or gRPC has a meaning for, what is of one connection (RFC 9113 8.2.2), and what only the proxy says.
constexpr std::string_view kNotRewritten[] = {"connection",
                                              "content-length",
                                              "content-type",
                                              "forwarded",
                                              "host",
                                              "keep-alive",
                                              "proxy-connection",
                                              "te",
                                              "traceparent",
                                              "tracestate",
                                              "trailer",
                                              "transfer-encoding",
                                              "upgrade",
                                              "via",
                                              "x-forwarded-client-cert",
                                              "x-forwarded-for",
                                              "x-forwarded-host",
                                              "x-forwarded-proto",
                                              "x-request-id"};

std::string_view WhyNot(std::string_view name) {
  constexpr std::string_view kOfHttp =
      " is a part of HTTP/2 or gRPC, or only the proxy says it, and cannot be rewritten";
  const bool reserved = name.starts_with("grpc-") || name.starts_with("sluice-") ||
                        std::ranges::find(kNotRewritten, name) != std::end(kNotRewritten);
  return reserved ? kOfHttp : "";
}

// gRPC over HTTP/2, "Binary-Header": Base64 with padding or without.
bool IsBase64(std::string_view text) {
  while (text.ends_with('=') && text.size() % 4 != 1) text.remove_suffix(1);
  return text.size() % 4 != 1 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
         });
}

// gRPC over HTTP/2, "ASCII-Value"; without blanks at its ends (RFC 9113 8.2.1).
bool IsAsciiValue(std::string_view text) {
  return !text.empty() && text.front() != ' ' && text.back() != ' ' &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

void ParseValue(Section& item, FieldRewrite::Entry* out) {
  if (item.Require("value") == nullptr || !item.Text("value", &out->value)) return;
  const bool binary = out->name.ends_with("-bin");
  if (binary ? IsBase64(out->value) && !out->value.empty() : IsAsciiValue(out->value)) return;
  item.Fail("value", Cat(Shown(out->value), binary ? " is not Base64, which values of names with -bin are"
                                                   : " is not printable ASCII without blanks at its ends"));
}

void ParseEntries(Section& section, std::string_view key, bool unique, std::vector<FieldRewrite::Entry>* out) {
  section.Each(key, kRewritesMax, [&](const Node& node, std::string path) {
    Section item(section.reader(), node, std::move(path));
    FieldRewrite::Entry entry;
    const bool named = ParseMetadataName(item, "name", &entry.name);
    ParseValue(item, &entry);
    if (!named) return;
    if (const std::string_view why = WhyNot(entry.name); !why.empty())
      return item.Fail("name", Cat(Shown(entry.name), why));
    if (unique && std::ranges::find(*out, entry.name, &FieldRewrite::Entry::name) != out->end())
      return item.Fail("name", Cat(Shown(entry.name), " is there twice; `add` is for more than one value"));
    out->push_back(std::move(entry));
  });
}

void ParseFields(Section& section, FieldRewrite* out) {
  ParseMetadataNames(section, "remove", kRewritesMax, WhyNot, &out->remove);
  ParseEntries(section, "set", /*unique=*/true, &out->set);
  ParseEntries(section, "add", /*unique=*/false, &out->add);
}

// RFC 9113 8.3.1: a host and a port, no user.
bool IsAuthorityChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
}

// What a gate has found out of a token is not for the configuration to say.
void CheckClaims(Section& section, const std::vector<proxy::JwtProviderOptions>& providers,
                 const FieldRewrite& request) {
  for (const proxy::JwtProviderOptions& provider : providers) {
    for (const proxy::JwtClaim& claim : provider.forward_claims) {
      const std::string& name = claim.metadata;
      const auto among = [&](const auto& entries) {
        return std::ranges::find(entries, name, &FieldRewrite::Entry::name) != entries.end();
      };
      if (!among(request.set) && !among(request.add) && std::ranges::find(request.remove, name) == request.remove.end())
        continue;
      section.Fail("request", Cat(Shown(name), " is metadata of a claim of ", Shown(provider.name),
                                  ", which only its gate may say; another name is needed"));
    }
  }
}

}  // namespace

void ParseRewrite(Section& section, const std::vector<proxy::JwtProviderOptions>& providers, RewriteOptions* out) {
  if (section.Text("authority", &out->authority) && !out->authority.empty() &&
      !std::ranges::all_of(out->authority, IsAuthorityChar)) {
    section.Fail("authority", Cat(Shown(out->authority), " is not an authority like users.internal or 10.0.0.1:50051"));
  }
  section.Map("request", [&](Section& request) { ParseFields(request, &out->request); });
  section.Map("response", [&](Section& response) { ParseFields(response, &out->response); });
  CheckClaims(section, providers, out->request);
}

}  // namespace sluice::config
