// What the system's files say of names: search domains, servers, /etc/hosts.
#include "net/dns/dns_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "integration/support/temp_dir.h"

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

}  // namespace
}  // namespace sluice::net
