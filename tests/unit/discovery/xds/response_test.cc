// What is read of a control plane's messages: clusters, lists of endpoints, and what is wrong with them.
#include "discovery/xds/response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "discovery/xds/assignment.h"
#include "support/xds_messages.h"

namespace sluice::discovery {
namespace {

using test::AddEndpoint;
using test::AddLocality;
using test::Any;
using test::Assignment;
using test::EdsCluster;
using test::kClusterUrl;
using test::kEndpointsUrl;
using test::Packed;
using test::ResponseBytes;
using test::XdsAssignment;
using test::XdsCluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

XdsResponse Read(const std::string& url, const std::vector<Any>& resources) {
  auto response = ParseXdsResponse(ResponseBytes(url, "v", "n", resources));
  EXPECT_TRUE(response.has_value());
  return std::move(*response);
}

XdsResource ReadOne(const XdsCluster& cluster) { return Read(kClusterUrl, {Packed(cluster)}).resources.at(0); }
XdsResource ReadOne(const XdsAssignment& assignment) {
  return Read(kEndpointsUrl, {Packed(assignment)}).resources.at(0);
}

// "a:1 w2 p1 r/z" for each.
std::vector<std::string> Told(const XdsResource& resource) {
  std::vector<std::string> out;
  if (resource.list == nullptr) return {"error: " + resource.error};
  for (const auto& e : *resource.list) {
    std::string text = e.name;
    if (e.address.ToString() != e.name) text += "=" + e.address.ToString();
    if (e.weight != 1) text += " w" + std::to_string(static_cast<int>(e.weight));
    if (e.priority != 0) text += " p" + std::to_string(e.priority);
    if (e.locality != "r") text += " " + e.locality;
    out.push_back(text);
  }
  return out;
}

TEST(XdsResponseTest, TheEnvelopeIsRead) {
  const XdsResponse response = Read(kClusterUrl, {Packed(EdsCluster("a")), Packed(EdsCluster("b", "svc"))});
  EXPECT_EQ(response.type, XdsType::kCluster);
  EXPECT_EQ(response.version, "v");
  EXPECT_EQ(response.nonce, "n");
  ASSERT_EQ(response.resources.size(), 2u);
  EXPECT_EQ(response.resources[0].name, "a");
  EXPECT_EQ(response.resources[0].eds_name, "a");
  EXPECT_EQ(response.resources[1].eds_name, "svc");
  EXPECT_EQ(*response.resources[1].bytes, EdsCluster("b", "svc").SerializeAsString());
  EXPECT_FALSE(Read("type.googleapis.com/envoy.config.listener.v3.Listener", {}).type);
  EXPECT_FALSE(ParseXdsResponse("\xff\xff\xff"));
}

TEST(XdsResponseTest, AResourceMayHaveItsNameAroundIt) {
  envoy::service::discovery::v3::Resource wrapper;
  wrapper.set_name("b");
  *wrapper.mutable_resource() = Packed(EdsCluster("b", "s"));
  const XdsResponse good = Read(kClusterUrl, {Packed(wrapper)});
  ASSERT_EQ(good.resources.size(), 1u);
  EXPECT_EQ(good.resources[0].eds_name, "s");
  *wrapper.mutable_resource() = test::Garbage(kClusterUrl);
  const XdsResponse bad = Read(kClusterUrl, {Packed(wrapper)});
  ASSERT_EQ(bad.resources.size(), 1u);
  EXPECT_EQ(bad.resources[0].name, "b");
  EXPECT_EQ(bad.resources[0].error, "cannot be decoded as what its type says");
  EXPECT_TRUE(bad.errors.empty());
}

TEST(XdsResponseTest, WithoutANameTheErrorHasThePlace) {
  const XdsResponse response =
      Read(kClusterUrl, {Packed(EdsCluster("a")), test::Garbage(kClusterUrl), Packed(Assignment("e", {})),
                         Packed(EdsCluster("")), Packed(EdsCluster("a")), Packed(EdsCluster(std::string(5000, 'n')))});
  EXPECT_EQ(response.resources.size(), 1u);
  EXPECT_THAT(response.errors,
              ElementsAre("resources[1]: cannot be decoded as what its type says",
                          "resources[2]: has the type \"" + kEndpointsUrl.substr(0, 80) + "\"; allowed: " + kClusterUrl,
                          "resources[3]: has no name", "resources[4]: the name \"a\" is there twice",
                          "resources[5]: has a name of 5000 bytes; at most 4096 are allowed"));
}

TEST(XdsResponseTest, TooManyResourcesAreRefusedTogether) {
  const XdsResponse response = Read(kClusterUrl, std::vector<Any>(kXdsResourcesMax + 1, Packed(EdsCluster("a"))));
  EXPECT_TRUE(response.resources.empty());
  EXPECT_THAT(response.errors, ElementsAre("resources: 20001; at most 20000 are allowed"));
}

TEST(XdsClusterTest, OnlyThoseOfTypeEdsAreTaken) {
  const std::pair<std::function<void(XdsCluster&)>, const char*> cases[] = {
      {[](XdsCluster& c) { c.set_type(XdsCluster::STATIC); }, "type: STATIC; allowed: EDS"},
      {[](XdsCluster& c) { c.set_type(XdsCluster::LOGICAL_DNS); }, "type: LOGICAL_DNS; allowed: EDS"},
      {[](XdsCluster& c) { c.clear_type(); }, "type: STATIC; allowed: EDS"},
      {[](XdsCluster& c) { c.set_type(static_cast<XdsCluster::DiscoveryType>(99)); }, "type: 99; allowed: EDS"},
      {[](XdsCluster& c) { c.mutable_cluster_type()->set_name("envoy.clusters.aggregate"); },
       "cluster_type: \"envoy.clusters.aggregate\"; allowed: type EDS"},
      {[](XdsCluster& c) { c.clear_eds_cluster_config(); },
       "eds_cluster_config.eds_config: is missing; allowed: ads, self"},
      {[](XdsCluster& c) { c.mutable_eds_cluster_config()->mutable_eds_config()->clear_ads(); },
       "eds_cluster_config.eds_config: names another place than this stream; allowed: ads, self"},
      {[](XdsCluster& c) { c.mutable_eds_cluster_config()->set_service_name(std::string(4097, 's')); },
       "eds_cluster_config.service_name: 4097 bytes; at most 4096 are allowed"},
      {[](XdsCluster& c) { c.set_name("xdstp://a/b/c"); },
       "eds_cluster_config.service_name: is missing; a cluster with an xdstp name needs it (gRFC A47)"}};
  for (const auto& [change, error] : cases) {
    XdsCluster cluster = EdsCluster("c");
    change(cluster);
    EXPECT_EQ(ReadOne(cluster).error, error);
  }
  XdsCluster self = EdsCluster("c");
  self.mutable_eds_cluster_config()->mutable_eds_config()->mutable_self();
  EXPECT_EQ(ReadOne(self).error, "");
}

TEST(XdsAssignmentTest, EndpointsAreNamedByAddressInTheOrderOfTheMessage) {
  const XdsResource resource = ReadOne(Assignment("e", {"10.0.0.2:80", "10.0.0.1:81", "::1:5"}));
  EXPECT_EQ(resource.name, "e");
  EXPECT_THAT(Told(resource), ElementsAre("10.0.0.2:80", "10.0.0.1:81", "[::1]:5"));
  EXPECT_EQ(resource.note, "");
}

TEST(XdsAssignmentTest, SickOnesAreNotInTheList) {
  using Status = envoy::config::core::v3::HealthStatus;
  XdsAssignment assignment;
  assignment.set_cluster_name("e");
  auto* locality = AddLocality(&assignment);
  int port = 0;
  for (const Status status : {Status::UNKNOWN, Status::HEALTHY, Status::UNHEALTHY, Status::DRAINING, Status::TIMEOUT,
                              Status::DEGRADED, static_cast<Status>(77)})
    AddEndpoint(locality, "10.0.0.1:" + std::to_string(++port))->set_health_status(status);
  EXPECT_THAT(Told(ReadOne(assignment)), ElementsAre("10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:6"));
}

TEST(XdsAssignmentTest, WeightsAreProductsWithoutWhatTheyHaveInCommon) {
  // The example of gRFC A42.
  XdsAssignment assignment;
  assignment.set_cluster_name("e");
  auto* one = AddLocality(&assignment, 0, 3);
  AddEndpoint(one, "10.0.0.1:1", 2);
  AddEndpoint(one, "10.0.0.2:1", 1);
  auto* two = AddLocality(&assignment, 0, 2);
  AddEndpoint(two, "10.0.0.3:1", 3);
  AddEndpoint(two, "10.0.0.4:1", 1);
  auto* next = AddLocality(&assignment, 1, 100);
  AddEndpoint(next, "10.0.0.5:1", 50);
  AddEndpoint(next, "10.0.0.6:1", 100);
  EXPECT_THAT(Told(ReadOne(assignment)), ElementsAre("10.0.0.1:1 w6", "10.0.0.2:1 w3", "10.0.0.3:1 w6", "10.0.0.4:1 w2",
                                                     "10.0.0.5:1 p1", "10.0.0.6:1 w2 p1"));
}

TEST(XdsAssignmentTest, LocalitiesWithoutWeightAreSkippedUnlessNoneHasOne) {
  XdsAssignment assignment;
  assignment.set_cluster_name("e");
  AddEndpoint(AddLocality(&assignment, 0, 0), "10.0.0.1:1");
  AddEndpoint(AddLocality(&assignment, 0, 0), "10.0.0.2:1");
  EXPECT_THAT(Told(ReadOne(assignment)), ElementsAre("10.0.0.1:1", "10.0.0.2:1"));
  AddEndpoint(AddLocality(&assignment, 0, 7), "10.0.0.3:1");
  const XdsResource resource = ReadOne(assignment);
  EXPECT_THAT(Told(resource), ElementsAre("10.0.0.3:1"));
  EXPECT_EQ(resource.note, "localities without load_balancing_weight, which are skipped: 2");
}

TEST(XdsAssignmentTest, RegionZoneAndSubZoneAreTheLocality) {
  XdsAssignment assignment;
  assignment.set_cluster_name("e");
  auto* one = AddLocality(&assignment, 0, 1, "eu");
  one->mutable_locality()->set_zone("a");
  one->mutable_locality()->set_sub_zone("3");
  AddEndpoint(one, "10.0.0.1:1");
  AddEndpoint(AddLocality(&assignment, 0, 1, "us"), "10.0.0.2:1");
  auto* two = AddLocality(&assignment, 0, 1, "");
  two->mutable_locality()->set_sub_zone("x");
  AddEndpoint(two, "10.0.0.3:1");
  AddEndpoint(AddLocality(&assignment, 0, 1, "\n"), "10.0.0.4:1");
  const XdsResource resource = ReadOne(assignment);
  EXPECT_THAT(Told(resource), ElementsAre("10.0.0.1:1 eu/a/3", "10.0.0.2:1 us", "10.0.0.3:1 //x", "10.0.0.4:1 "));
  EXPECT_THAT(resource.note, HasSubstr("not printable ASCII of at most 64 bytes: 1"));
}

TEST(XdsAssignmentTest, AHashKeyIsTheNameOfTheFirstThatHasIt) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a Struct's map, made in the distribution's libprotobuf, cannot be read by headers compiled for TSan";
#endif
  XdsAssignment assignment;
  assignment.set_cluster_name("e");
  auto* locality = AddLocality(&assignment);
  const auto add = [&](const std::string& address, const std::string& key) {
    auto& fields =
        *(*AddEndpoint(locality, address)->mutable_metadata()->mutable_filter_metadata())["envoy.lb"].mutable_fields();
    fields["hash_key"].set_string_value(key);
  };
  add("10.0.0.3:1", "pod-0");
  add("10.0.0.1:1", "pod-0");
  add("10.0.0.2:1", "");
  add("10.0.0.4:1", "pod-1");
  const XdsResource resource = ReadOne(assignment);
  EXPECT_THAT(Told(resource), ElementsAre("10.0.0.3:1", "pod-0=10.0.0.1:1", "10.0.0.2:1", "pod-1=10.0.0.4:1"));
  EXPECT_THAT(resource.note, HasSubstr("go by their address: 1"));
  add("10.0.0.5:1", "a b");
  EXPECT_THAT(ReadOne(assignment).error, HasSubstr("endpoints[0].lb_endpoints[4].metadata: hash_key \"a b\"; allowed"));
}

TEST(XdsAssignmentTest, WhatIsWrongIsNamedWithItsPlace) {
  using Socket = envoy::config::core::v3::SocketAddress;
  const auto socket = [](XdsAssignment& a) {
    return a.mutable_endpoints(0)
        ->mutable_lb_endpoints(1)
        ->mutable_endpoint()
        ->mutable_address()
        ->mutable_socket_address();
  };
  const std::string at = "endpoints[0].lb_endpoints[1].";
  const std::pair<std::function<void(XdsAssignment&)>, std::string> cases[] = {
      {[](XdsAssignment& a) { a.mutable_endpoints(0)->mutable_lb_endpoints(1)->clear_endpoint(); },
       at + "endpoint: is missing"},
      {[](XdsAssignment& a) {
         a.mutable_endpoints(0)->mutable_lb_endpoints(1)->mutable_endpoint()->mutable_address()->mutable_pipe();
       },
       at + "endpoint.address: is no socket_address; nothing else is allowed"},
      {[&](XdsAssignment& a) { socket(a)->set_protocol(Socket::UDP); },
       at + "endpoint.address.socket_address.protocol: allowed: TCP"},
      {[&](XdsAssignment& a) { socket(a)->set_port_value(0); },
       at + "endpoint.address.socket_address.port_value: 0; allowed: [1, 65535]"},
      {[&](XdsAssignment& a) { socket(a)->set_port_value(65536); },
       at + "endpoint.address.socket_address.port_value: 65536; allowed: [1, 65535]"},
      {[&](XdsAssignment& a) { socket(a)->set_named_port("http"); },
       at + "endpoint.address.socket_address.port_value: 0; allowed: [1, 65535]"},
      {[&](XdsAssignment& a) { socket(a)->set_address("backend.example.com"); },
       at + "endpoint.address.socket_address.address: \"backend.example.com\" is no IP address; nothing else is "
            "allowed"},
      {[&](XdsAssignment& a) { socket(a)->set_address("unix:/x"); },
       at + "endpoint.address.socket_address.address: \"unix:/x\" is no IP address; nothing else is allowed"},
      {[&](XdsAssignment& a) { socket(a)->set_address("10.0.0.1"); },
       at + "endpoint.address: 10.0.0.1:80 is there twice"},
      {[](XdsAssignment& a) {
         a.mutable_endpoints(0)->mutable_lb_endpoints(1)->mutable_load_balancing_weight()->set_value(0);
       },
       at + "load_balancing_weight: 0; allowed: at least 1"},
      {[](XdsAssignment& a) {
         for (int i = 0; i < 2; ++i)
           a.mutable_endpoints(0)->mutable_lb_endpoints(i)->mutable_load_balancing_weight()->set_value(0x80000000u);
       },
       at + "load_balancing_weight: the weights of the endpoints of the locality sum up to more than 4294967295"},
      {[](XdsAssignment& a) { a.mutable_endpoints(0)->set_priority(8); }, "endpoints[0].priority: 8; allowed: [0, 7]"},
      {[](XdsAssignment& a) { AddLocality(&a, 2); }, "endpoints: no locality has priority 1, and one has 2"},
      {[](XdsAssignment& a) {
         for (int i = 0; i < 2; ++i) AddLocality(&a, 0, 0x80000000u);
       },
       "endpoints[2].load_balancing_weight: the weights of the localities of priority 0 sum up to more than "
       "4294967295"}};
  for (const auto& [change, error] : cases) {
    XdsAssignment assignment = Assignment("e", {"10.0.0.1:80", "10.0.0.2:80"});
    change(assignment);
    const XdsResource resource = ReadOne(assignment);
    EXPECT_EQ(resource.error, error);
    EXPECT_EQ(resource.list, nullptr) << error;
  }
}

TEST(XdsAssignmentTest, ManyMistakesAreCounted) {
  XdsAssignment assignment;
  assignment.set_cluster_name("e");
  auto* locality = AddLocality(&assignment);
  for (int i = 0; i < 9; ++i) AddEndpoint(locality, "name:1");
  const std::string error = ReadOne(assignment).error;
  EXPECT_THAT(error, HasSubstr("lb_endpoints[4]"));
  EXPECT_THAT(error, ::testing::EndsWith("; and 4 more"));
}

TEST(XdsAssignmentTest, MoreEndpointsThanAClusterMayHaveAreRefused) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < upstream::kEndpointsMax; ++i)
    addresses.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":1");
  EXPECT_EQ(ReadOne(Assignment("e", addresses)).list->size(), upstream::kEndpointsMax);
  addresses.push_back("10.1.0.1:1");
  EXPECT_EQ(ReadOne(Assignment("e", addresses)).error, "endpoints: more than 10000 endpoints");
}

TEST(FitWeightsTest, OnlyWhatIsTooMuchIsDivided) {
  List list = *ReadOne(Assignment("e", {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"})).list;
  list[2].priority = 1;
  list[0].weight = 100;
  list[1].weight = 50;
  const List before = list;
  FitWeights(list, 200);
  EXPECT_EQ(list, before);
  FitWeights(list, 150);
  EXPECT_DOUBLE_EQ(list[0].weight, 4.0 / 3);
  EXPECT_DOUBLE_EQ(list[1].weight, 2.0 / 3);
  EXPECT_DOUBLE_EQ(list[2].weight, 1);
  list[0].weight = 1e18;
  FitWeights(list, 1e19);
  EXPECT_DOUBLE_EQ(list[0].weight, 2);
  EXPECT_DOUBLE_EQ(list[1].weight, 0.01);
}

// The ring of xDS goes by quotients of weights, to the last bit.
TEST(FitWeightsTest, WithoutABoundOnTheSumQuotientsStayWhatTheyAre) {
  List list = *ReadOne(Assignment("e", {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"})).list;
  const double any = std::numeric_limits<double>::infinity();
  list[0].weight = 100;
  const List before = list;
  FitWeights(list, any);
  EXPECT_EQ(list, before);
  const std::vector<double> weights = {301, 7, 977};
  for (size_t i = 0; i < weights.size(); ++i) list[i].weight = weights[i];
  FitWeights(list, any);
  double sum = 0;
  for (const auto& endpoint : list) {
    EXPECT_LE(endpoint.weight, 100);
    sum += endpoint.weight;
  }
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(list[i].weight / sum, weights[i] / 1285);
  list[0].weight = 1e18;
  FitWeights(list, any);
  EXPECT_LE(list[0].weight, 100);
  EXPECT_EQ(list[1].weight, 0.01);
}

}  // namespace
}  // namespace sluice::discovery
