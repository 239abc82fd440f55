// The addresses of a host, as connections are made by them.
#include "net/dns/dns_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "integration/support/temp_dir.h"
#include "support/dns_server.h"
#include "support/socket_worker.h"

namespace sluice::net {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

class DnsLookupTest : public ::testing::Test {
 protected:
  ~DnsLookupTest() override {
    lookup.reset();
    time.Run();
  }
  void Begin(const std::string& host) {
    const DnsSettings settings{.servers = {server.address()},
                               .timeout = timeout,
                               .tries = 1,
                               .resolv_conf = dir.Write("resolv.conf", "search two.test\n")};
    lookup = std::make_unique<DnsLookup>(
        time.worker, host,
        [this](auto found) {
          result.emplace(std::move(found));
          lookup.reset();  // as a dialer does
        },
        settings);
    EXPECT_FALSE(result);
  }
  Strings Of(const std::string& host) {
    result.reset();
    Begin(host);
    time.RunUntil([&] {
      if (time_passes) time.clock.Advance(milliseconds(1));
      return result.has_value();
    });
    return result->ok() ? **result : Strings{std::string(Reason(result->error().kind)), result->error().detail};
  }

  bool time_passes = false;     // where something is waited for that does not come
  milliseconds timeout{20000};  // a busy machine is no silent server
  integration::TempDir dir;
  test::DnsServer server;
  test::SocketWorker time;
  std::unique_ptr<DnsLookup> lookup;
  std::optional<base::Result<Strings>> result;
};

TEST_F(DnsLookupTest, AddressesOfBothFamilies) {
  server.SetAddresses("users.test", {"127.0.0.2", "127.0.0.3", "::1"});
  EXPECT_THAT(Of("users.test"), ::testing::UnorderedElementsAre("127.0.0.2", "127.0.0.3", "::1"));
}

TEST_F(DnsLookupTest, ManyAddresses) {
  Strings ips;
  for (int i = 1; i <= 200; ++i) ips.push_back("127.0.0." + std::to_string(i));
  server.SetAddresses("users.test", ips);
  EXPECT_EQ(Of("users.test").size(), 200u);
}

TEST_F(DnsLookupTest, SearchDomainsAreTried) {
  server.SetAddresses("users.two.test", {"127.0.0.2"});
  EXPECT_EQ(Of("users"), (Strings{"127.0.0.2"}));
}

TEST_F(DnsLookupTest, AFileOfHostsComesFirst) {
  EXPECT_THAT(Of("localhost"), ::testing::Contains("127.0.0.1"));
  EXPECT_EQ(server.asked(), 0);
}

TEST_F(DnsLookupTest, ANameThatIsNotThereIsToldApartFromNoAnswer) {
  EXPECT_EQ(Of("users.test")[0], "not_found");
  server.SetAddresses("no-addresses.test", {});
  EXPECT_EQ(Of("no-addresses.test")[0], "not_found");
  for (const uint16_t type : {test::kDnsA, test::kDnsAaaa}) {
    server.Fail("failing.test", type);
    server.Silence("silent.test", type);
  }
  // Another source of names may have it.
  EXPECT_EQ(Of("failing.test"), (Strings{"not_found", "no server could be reached, or each failed or refused"}));
  timeout = milliseconds(50);
  time_passes = true;
  EXPECT_EQ(Of("silent.test"), (Strings{"connect_failed", "Timeout while contacting DNS servers"}));
}

// Some servers never answer questions for AAAA: what is there is enough.
TEST_F(DnsLookupTest, AFamilyThatIsNotAnsweredDoesNotKeepTheOtherBack) {
  server.SetAddresses("users.test", {"127.0.0.2"});
  server.Silence("users.test", test::kDnsAaaa);
  Begin("users.test");
  time.RunUntil(
      [&] { return server.asked("users.test", test::kDnsA) > 0 && server.asked("users.test", test::kDnsAaaa) > 0; });
  EXPECT_FALSE(result) << "it may come yet";
  time_passes = true;
  EXPECT_EQ(Of("users.test"), (Strings{"127.0.0.2"}));
}

TEST_F(DnsLookupTest, ItEndsAtAnyTime) {
  server.Silence("users.test", test::kDnsA);
  Begin("users.test");
  lookup.reset();
  Begin("users.test");
  time.RunUntil([&] { return server.asked() >= 2; });
  lookup.reset();
  time.Run();
  EXPECT_FALSE(result);
}

}  // namespace
}  // namespace sluice::net
