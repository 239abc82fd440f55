// XdsView: what people are shown of the control plane and of what it has sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "discovery/xds_options.h"

namespace sluice::discovery {

// As of gRFC A40.
enum class XdsResourceState : uint8_t { kRequested, kDoesNotExist, kAcked, kNacked };
std::string_view ToString(XdsResourceState state);

enum class AdsStreamState : uint8_t {
  kNone,       // no cluster asks for anything
  kBackoff,    // the last stream has ended, the next begins soon
  kBegun,      // the server has not answered yet
  kConnected,  // it has, or has held the stream long enough
};
std::string_view ToString(AdsStreamState state);

struct XdsResourceView {
  std::string type_url, name;
  XdsResourceState state = XdsResourceState::kRequested;
  std::string version;         // of the one that is used; empty: there is none
  std::string error, refused;  // kNacked: why the last one is not used, and its version
  std::string note;            // of the one that is used
  std::optional<base::Nanos> updated_ago, refused_ago;
  std::shared_ptr<const std::string> bytes;  // of the one that is used, serialized; null: there is none
};

// Responses of one type, by how they were answered.
struct XdsCounts {
  uint64_t acked = 0, refused = 0;
};

struct XdsView {
  XdsNodeOptions node;
  std::vector<std::string> servers;  // by preference
  size_t server = 0;                 // the one that is asked
  AdsStreamState stream = AdsStreamState::kNone;
  std::string error;              // of the last attempt to reach a server; empty: it is reached
  std::vector<XdsCounts> counts;  // of clusters, of endpoint lists
  std::vector<XdsResourceView> resources;
};

}  // namespace sluice::discovery
