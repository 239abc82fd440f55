// Calls to a cluster with ring: xds: whatever the route hashes by, the key is the XXH64 of what Envoy and gRPC would
// see in a header.
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Headers;
using test::FakeHost;
using test::FramePeer;
using test::kLast;

std::vector<std::string> Hosts(int network) {
  std::vector<std::string> out;
  for (int i = 1; i <= 20; ++i) out.push_back("10.0." + std::to_string(network) + "." + std::to_string(i) + ":1");
  return out;
}

class CallXdsRingTest : public test::ProxyFixture {
 public:
  CallXdsRingTest() {
    cluster.policy = upstream::Policy::kRingHash;
    cluster.ring = upstream::Ring::kXds;
  }
  void HashBy(HashBy::Kind kind) {
    routes[0].hash_by.kind = kind;
    routes[0].hash_by.metadata = "x-key";
    routes[0].hash_by.fields = {{"", {1}}};
  }
  // Where the call comes out, with the bytes of its message.
  std::string HostOf(const h2::Fields& request, const std::string& message = "") {
    FramePeer& client = Client();
    const auto before = Streams();
    client.Send(Headers(1, Block(request)) + h2::Data(1, h2::Message(message), kLast));
    Run();
    for (const auto& [host, streams] : Streams()) {
      if (streams != before.at(host)) return host;
    }
    return "none";
  }
  std::map<std::string, size_t> Streams() {
    std::map<std::string, size_t> out;
    for (int network : {0, 1}) {
      for (const std::string& host : Hosts(network)) {
        out[host] = 0;
        for (const auto& peer : net.host(host).connections) out[host] += peer->streams.size() - peer->streams.count(0);
      }
    }
    return out;
  }
  static std::string OwnerOf(const upstream::ClusterState& state, uint64_t key) {
    auto yes = [](uint32_t) { return true; };
    auto none = [](uint32_t) { return 0u; };
    return state.endpoints[state.balancer->Pick({key, 0, 0, yes, none})].endpoint->name();
  }
  static h2::Fields Keyed(const std::string& key) { return h2::With(h2::GrpcRequest(), {{"x-key", key}}); }
};

TEST_F(CallXdsRingTest, AMetadataKeyIsHashedAsAHeader) {
  HashBy(HashBy::Kind::kMetadata);
  Start(Hosts(0));
  for (int i = 0; i < 30; ++i) {
    const std::string key = "user-" + std::to_string(i);
    EXPECT_EQ(HostOf(Keyed(key)), OwnerOf(state(), base::XxHash64(key))) << key;
  }
}

TEST_F(CallXdsRingTest, TheMethodIsHashedAsThePath) {
  HashBy(HashBy::Kind::kMethod);
  Start(Hosts(0));
  for (const char* path : {"/p.S/A", "/p.S/B", "/p.S/C"})
    EXPECT_EQ(HostOf(h2::GrpcRequest(path)), OwnerOf(state(), base::XxHash64(path))) << path;
}

TEST_F(CallXdsRingTest, ThePeerIsHashedAsItsAddress) {
  HashBy(HashBy::Kind::kPeer);
  Start(Hosts(0));
  EXPECT_EQ(HostOf(h2::GrpcRequest()), OwnerOf(state(), base::XxHash64("192.0.2.7")));
}

TEST_F(CallXdsRingTest, AFieldIsHashedAsAHeaderWithItsValue) {
  HashBy(HashBy::Kind::kField);
  Start(Hosts(0));
  EXPECT_EQ(HostOf(h2::GrpcRequest(),
                   "\x0a\x03"
                   "bob"),
            OwnerOf(state(), base::XxHash64("bob")));
  EXPECT_EQ(HostOf(h2::GrpcRequest(), "\x08\x96\x01"), OwnerOf(state(), base::XxHash64("150")));
  EXPECT_EQ(HostOf(h2::GrpcRequest(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            OwnerOf(state(), base::XxHash64("18446744073709551615")));
  // A default that was left out is one that was written.
  const std::string absent = HostOf(h2::GrpcRequest(), "\x12\x01x");
  EXPECT_EQ(absent, OwnerOf(state(), base::XxHash64("")));
  EXPECT_EQ(HostOf(h2::GrpcRequest(), std::string("\x08\x00", 2)), absent);
}

// The two clusters' rings want different hashes of one key.
TEST_F(CallXdsRingTest, ACallThatFailsOverIsHashedForTheOtherRing) {
  HashBy(HashBy::Kind::kMetadata);
  cluster.ring = upstream::Ring::kSluice;
  routes[0].failover = "other";
  other = cluster;
  other->name = "other";
  other->ring = upstream::Ring::kXds;
  other_addresses = Hosts(1);
  Start({Hosts(0)[0]});
  state().endpoints[0].endpoint->SetAdmission({true, 0});  // ejected: there is no attempt at it
  for (int i = 0; i < 10; ++i) {
    const std::string key = "user-" + std::to_string(i);
    EXPECT_EQ(HostOf(Keyed(key)), OwnerOf(other_state(), base::XxHash64(key))) << key;
  }
}

// It fails over after an attempt, for which its key was hashed in the other way.
TEST_F(CallXdsRingTest, ACallThatFailsOverAfterAnAttemptIsHashedAgain) {
  HashBy(HashBy::Kind::kMetadata);
  cluster.ring = upstream::Ring::kSluice;
  routes[0].failover = "other";
  other = cluster;
  other->name = "other";
  other->ring = upstream::Ring::kXds;
  other_addresses = Hosts(1);
  Start({Hosts(0)[0]});
  net.host(Hosts(0)[0]).mode = FakeHost::Mode::kRefuse;
  EXPECT_EQ(HostOf(Keyed("user-1")), OwnerOf(other_state(), base::XxHash64("user-1")));
}

}  // namespace
}  // namespace sluice::proxy
