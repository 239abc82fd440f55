#include "proxy/metadata_match.h"

#include <optional>
#include <string>

#include "http2/fields/bin_value.h"
#include "proxy/canonical/field_name.h"
#include "proxy/canonical/members.h"

namespace sluice::proxy {
namespace {

using Kind = MetadataMatch::Kind;

bool TextFits(Kind kind, std::string_view wanted, std::string_view value) {
  switch (kind) {
    case Kind::kPresent:
      return true;
    case Kind::kExact:
      return value == wanted;
    case Kind::kPrefix:
      return value.starts_with(wanted);
  }
  return false;
}

// Of one member of a list, or of a whole value.
bool Fits(const MetadataMatch& wanted, std::string_view value) {
  if (wanted.kind == Kind::kPresent) return true;
  if (!http2::IsBinName(wanted.name)) return TextFits(wanted.kind, wanted.value, value);
  const std::optional<std::string> bytes = http2::DecodeBin(value), wanted_bytes = http2::DecodeBin(wanted.value);
  if (!bytes || !wanted_bytes) return TextFits(wanted.kind, wanted.value, value);
  return TextFits(wanted.kind, *wanted_bytes, *bytes);
}

bool AnyMemberFits(const MetadataMatch& wanted, std::string_view value) {
  if (Fits(wanted, value)) return true;
  bool any = false;
  ForEachMember(value, [&](std::string_view member) { any |= Fits(wanted, member); });
  return any;
}

bool EveryMemberFits(const MetadataMatch& wanted, const http2::Field& field) {
  if (field.token == http2::Token::kUserAgent || wanted.value.find(',') != wanted.value.npos)
    return Fits(wanted, field.value());
  bool every = true;
  ForEachMember(field.value(), [&](std::string_view member) { every &= Fits(wanted, member); });
  return every;
}

}  // namespace

bool AnyValueFits(const MetadataMatch& wanted, const CanonicalRequest& request) {
  for (const http2::Field* field : request) {
    if (SameFieldName(field->name(), wanted.name) && AnyMemberFits(wanted, field->value())) return true;
  }
  return false;
}

bool EveryValueFits(const MetadataMatch& wanted, const CanonicalRequest& request) {
  bool there = false;
  for (const http2::Field* field : request) {
    if (!SameFieldName(field->name(), wanted.name)) continue;
    if (!EveryMemberFits(wanted, *field)) return false;
    there |= field->name() == wanted.name;
  }
  return there;
}

}  // namespace sluice::proxy
