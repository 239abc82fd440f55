// An endpoint's state has one word, and one meaning of "well", in the status page and in sluicectl.
#include <gtest/gtest.h>

#include <array>

#include "admin/convert.h"
#include "admin/endpoint_table.h"
#include "sluicectl/print.h"

namespace sluice::admin {
namespace {

using upstream::EndpointLink;
using upstream::EndpointState;
using upstream::HealthState;

TEST(StateWords, AreTheSameInEveryView) {
  constexpr std::array kStates = {EndpointState::kActive, EndpointState::kDraining, EndpointState::kRemoved};
  constexpr std::array kLinks = {EndpointLink::kIdle, EndpointLink::kConnecting, EndpointLink::kConnected,
                                 EndpointLink::kBackoff};
  size_t well = 0;
  for (const EndpointState state : kStates) {
    for (size_t health = 0; health < upstream::kHealthStates; ++health) {
      for (const EndpointLink link : kLinks) {
        ClusterView cluster;
        EndpointView& endpoint = cluster.endpoints.emplace_back();
        endpoint.state = state;
        endpoint.connection = link;
        if (state != EndpointState::kRemoved) {
          endpoint.health.emplace();
          endpoint.health->state = static_cast<HealthState>(health);
        }
        v1::Cluster message;
        ToMessage(cluster, message);
        const v1::Endpoint& told = message.endpoints(0);
        EXPECT_EQ(ctl::StateWord(told), StateWord(endpoint));
        EXPECT_EQ(ctl::IsWell(told), IsWell(endpoint)) << StateWord(endpoint);
        well += IsWell(endpoint);
      }
    }
  }
  EXPECT_EQ(well, 6u) << "active, up or warming, and not in back-off";
}

TEST(StateWords, AnEndpointThatIsOutIsNotCalledActive) {
  ClusterView cluster;
  EndpointView& endpoint = cluster.endpoints.emplace_back();
  endpoint.name = "a";
  endpoint.health.emplace();
  endpoint.failures = 12;
  for (const auto& [state, word] :
       {std::pair(HealthState::kEjected, "ejected"), std::pair(HealthState::kNotServing, "not_serving"),
        std::pair(HealthState::kSuspect, "suspect")}) {
    endpoint.health->state = state;
    v1::ListClustersResponse response;
    ToMessage(cluster, *response.add_clusters());
    const std::string table = ctl::PrintEndpoints(response.clusters(0));
    EXPECT_NE(table.find(word), table.npos) << table;
    EXPECT_EQ(table.find("active"), table.npos) << table;
    const std::string clusters = ctl::Print(response);
    EXPECT_NE(clusters.find("1     0  file"), clusters.npos) << clusters;
  }
}

}  // namespace
}  // namespace sluice::admin
