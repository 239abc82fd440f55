#include "proxy/metadata_key.h"

namespace sluice::proxy {

namespace {

using Iterator = const http2::Field* const*;

Iterator Next(Iterator from, Iterator end, std::string_view name) {
  while (from != end && (*from)->name() != name) ++from;
  return from;
}

}  // namespace

std::optional<std::string_view> MetadataKey(const http2::HeaderList& request, std::string_view name, Repeated repeated,
                                            std::string& scratch) {
  const Iterator end = request.end(), first = Next(request.begin(), end, name);
  if (first == end) return std::nullopt;
  std::string_view key = (*first)->value();
  if (repeated == Repeated::kFirst) return key;
  Iterator more = Next(first + 1, end, name);
  if (more == end) [[likely]]
    return key;
  scratch = key;
  for (; more != end; more = Next(more + 1, end, name)) {
    key = (*more)->value();
    scratch.append(",").append(key);
  }
  return repeated == Repeated::kLast ? key : scratch;
}

}  // namespace sluice::proxy
