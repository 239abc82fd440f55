// Options of listeners, routes and calls. Parsed by config, documented in config/reference.yaml.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http2/options.h"
#include "net/address.h"

namespace sluice::proxy {

struct ListenerOptions {
  std::string name;  // default: the address
  net::Address address;
  // Mode of a Unix socket's file. Octal in YAML ("0660").
  uint32_t unix_mode = 0666;
  // Connections accepted at once on this listener; more wait in the kernel's queue. 1..1000000.
  uint32_t connections_max = 100000;
  // Connections the kernel queues for us (listen(2)). 1..65535.
  uint32_t backlog = 1024;
  http2::KeepaliveOptions keepalive;
  http2::SessionOptions http2;
  bool operator==(const ListenerOptions&) const = default;
};

// One metadata condition of a route: present and, if given, equal to or starting with a value.
struct MetadataMatch {
  std::string name;  // lower case
  enum class Kind : uint8_t { kPresent, kExact, kPrefix } kind = Kind::kPresent;
  std::string value;
  bool operator==(const MetadataMatch&) const = default;
};

struct HashBy {
  enum class Kind : uint8_t { kRandom, kMethod, kPeer, kMetadata } kind = Kind::kRandom;
  std::string metadata;  // for kMetadata; a call without it is hashed at random
  bool operator==(const HashBy&) const = default;
};

struct RetryOptions {
  // Attempts in all for a call that was certainly not processed (refused, never sent). 1: none. 1..10.
  uint32_t attempts_max = 3;
  // Request bytes kept for another attempt until the response starts; a longer request is not tried again. 0..16 MiB.
  uint32_t buffer_bytes_max = 64 * 1024;
  bool operator==(const RetryOptions&) const = default;
};

// The first route whose conditions all hold takes the call.
struct RouteOptions {
  std::string name;       // default: "routes[i]"; a label of metrics and access log
  std::string service;    // "pkg.Service": exact. Empty: any
  std::string method;     // "Get": exact, only with service. Empty: any
  std::string prefix;     // of the whole path "/pkg.Service/Get". Empty: any. Not with service
  std::string authority;  // exact, case-insensitive, port optional; "*.example.com" matches any prefix. Empty: any
  std::vector<MetadataMatch> metadata;
  std::string cluster;
  HashBy hash_by;
  // Bound on a call's whole life where the client gave none or a longer one. 0: none. 0..24h.
  std::chrono::milliseconds timeout{0};
  RetryOptions retry;
  bool operator==(const RouteOptions&) const = default;
};

struct AccessLogOptions {
  enum class Format : uint8_t { kOff, kText, kJson } format = Format::kOff;
  std::string path;  // empty: stdout
  bool operator==(const AccessLogOptions&) const = default;
};

struct ForwardingOptions {
  // Append the peer's address to x-forwarded-for; set x-forwarded-proto and x-forwarded-host where absent.
  bool x_forwarded = false;
  // Add "via: 2 sluice" in both directions.
  bool via = false;
  bool operator==(const ForwardingOptions&) const = default;
};

}  // namespace sluice::proxy
