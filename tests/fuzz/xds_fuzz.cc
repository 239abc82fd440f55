// What a control plane sends: any bytes are no response, or become resources that are refused with words or can be
// used; and the client's end of a stream keeps its promises whatever comes in which order.
//
// The input: a program that chooses what happens on the stream, then the bytes of a response; with the first byte's
// high bit the bytes are of a ClusterLoadAssignment in a response that is right.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "discovery/xds/ads_request.h"
#include "discovery/xds/ads_state.h"
#include "discovery/xds/assignment.h"
#include "fuzz/support/program.h"
#include "support/xds_messages.h"

namespace sluice::discovery {
namespace {

void CheckList(const List& list) {
  SLUICE_CHECK(list.size() <= upstream::kEndpointsMax);
  std::set<std::string> names;
  for (const upstream::EndpointOptions& endpoint : list) {
    SLUICE_CHECK(!endpoint.name.empty() && endpoint.name.size() <= 256 && endpoint.address.port() != 0);
    SLUICE_CHECK(endpoint.priority < upstream::kPrioritiesMax && upstream::IsLocality(endpoint.locality));
    SLUICE_CHECK(std::isfinite(endpoint.weight) && endpoint.weight >= 1);
    SLUICE_CHECK(names.insert(endpoint.name).second);
  }
  List fitted = list;
  FitWeights(fitted, 1000);
  for (const upstream::EndpointOptions& endpoint : fitted)
    SLUICE_CHECK(endpoint.weight >= 0.01 && endpoint.weight <= 100);
}

void CheckResponse(const XdsResponse& response) {
  for (const std::string& error : response.errors) SLUICE_CHECK(!error.empty());
  for (const XdsResource& resource : response.resources) {
    SLUICE_CHECK(!resource.name.empty() && resource.name.size() <= kXdsNameBytesMax);
    if (!resource.error.empty()) continue;
    SLUICE_CHECK(resource.bytes != nullptr);
    if (response.type == XdsType::kCluster)
      SLUICE_CHECK(!resource.eds_name.empty() && resource.eds_name.size() <= kXdsNameBytesMax);
    else
      CheckList(*resource.list);
  }
}

// Requests of one stream: the node in the first, never one for everything before there were names.
struct Stream {
  bool first = true;
  std::set<XdsType> named;
  void Check(const AdsRequest& request) {
    SLUICE_CHECK(request.with_node == std::exchange(first, false));
    SLUICE_CHECK(!request.names.empty() || named.contains(request.type));
    SLUICE_CHECK(request.error.size() <= AdsState::kErrorBytesMax);
    named.insert(request.type);
    (void)Serialize(request, XdsNodeOptions());
  }
};

std::string ResponseOf(bool wrapped, std::string bytes) {
  if (!wrapped) return bytes;
  google::protobuf::Any any;
  any.set_type_url(test::kEndpointsUrl);
  any.set_value(std::move(bytes));
  return test::ResponseBytes(test::kEndpointsUrl, "2", "n", {any});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (spdlog::set_level(spdlog::level::off), true);
  (void)quiet;
  fuzz::Program program(data, size);
  const uint8_t first = program.U8();
  const size_t steps = first & 15;
  std::string script;
  for (size_t i = 0; i < steps; ++i) script += static_cast<char>(program.Below(8));
  const auto response = ParseXdsResponse(ResponseOf((first & 128) != 0, std::string(program.Rest())));
  if (response) CheckResponse(*response);

  AdsState state;
  Stream stream;
  base::TimePoint now{std::chrono::hours(1)};
  bool open = false;
  for (const char step : script) {
    switch (step) {
      case 0:
        state.Follow({"a", "b"});
        break;
      case 1:
        state.Follow({"b"});
        break;
      case 2:
        if (open) state.StreamEnded("away");
        state.StreamBegun((first & 64) != 0, (first & 32) != 0, now);
        stream = Stream();
        open = true;
        break;
      case 3:
        if (open) state.StreamEnded("away");
        open = false;
        break;
      case 4:
        if (open && response) state.Received(*response, now);
        break;
      case 5:
        if (open)
          state.Received(*ParseXdsResponse(test::ResponseBytes(
                             test::kClusterUrl, "1", "c",
                             {test::Packed(test::EdsCluster("a")), test::Packed(test::EdsCluster("b", "s"))})),
                         now);
        break;
      default:
        now += std::chrono::seconds(8);
        state.Tick(now);
        break;
    }
    for (const AdsRequest& request : state.TakeRequests(now)) {
      SLUICE_CHECK(open);
      stream.Check(request);
    }
    for (const char* cluster : {"a", "b"}) {
      if (const AdsNews news = state.NewsOf(cluster); news.list != nullptr) CheckList(*news.list);
    }
    for (const XdsResourceView& view : state.Describe(now).resources) {
      SLUICE_CHECK((view.state == XdsResourceState::kNacked) == !view.error.empty());
      SLUICE_CHECK(view.state != XdsResourceState::kAcked || view.bytes != nullptr);
      SLUICE_CHECK(view.state != XdsResourceState::kDoesNotExist || view.bytes == nullptr);
    }
  }
  return 0;
}

}  // namespace sluice::discovery
