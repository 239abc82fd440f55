#include "net/own_listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <string>

namespace sluice::net {
namespace {

bool Leads(const std::string& to, const std::string& listener) {
  return LeadsToListener(*Address::Parse(to), *Address::Parse(listener));
}

TEST(OwnListener, TheSameAddressAndPortIsOne) {
  EXPECT_TRUE(Leads("127.0.0.1:7070", "127.0.0.1:7070"));
  EXPECT_TRUE(Leads("[::1]:7070", "[::1]:7070"));
  EXPECT_TRUE(Leads("[::ffff:127.0.0.1]:7070", "127.0.0.1:7070"));
  EXPECT_TRUE(Leads("unix:/run/a.sock", "unix:/run/a.sock"));
  EXPECT_FALSE(Leads("127.0.0.1:7071", "127.0.0.1:7070"));
  EXPECT_FALSE(Leads("127.0.0.2:7070", "127.0.0.1:7070"));
  EXPECT_FALSE(Leads("[::1]:7070", "127.0.0.1:7070"));
  EXPECT_FALSE(Leads("unix:/run/b.sock", "unix:/run/a.sock"));
  EXPECT_FALSE(Leads("127.0.0.1:7070", "unix:/run/a.sock"));
}

TEST(OwnListener, AListenerOnAllAddressesIsReachedByEachOfThisHost) {
  for (const char* to : {"127.0.0.1:7070", "127.9.9.9:7070", "0.0.0.0:7070", "localhost:7070"}) {
    EXPECT_TRUE(Leads(to, "0.0.0.0:7070")) << to;
    EXPECT_TRUE(Leads(to, "[::]:7070")) << to;
  }
  EXPECT_TRUE(Leads("[::1]:7070", "[::]:7070"));
  EXPECT_FALSE(Leads("[::1]:7070", "0.0.0.0:7070"));
  EXPECT_FALSE(Leads("192.0.2.1:7070", "0.0.0.0:7070")) << "an address of documentation (RFC 5737)";
  EXPECT_FALSE(Leads("backend:7070", "0.0.0.0:7070"));
  EXPECT_FALSE(Leads("127.0.0.1:7071", "0.0.0.0:7070"));
}

TEST(OwnListener, AConnectionToNoAddressReachesLoopback) {
  EXPECT_TRUE(Leads("0.0.0.0:7070", "127.0.0.1:7070"));
  EXPECT_TRUE(Leads("localhost:7070", "127.0.0.1:7070"));
  EXPECT_TRUE(Leads("localhost:7070", "[::1]:7070"));
  EXPECT_FALSE(Leads("0.0.0.0:7070", "192.0.2.1:7070"));
}

TEST(OwnListener, TheInterfacesOfThisHostAreIts) {
  ifaddrs* first = nullptr;
  ASSERT_EQ(::getifaddrs(&first), 0);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, text, sizeof text);
    EXPECT_TRUE(Leads(std::string(text) + ":7070", "0.0.0.0:7070")) << text;
  }
  ::freeifaddrs(first);
}

}  // namespace
}  // namespace sluice::net
