// Messages of xDS, by the .proto files that @grpc/grpc-js-xds brings along.
'use strict';
const path = require('path');
require('@grpc/proto-loader');  // it knows google/protobuf/*.proto
const { loadProtosWithOptionsSync } = require('@grpc/proto-loader/build/src/util');

const xds = path.dirname(require.resolve('@grpc/grpc-js-xds/package.json'));
const root = loadProtosWithOptionsSync(
  [
    'envoy/service/discovery/v3/ads.proto',
    'envoy/service/status/v3/csds.proto',
    'envoy/config/listener/v3/listener.proto',
    'envoy/config/route/v3/route.proto',
    'envoy/config/cluster/v3/cluster.proto',
    'envoy/config/endpoint/v3/endpoint.proto',
    'envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto',
    'envoy/extensions/filters/http/router/v3/router.proto',
  ],
  {
    keepCase: true,
    includeDirs: ['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map(dir => path.join(xds, 'deps', dir)),
  });

const TYPES = {
  lds: 'envoy.config.listener.v3.Listener',
  rds: 'envoy.config.route.v3.RouteConfiguration',
  cds: 'envoy.config.cluster.v3.Cluster',
  eds: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
};
const URL_PREFIX = 'type.googleapis.com/';

function encode(name, value) {
  const type = root.lookupType(name);
  return Buffer.from(type.encode(type.fromObject(value)).finish());
}
function decode(name, bytes) {
  const type = root.lookupType(name);
  return type.toObject(type.decode(bytes), { longs: Number, enums: String, defaults: true });
}
// A google.protobuf.Any of that message, as an object.
function any(name, value) {
  return { type_url: URL_PREFIX + name, value: encode(name, value) };
}

module.exports = { TYPES, URL_PREFIX, any, decode, encode };
