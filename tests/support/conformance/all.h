// All scripts of a role, by section of RFC 9113.
#pragma once

#include "support/conformance/frames.h"
#include "support/conformance/framing.h"
#include "support/conformance/messages.h"

namespace sluice::h2 {

// Mistakes that a client may make, and frames that it must be able to send, towards our server role.
inline Scripts Section4OfAClient() { return FrameFormat() + HeaderBlocks() + HeaderBlocksOfAClient(); }
inline Scripts Section5OfAClient() { return StreamStates() + StreamStatesOfAClient(); }
inline Scripts Section6OfAClient() { return FrameTypes() + FrameTypesOfAClient(); }
inline Scripts Section8OfAClient() { return MalformedRequests() + BrokenRequests(); }

// The same of a server towards our client role.
inline Scripts Section4OfAServer() { return FrameFormat() + HeaderBlocks(); }
inline Scripts Section5OfAServer() { return StreamStates() + StreamStatesOfAServer(); }
inline Scripts Section6OfAServer() { return FrameTypes() + FrameTypesOfAServer(); }
inline Scripts Section8OfAServer() { return MalformedResponses() + BrokenResponses(); }

}  // namespace sluice::h2
