// The resources of a fleet: a listener, a route and a cluster for each name, and the list of endpoints behind them.
'use strict';
const { any } = require('./protos');

const ADS = { ads: {}, resource_api_version: 'V3' };

// The header that routes hash by.
const KEY_HEADER = 'x-key';

function listener(name) {
  const filters = [{
    name: 'router',
    typed_config: any('envoy.extensions.filters.http.router.v3.Router', {}),
  }];
  return {
    name,
    api_listener: {
      api_listener: any('envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
        rds: { config_source: ADS, route_config_name: name },
        http_filters: filters,
      }),
    },
  };
}
function routes(name) {
  return {
    name,
    virtual_hosts: [{
      name,
      domains: ['*'],
      routes: [{
        match: { prefix: '' },
        route: { cluster: name, hash_policy: [{ header: { header_name: KEY_HEADER } }] },
      }],
    }],
  };
}
// ring: {min, max}, or null for round robin. assignment: the name of its list.
function cluster(name, ring, assignment = name) {
  return {
    name,
    type: 'EDS',
    eds_cluster_config: { eds_config: ADS, service_name: assignment },
    ...(ring === null ? { lb_policy: 'ROUND_ROBIN' } : {
      lb_policy: 'RING_HASH',
      ring_hash_lb_config: { minimum_ring_size: { value: ring.min }, maximum_ring_size: { value: ring.max } },
    }),
  };
}
// localities: [{zone, priority, weight, endpoints: [{address, port, weight, health}]}]
function assignment(name, localities) {
  return {
    cluster_name: name,
    endpoints: localities.map(locality => ({
      locality: { region: 'r', zone: locality.zone, sub_zone: '' },
      priority: locality.priority,
      load_balancing_weight: { value: locality.weight },
      lb_endpoints: locality.endpoints.map(endpoint => ({
        health_status: endpoint.health || 'UNKNOWN',
        load_balancing_weight: { value: endpoint.weight },
        endpoint: { address: { socket_address: { address: endpoint.address, port_value: endpoint.port } } },
      })),
    })),
  };
}

module.exports = { KEY_HEADER, assignment, cluster, listener, routes };
