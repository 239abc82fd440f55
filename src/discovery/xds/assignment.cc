#include "discovery/xds/assignment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "envoy/config/endpoint/v3/endpoint.pb.h"

namespace sluice::discovery {
namespace {

using envoy::config::core::v3::HealthStatus;
using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::endpoint::v3::LbEndpoint;
using envoy::config::endpoint::v3::LocalityLbEndpoints;

constexpr size_t kErrorsTold = 5;
constexpr uint64_t kSumMax = std::numeric_limits<uint32_t>::max();
constexpr size_t kNameBytesMax = 256;  // of an endpoint, as in the configuration

std::string Indexed(const char* list, int index) { return std::string(list) + "[" + std::to_string(index) + "]"; }

// One assignment being read.
class Reading {
 public:
  void Read(const ClusterLoadAssignment& assignment);
  void Finish(XdsResource* out);

 private:
  struct Found {
    upstream::EndpointOptions options;
    std::string hash_key;
    uint64_t weight = 1;
  };

  void ReadLocality(const LocalityLbEndpoints& locality, const std::string& path, uint64_t weight);
  void ReadEndpoint(const LbEndpoint& endpoint, const std::string& path, uint64_t locality_weight, Found found);
  bool ReadAddress(const LbEndpoint& endpoint, const std::string& path, net::Address* out);
  void CheckPriorities();
  void Name();
  void Weigh();

  void Fail(const std::string& path, const std::string& what) {
    if (++errors_ <= kErrorsTold) error_ += (error_.empty() ? "" : "; ") + path + ": " + what;
  }
  void Note(const std::string& text) { note_ += (note_.empty() ? "" : "; ") + text; }

  size_t errors_ = 0, unnamed_ = 0;
  std::string error_, note_;
  std::vector<Found> found_;
  std::unordered_set<std::string> addresses_;
  std::array<uint64_t, upstream::kPrioritiesMax> locality_weights_{};  // sums, by priority
  uint64_t endpoint_weights_ = 0;                                      // the sum in the present locality
};

bool Takes(HealthStatus status) {
  return status == HealthStatus::UNKNOWN || status == HealthStatus::HEALTHY || status == HealthStatus::DEGRADED;
}

void Reading::Read(const ClusterLoadAssignment& assignment) {
  bool weighted = false;
  int skipped = 0;
  for (const LocalityLbEndpoints& locality : assignment.endpoints()) weighted |= locality.has_load_balancing_weight();
  for (int i = 0; i < assignment.endpoints_size(); ++i) {
    const LocalityLbEndpoints& locality = assignment.endpoints(i);
    // One without a weight among others that have one gets no calls (A27); Envoy's users often give none to all.
    const uint64_t weight = weighted ? locality.load_balancing_weight().value() : 1;
    if (weight == 0) {
      ++skipped;
      continue;
    }
    ReadLocality(locality, Indexed("endpoints", i), weight);
  }
  if (skipped > 0) Note("localities without load_balancing_weight, which are skipped: " + std::to_string(skipped));
  if (unnamed_ > 0)
    Note("localities whose name is left out, as it is not printable ASCII of at most " +
         std::to_string(upstream::kLocalityBytesMax) + " bytes: " + std::to_string(unnamed_));
  CheckPriorities();
}

void Reading::ReadLocality(const LocalityLbEndpoints& locality, const std::string& path, uint64_t weight) {
  if (locality.priority() >= upstream::kPrioritiesMax) {
    return Fail(path + ".priority", std::to_string(locality.priority()) + "; allowed: [0, " +
                                        std::to_string(upstream::kPrioritiesMax - 1) + "]");
  }
  uint64_t& sum = locality_weights_[locality.priority()];
  if ((sum += weight) > kSumMax)
    return Fail(path + ".load_balancing_weight", "the weights of the localities of priority " +
                                                     std::to_string(locality.priority()) + " sum up to more than " +
                                                     std::to_string(kSumMax));
  Found found;
  found.options.priority = locality.priority();
  std::string place =
      locality.locality().region() + "/" + locality.locality().zone() + "/" + locality.locality().sub_zone();
  while (!place.empty() && place.back() == '/') place.pop_back();
  if (upstream::IsLocality(place))
    found.options.locality = std::move(place);
  else
    ++unnamed_;
  endpoint_weights_ = 0;
  for (int i = 0; i < locality.lb_endpoints_size(); ++i)
    ReadEndpoint(locality.lb_endpoints(i), path + "." + Indexed("lb_endpoints", i), weight, found);
}

void Reading::ReadEndpoint(const LbEndpoint& endpoint, const std::string& path, uint64_t locality_weight, Found found) {
  if (!Takes(endpoint.health_status()) || found_.size() > upstream::kEndpointsMax) return;
  const uint64_t weight = endpoint.has_load_balancing_weight() ? endpoint.load_balancing_weight().value() : 1;
  if (weight == 0) return Fail(path + ".load_balancing_weight", "0; allowed: at least 1");
  if ((endpoint_weights_ += weight) > kSumMax)
    return Fail(path + ".load_balancing_weight",
                "the weights of the endpoints of the locality sum up to more than " + std::to_string(kSumMax));
  if (!ReadAddress(endpoint, path, &found.options.address)) return;
  found.options.name = found.options.address.ToString();
  if (!addresses_.insert(found.options.name).second)
    return Fail(path + ".endpoint.address", found.options.name + " is there twice");
  found.weight = weight * locality_weight;
  const auto& metadata = endpoint.metadata().filter_metadata();
  if (const auto lb = metadata.find("envoy.lb"); lb != metadata.end()) {
    const auto key = lb->second.fields().find("hash_key");
    if (key != lb->second.fields().end()) found.hash_key = key->second.string_value();
  }
  if (found.hash_key.size() > kNameBytesMax ||
      !std::all_of(found.hash_key.begin(), found.hash_key.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    return Fail(path + ".metadata", "hash_key " + ShownText(found.hash_key) + "; allowed: at most " +
                                        std::to_string(kNameBytesMax) + " visible ASCII characters");
  }
  found_.push_back(std::move(found));
}

bool Reading::ReadAddress(const LbEndpoint& endpoint, const std::string& path, net::Address* out) {
  using Socket = envoy::config::core::v3::SocketAddress;
  const auto fail = [&](const char* part, const std::string& what) {
    Fail(path + "." + part, what);
    return false;
  };
  if (!endpoint.has_endpoint()) return fail("endpoint", "is missing");
  if (!endpoint.endpoint().address().has_socket_address())
    return fail("endpoint.address", "is no socket_address; nothing else is allowed");
  const Socket& socket = endpoint.endpoint().address().socket_address();
  if (socket.protocol() != Socket::TCP) return fail("endpoint.address.socket_address.protocol", "allowed: TCP");
  if (socket.port_specifier_case() == Socket::kNamedPort || socket.port_value() == 0 || socket.port_value() > 65535)
    return fail("endpoint.address.socket_address.port_value",
                std::to_string(socket.port_value()) + "; allowed: [1, 65535]");
  const bool six = socket.address().find(':') != std::string::npos;
  const std::string host = six ? "[" + socket.address() + "]" : socket.address();
  auto address = net::Address::Parse(host + ":" + std::to_string(socket.port_value()));
  if (!address.ok() || address->kind() != net::Address::Kind::kIp)
    return fail("endpoint.address.socket_address.address",
                ShownText(socket.address()) + " is no IP address; nothing else is allowed");
  *out = std::move(*address);
  return true;
}

// Localities of one must be there for each priority down to the lowest, or failing over would stop at the gap.
void Reading::CheckPriorities() {
  size_t last = 0;
  for (size_t i = 0; i < locality_weights_.size(); ++i) {
    if (locality_weights_[i] > 0) last = i;
  }
  for (size_t i = 0; i < last; ++i) {
    if (locality_weights_[i] == 0)
      Fail("endpoints", "no locality has priority " + std::to_string(i) + ", and one has " + std::to_string(last));
  }
}

// The name is the hash_key (gRFC A76), else the address. Of endpoints with one key the first by address has it, so that
// all proxies name them alike.
void Reading::Name() {
  std::vector<Found*> by_address;
  by_address.reserve(found_.size());
  for (Found& found : found_) by_address.push_back(&found);
  std::sort(by_address.begin(), by_address.end(),
            [](const Found* a, const Found* b) { return a->options.name < b->options.name; });
  std::unordered_set<std::string> taken;
  for (const Found& found : found_) {
    if (found.hash_key.empty()) taken.insert(found.options.name);
  }
  size_t shared = 0;
  for (Found* found : by_address) {
    if (found->hash_key.empty()) continue;
    if (taken.insert(found->hash_key).second) {
      found->options.name = found->hash_key;
      continue;
    }
    ++shared;
    if (!taken.insert(found->options.name).second)
      Fail("endpoints", "the hash_key of an endpoint is the address of another one, " + found->options.name);
  }
  if (shared > 0)
    Note("endpoints whose hash_key another one has, and that go by their address: " + std::to_string(shared));
}

void Reading::Weigh() {
  std::array<uint64_t, upstream::kPrioritiesMax> common{};
  for (const Found& found : found_) {
    uint64_t& gcd = common[found.options.priority];
    gcd = std::gcd(gcd, found.weight);
  }
  for (Found& found : found_) found.options.weight = static_cast<double>(found.weight / common[found.options.priority]);
}

void Reading::Finish(XdsResource* out) {
  if (found_.size() > upstream::kEndpointsMax) {
    Fail("endpoints", "more than " + std::to_string(upstream::kEndpointsMax) + " endpoints");
  } else {
    Name();
    Weigh();
  }
  out->note = std::move(note_);
  if (errors_ > 0) {
    if (errors_ > kErrorsTold) error_ += "; and " + std::to_string(errors_ - kErrorsTold) + " more";
    out->error = std::move(error_);
    return;
  }
  List list;
  list.reserve(found_.size());
  for (Found& found : found_) list.push_back(std::move(found.options));
  out->list = std::make_shared<const List>(std::move(list));
}

}  // namespace

void ReadAssignment(const ClusterLoadAssignment& assignment, XdsResource* out) {
  Reading reading;
  reading.Read(assignment);
  reading.Finish(out);
}

void FitWeights(List& list, double sum_max) {
  constexpr double kMin = 0.01, kMax = 100;
  struct Tier {
    double sum = 0, count = 0, most = 0;
  };
  std::array<Tier, upstream::kPrioritiesMax> tiers{};
  double sum = 0;
  bool fits = true;
  for (const upstream::EndpointOptions& endpoint : list) {
    tiers[endpoint.priority].sum += endpoint.weight;
    tiers[endpoint.priority].count += 1;
    tiers[endpoint.priority].most = std::max(tiers[endpoint.priority].most, endpoint.weight);
    sum += endpoint.weight;
    fits &= endpoint.weight >= kMin && endpoint.weight <= kMax;
  }
  if (fits && sum <= sum_max) return;
  if (std::isinf(sum_max)) {
    // A ring of any sum: the same ring, as long as the quotients of the weights stay what they are to the last bit.
    for (upstream::EndpointOptions& endpoint : list) {
      int shift = 0;
      std::frexp(tiers[endpoint.priority].most / kMax, &shift);
      endpoint.weight = std::max(std::ldexp(endpoint.weight, -std::max(shift, 0)), kMin);
    }
    return;
  }
  for (upstream::EndpointOptions& endpoint : list) {
    const Tier& tier = tiers[endpoint.priority];
    endpoint.weight = std::clamp(endpoint.weight * tier.count / tier.sum, kMin, kMax);
  }
}

}  // namespace sluice::discovery
