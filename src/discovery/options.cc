#include "discovery/options.h"

namespace sluice::discovery {

std::string DnsOptions::NamePort() const {
  return records == DnsRecords::kSrv ? name : name + ":" + std::to_string(port);
}

std::string DiscoveryOptions::Name() const {
  switch (kind) {
    case SourceKind::kNone:
      return {};
    case SourceKind::kFile:
      return "file " + file.path;
    case SourceKind::kDns: {
      std::string text = "dns://";
      for (size_t i = 0; i < dns.servers.size(); ++i) text += (i == 0 ? "" : ",") + dns.servers[i];
      text += "/" + dns.NamePort();
      if (dns.records == DnsRecords::kSrv) text += " (srv)";
      if (dns.mode == DnsMode::kOne) text += " (one)";
      return text;
    }
    case SourceKind::kXds:
      return "xds " + xds.resource;
    case SourceKind::kEtcd: {
      std::string name = "etcd " + etcd.prefix + " at ";
      for (const std::string& server : etcd.servers) name += (&server == &etcd.servers.front() ? "" : ",") + server;
      return name;
    }
  }
  return {};
}

}  // namespace sluice::discovery
