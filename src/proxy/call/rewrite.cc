#include "proxy/call/rewrite.h"

#include <algorithm>

#include "proxy/canonical/field_name.h"

namespace sluice::proxy {
namespace {

using http2::HeaderList;
using http2::Token;

// Some server takes an alias of the name for it (canonical/field_name.h).
bool Goes(const FieldRewrite& rewrite, std::string_view name) {
  return std::any_of(rewrite.remove.begin(), rewrite.remove.end(),
                     [&](const std::string& one) { return SameFieldName(one, name); }) ||
         std::any_of(rewrite.set.begin(), rewrite.set.end(),
                     [&](const FieldRewrite::Entry& entry) { return SameFieldName(entry.name, name); });
}

void AddAll(const FieldRewrite& rewrite, HeaderList& fields) {
  for (const auto* entries : {&rewrite.set, &rewrite.add}) {
    for (const FieldRewrite::Entry& entry : *entries) fields.Add(entry.name, entry.value, http2::Indexing::kIndexed);
  }
}

}  // namespace

HeaderList Rewritten(const HeaderList& request, const RewriteOptions& options) {
  HeaderList out;
  const bool other_authority = !options.authority.empty();
  // In front: a request may have none, and pseudo-headers come before all others (RFC 9113 8.3).
  if (other_authority) out.Add(":authority", options.authority, http2::Indexing::kIndexed);
  for (const http2::Field* field : request) {
    // RFC 9113 8.3.1: a host that differs from :authority is none.
    if (other_authority && (field->token == Token::kAuthority || field->token == Token::kHost)) continue;
    if (!http2::IsPseudo(field->token) && Goes(options.request, field->name())) continue;
    out.Add(field->name(), field->value(), field->indexing);
  }
  AddAll(options.request, out);
  return out;
}

void RewriteHeaders(const RewriteOptions& options, HeaderList& headers) {
  RewriteTrailers(options, headers);
  for (const FieldRewrite::Entry& entry : options.response.set) headers.Remove(entry.name);
  AddAll(options.response, headers);
}

void RewriteTrailers(const RewriteOptions& options, HeaderList& trailers) {
  for (const std::string& name : options.response.remove) trailers.Remove(name);
}

}  // namespace sluice::proxy
