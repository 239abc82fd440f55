#include "proxy/metadata_key.h"

#include "http2/fields/bin_value.h"
#include "proxy/canonical/members.h"

namespace sluice::proxy {

namespace {

// A list in one field is the same as a field for each member.
std::string_view KeyOfMembers(const CanonicalRequest& request, std::string_view name, Repeated repeated,
                              std::string& scratch) {
  const bool bytes = http2::IsBinName(name);
  bool begun = false;
  for (const http2::Field* field : request) {
    if (field->name() != name) continue;
    ForEachMember(field->value(), [&](std::string_view member) {
      if (begun && repeated == Repeated::kFirst) return;
      if (begun && repeated == Repeated::kJoined) scratch += ',';
      if (repeated == Repeated::kLast) scratch.clear();
      begun = true;
      const std::optional<std::string> decoded = bytes ? http2::DecodeBin(member) : std::nullopt;
      scratch.append(decoded ? *decoded : member);
    });
  }
  return scratch;
}

}  // namespace

std::optional<std::string_view> MetadataKey(const CanonicalRequest& request, const MetadataName& name,
                                            Repeated repeated, std::string& scratch) {
  const http2::Token token = name.token();
  const http2::Field* only = nullptr;
  for (const http2::Field* const* at = request.FirstOf(token); at != request.end(); ++at) {
    if ((*at)->token != token || (*at)->name() != name.text()) continue;
    if (only != nullptr) return KeyOfMembers(request, name.text(), repeated, scratch);
    only = *at;
  }
  if (only == nullptr) return std::nullopt;
  const bool plain = !name.is_bin() && only->value().find(',') == std::string_view::npos;
  if (plain) [[likely]]
    return only->value();
  return KeyOfMembers(request, name.text(), repeated, scratch);
}

}  // namespace sluice::proxy
