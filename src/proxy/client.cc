#include "proxy/client.h"

#include "base/hash.h"

namespace sluice::proxy {

uint64_t ListenerId(std::string_view name) { return base::Hash64(name); }

}  // namespace sluice::proxy
