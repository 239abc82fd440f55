// Whether an endpoint is one of the process's own listeners: calls to it would come back and go round in a circle.
#pragma once

#include "net/address.h"

namespace sluice::net {

// Whether a connection to `to` reaches a socket that listens on `listener`: the same address and port, or the port of a
// listener on all addresses (0.0.0.0, ::) and an address of this host. Of names only `localhost` is understood. Asks
// the system for its interfaces where `listener` is on all addresses; any thread.
bool LeadsToListener(const Address& to, const Address& listener);

}  // namespace sluice::net
