#include "proxy/metadata_key.h"

#include "http2/fields/bin_value.h"
#include "proxy/canonical/members.h"

namespace sluice::proxy {

namespace {

using Iterator = const http2::Field* const*;

Iterator Next(Iterator from, Iterator end, std::string_view name) {
  while (from != end && (*from)->name() != name) ++from;
  return from;
}

}  // namespace

std::optional<std::string_view> MetadataKey(const CanonicalRequest& request, std::string_view name, Repeated repeated,
                                            std::string& scratch) {
  const Iterator end = request.end(), first = Next(request.begin(), end, name);
  if (first == end) return std::nullopt;
  const bool bytes = http2::IsBinName(name);
  if (!bytes && (*first)->value().find(',') == std::string_view::npos && Next(first + 1, end, name) == end) [[likely]]
    return (*first)->value();
  // A list in one field is the same as a field for each member.
  bool begun = false;
  for (Iterator field = first; field != end; field = Next(field + 1, end, name)) {
    ForEachMember((*field)->value(), [&](std::string_view member) {
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

}  // namespace sluice::proxy
