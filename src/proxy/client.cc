#include "proxy/client.h"

#include "base/hash.h"

namespace sluice::proxy {

base::Error BeyondClient(const Client& client, std::string_view what, size_t list_bytes) {
  base::Error error =
      base::MakeError(base::ErrorKind::kTooLarge,
                      std::string(what) + " of " + std::to_string(list_bytes) + " bytes are above the " +
                          std::to_string(client.header_list_max) + " bytes that the client takes",
                      base::ErrorSource::kDownstream);
  error.maybe_processed = true;
  return error;
}

uint64_t ListenerId(std::string_view name) { return base::Hash64(name); }

}  // namespace sluice::proxy
