#include "discovery/options.h"

namespace sluice::discovery {

std::string DiscoveryOptions::Name() const {
  switch (kind) {
    case SourceKind::kNone:
      return {};
    case SourceKind::kFile:
      return "file " + file.path;
  }
  return {};
}

}  // namespace sluice::discovery
