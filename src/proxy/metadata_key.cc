#include "proxy/metadata_key.h"

namespace sluice::proxy {

std::optional<std::string_view> MetadataKey(const http2::HeaderList& request, std::string_view name, Repeated repeated,
                                            std::string& scratch) {
  std::optional<std::string_view> key;
  for (const http2::Field* field : request) {
    if (field->name() != name) continue;
    if (!key || repeated == Repeated::kLast) {
      key = field->value();
    } else if (repeated == Repeated::kFirst) {
      break;
    } else {
      if (scratch.empty()) scratch = *key;  // of the first two, or again where those before were empty
      scratch.append(",").append(field->value());
      key = scratch;
    }
  }
  return key;
}

}  // namespace sluice::proxy
