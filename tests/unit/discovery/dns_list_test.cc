// From the records of a name to a list: names, weights, priorities.
#include "discovery/dns/dns_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::discovery {
namespace {

// "name weight/priority ...".
std::string Text(const List& list) {
  std::string text;
  for (const auto& e : list) {
    std::string weight = std::to_string(e.weight);
    weight.resize(weight.find('.') + 3);
    text += (text.empty() ? "" : " ") + e.name + " " + weight + "/" + std::to_string(e.priority);
  }
  return text;
}

std::string All(const std::vector<DnsHost>& hosts) { return Text(ListOf(DnsOptions(), hosts, "", 0)); }

TEST(DnsListTest, EndpointsAreNamedByAddressSortedAndThereOnce) {
  EXPECT_EQ(All({{"10.0.0.2", 5}, {"10.0.0.1", 5}, {"2001:db8::1", 5}, {"10.0.0.2", 5}}),
            "10.0.0.1:5 1.00/0 10.0.0.2:5 1.00/0 [2001:db8::1]:5 1.00/0");
  const List list = ListOf(DnsOptions(), {{"10.0.0.1", 5}}, "", 0);
  EXPECT_EQ(list[0].address, *net::Address::Parse("10.0.0.1:5"));
  EXPECT_EQ(All({}), "");
}

TEST(DnsListTest, OneHostMayHaveSeveralPorts) {
  EXPECT_EQ(All({{"10.0.0.1", 6}, {"10.0.0.1", 5}}), "10.0.0.1:5 1.00/0 10.0.0.1:6 1.00/0");
}

TEST(DnsListTest, PortZeroAndWhatIsNoAddressAreLeftOut) {
  EXPECT_EQ(All({{"10.0.0.1", 0}, {"no address", 5}, {"10.0.0.2", 5}}), "10.0.0.2:5 1.00/0");
}

TEST(DnsListTest, WeightsAreRelativeToTheLargestOfAPriority) {
  EXPECT_EQ(All({{"10.0.0.1", 5, 0, 50}, {"10.0.0.2", 5, 0, 25}, {"10.0.0.3", 5, 1, 10}}),
            "10.0.0.1:5 1.00/0 10.0.0.2:5 0.50/0 10.0.0.3:5 1.00/1");
  EXPECT_EQ(All({{"10.0.0.1", 5, 0, 33}, {"10.0.0.2", 5, 0, 33}, {"10.0.0.3", 5, 0, 33}}),
            "10.0.0.1:5 1.00/0 10.0.0.2:5 1.00/0 10.0.0.3:5 1.00/0");
}

// RFC 2782: 0 is a very small chance where others have more.
TEST(DnsListTest, AWeightOfZeroIsSmallNextToOthersAndEqualAmongZeros) {
  EXPECT_EQ(All({{"10.0.0.1", 5, 0, 0}, {"10.0.0.2", 5, 0, 65535}}), "10.0.0.1:5 0.01/0 10.0.0.2:5 1.00/0");
  EXPECT_EQ(All({{"10.0.0.1", 5, 0, 0}, {"10.0.0.2", 5, 0, 0}}), "10.0.0.1:5 1.00/0 10.0.0.2:5 1.00/0");
}

TEST(DnsListTest, PrioritiesCountByTheirOrderAndEndAtTheLast) {
  std::vector<DnsHost> hosts;
  for (uint16_t i = 0; i < 10; ++i)
    hosts.push_back({"10.0.0.1", static_cast<uint16_t>(i + 1), static_cast<uint16_t>(100 * i)});
  const List list = ListOf(DnsOptions(), hosts, "", 0);
  ASSERT_EQ(list.size(), 10u);
  for (const auto& endpoint : list)
    EXPECT_EQ(endpoint.priority, std::min<uint32_t>(endpoint.address.port() - 1u, upstream::kPrioritiesMax - 1));
}

TEST(DnsListTest, AnAddressWithTwoPrioritiesHasTheHighest) {
  EXPECT_EQ(All({{"10.0.0.1", 5, 9, 1}, {"10.0.0.1", 5, 2, 1}, {"10.0.0.2", 5, 9, 1}}),
            "10.0.0.1:5 1.00/0 10.0.0.2:5 1.00/1");
}

class OneOfTheListTest : public ::testing::Test {
 protected:
  std::string One(const std::vector<DnsHost>& hosts, const std::string& current, uint64_t seed = 0) {
    DnsOptions options;
    options.name = "users.test";
    options.port = 5;
    options.mode = DnsMode::kOne;
    const List list = ListOf(options, hosts, current, seed);
    if (list.size() != 1) return "size " + std::to_string(list.size());
    EXPECT_EQ(list[0].name, "users.test:5");
    return list[0].address.ToString();
  }
};

TEST_F(OneOfTheListTest, ItStaysWhereItIsAsLongAsThatIsFound) {
  const std::vector<DnsHost> hosts = {{"10.0.0.2", 5}, {"10.0.0.1", 5}};
  for (const std::string current : {"10.0.0.1:5", "10.0.0.2:5"}) {
    for (uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(One(hosts, current, seed), current) << "seed " << seed;
  }
  EXPECT_EQ(One(hosts, "10.0.0.3:5"), One(hosts, "")) << "that is gone";
  EXPECT_EQ(One({}, "10.0.0.3:5"), "size 0");
}

TEST_F(OneOfTheListTest, OfTheHighestPriority) {
  const std::vector<DnsHost> hosts = {{"10.0.0.1", 5, 9, 1}, {"10.0.0.2", 5, 3, 1}, {"10.0.0.3", 5, 3, 8}};
  EXPECT_EQ(One(hosts, "10.0.0.2:5"), "10.0.0.2:5");
  for (uint64_t seed = 0; seed < 100; ++seed)
    EXPECT_NE(One(hosts, "10.0.0.1:5", seed), "10.0.0.1:5") << "it has been a stand-in; seed " << seed;
}

// Each process draws for itself: the shares are even, or those of the weights (RFC 2782). Bounds are five deviations.
TEST_F(OneOfTheListTest, ProcessesDrawDifferentAddressesByWeight) {
  const auto draw = [&](const std::vector<DnsHost>& hosts) {
    std::map<std::string, int> drawn;
    for (uint64_t seed = 0; seed < 3000; ++seed) ++drawn[One(hosts, "", seed)];
    return drawn;
  };
  const auto even = draw({{"10.0.0.1", 5}, {"10.0.0.2", 5}, {"10.0.0.3", 5}});
  ASSERT_EQ(even.size(), 3u);
  for (const auto& [address, count] : even) EXPECT_NEAR(count, 1000, 130) << address;
  auto weighed = draw({{"10.0.0.1", 5, 3, 1}, {"10.0.0.2", 5, 3, 9}, {"10.0.0.3", 5, 4, 9}});
  EXPECT_NEAR(weighed["10.0.0.1:5"], 300, 82);
  EXPECT_NEAR(weighed["10.0.0.2:5"], 2700, 82);
}

// What a process has drawn does not depend on the others.
TEST_F(OneOfTheListTest, AProcessDrawsTheSameAgain) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string drawn = One({{"10.0.0.1", 5}, {"10.0.0.2", 5}, {"10.0.0.3", 5}}, "", seed);
    const std::string more = One({{"10.0.0.4", 5}, {"10.0.0.3", 5}, {"10.0.0.2", 5}, {"10.0.0.1", 5}}, "", seed);
    EXPECT_TRUE(more == drawn || more == "10.0.0.4:5") << drawn << " and " << more << ", seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::discovery
