// Dumpers: a function for each part of a configuration that is more than a table; the counterparts of parsers.h.
#pragma once

#include "config/config.h"
#include "config/dump_writer.h"
#include "http2/option_table.h"
#include "limits/option_table.h"

namespace sluice::config {

void DumpListener(DumpWriter& out, const proxy::ListenerOptions& listener);
// `discovery`: null: the list has no source.
void DumpCluster(DumpWriter& out, const upstream::ClusterOptions& cluster,
                 const discovery::DiscoveryOptions* discovery);
void DumpEndpoint(DumpWriter& out, const upstream::EndpointOptions& endpoint);
void DumpEtcd(DumpWriter& out, const discovery::EtcdOptions& etcd);
void DumpJwtProvider(DumpWriter& out, const proxy::JwtProviderOptions& provider);
// `declared`: there is a descriptor set, which says what methods may be repeated.
void DumpRoute(DumpWriter& out, const proxy::RouteOptions& route, bool declared);

template <typename Owner>
void DumpConnections(DumpWriter& out, const Owner& owner) {
  out.Options(http2::kLifeOptions, owner.life);
  out.Map("keepalive", http2::kKeepaliveOptions, owner.keepalive);
  out.Map("http2", http2::kSessionOptions, owner.http2);
}

}  // namespace sluice::config
