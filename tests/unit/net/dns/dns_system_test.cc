// What the system's files say of names: search domains, servers, /etc/hosts.
#include "net/dns/dns_system.h"

#include <ares.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "integration/support/temp_dir.h"
#include "support/system_calls.h"

namespace sluice::net {
namespace {

using Strings = std::vector<std::string>;

class DnsSystemTest : public ::testing::Test {
 protected:
  Strings NamesFor(const std::string& name, const std::string& resolv_conf) {
    auto system = DnsSystem::Read({.servers = {}, .resolv_conf = dir.Write("resolv.conf", resolv_conf)});
    return system.ok() ? (*system)->NamesFor(name) : Strings{system.error().detail};
  }
  integration::TempDir dir;
};

TEST_F(DnsSystemTest, SearchDomainsComeBehindANameWithEnoughDots) {
  const std::string conf = "search one.test two.test\noptions ndots:2\n";
  EXPECT_EQ(NamesFor("a.b.c", conf), (Strings{"a.b.c", "a.b.c.one.test", "a.b.c.two.test"}));
  EXPECT_EQ(NamesFor("a.b", conf), (Strings{"a.b.one.test", "a.b.two.test", "a.b"}));
  EXPECT_EQ(NamesFor("a", conf), (Strings{"a.one.test", "a.two.test", "a"}));
  EXPECT_EQ(NamesFor("a.b.", conf), (Strings{"a.b"})) << "a closing dot";
  EXPECT_EQ(NamesFor("a.b", "search one.test\n"), (Strings{"a.b", "a.b.one.test"})) << "one dot by default";
}

TEST_F(DnsSystemTest, NamesAreBoundedInNumberAndLength) {
  std::string domains = "search";
  for (int i = 0; i < 20; ++i) domains += " d" + std::to_string(i);
  EXPECT_LE(NamesFor("a.b", domains + "\n").size(), DnsSystem::kNamesMax);
  EXPECT_EQ(NamesFor(std::string(250, 'a'), "search one.test\n"), (Strings{std::string(250, 'a')}));
}

TEST_F(DnsSystemTest, WithoutAFileThereIsTheNameItself) {
  auto system = DnsSystem::Read({.servers = {"127.0.0.1"}, .resolv_conf = dir.File("none")});
  ASSERT_TRUE(system.ok()) << system.error().detail;
  EXPECT_EQ((*system)->NamesFor("a.b").front(), "a.b");
}

TEST_F(DnsSystemTest, ServersMayHavePorts) {
  for (const char* server : {"10.0.0.1", "10.0.0.1:5353", "::1", "[::1]:5353"})
    EXPECT_TRUE(DnsSystem::Read({.servers = {server}}).ok()) << server;
  const auto wrong = DnsSystem::Read({.servers = {"10.0.0.1", "no address"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().detail, ::testing::HasSubstr("servers 10.0.0.1,no address: "));
}

TEST_F(DnsSystemTest, LocalhostHasAddressesAndAnUnknownNameNone) {
  EXPECT_THAT(DnsSystem::InHosts("localhost"), ::testing::Contains("127.0.0.1"));
  EXPECT_THAT(DnsSystem::InHosts("localhost."), ::testing::Contains("127.0.0.1"));
  EXPECT_EQ(DnsSystem::InHosts("no-such-name.sluice.test"), Strings());
}

// Each dial to a name looks there, and reads the rest of the system's configuration once, for the servers.
TEST_F(DnsSystemTest, ALookIntoHostsReadsNoOtherFile) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "a sanitizer's process has helpers of its own";
#endif
  const auto calls = test::CountSystemCalls([](const std::function<void()>& count) {
    (void)DnsSystem::InHosts("no-such-name.sluice.test");
    count();
    (void)DnsSystem::InHosts("no-such-name.sluice.test");
    count();
  });
  if (!calls) GTEST_SKIP() << "this process may not trace a child";
  const auto opened = calls->find(SYS_openat);
  ASSERT_NE(opened, calls->end());
  EXPECT_EQ(opened->second, 1u);
}

// An answer by TCP has room for four thousand; here are as many as make a quadratic pass last for minutes.
TEST_F(DnsSystemTest, AddressesAreTakenInTheirOrderAndOnceInLinearTime) {
  constexpr uint32_t kAddresses = 200'000;
  auto* const found = static_cast<ares_addrinfo*>(std::calloc(1, sizeof(ares_addrinfo)));
  ares_addrinfo_node** next = &found->nodes;
  for (const uint32_t base : {0x0a000000u, 0x0a000000u}) {
    for (uint32_t i = 0; i < kAddresses; ++i) {
      auto* const address = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
      address->sin_family = AF_INET;
      address->sin_addr.s_addr = htonl(base + i);
      *next = static_cast<ares_addrinfo_node*>(std::calloc(1, sizeof(ares_addrinfo_node)));
      (*next)->ai_family = AF_INET;
      (*next)->ai_addr = reinterpret_cast<sockaddr*>(address);
      next = &(*next)->ai_next;
    }
  }
  const Strings addresses = DnsSystem::TakeAddresses(found);
  ASSERT_EQ(addresses.size(), kAddresses);
  EXPECT_EQ(addresses[0], "10.0.0.0");
  EXPECT_EQ(addresses[258], "10.0.1.2");
}

}  // namespace
}  // namespace sluice::net
