#include "net/peer_address.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

TEST(PeerAddress, PortsOfOneAddressAreOnePeer) {
  EXPECT_EQ(PeerAddressKey("192.0.2.7:40000"), PeerAddressKey("192.0.2.7:1"));
  EXPECT_NE(PeerAddressKey("192.0.2.7:40000"), PeerAddressKey("192.0.2.8:40000"));
  EXPECT_TRUE(PeerAddressKey("0.0.0.0:1").has_value());
}

TEST(PeerAddress, OfIpv6TheNetworkCounts) {
  EXPECT_EQ(PeerAddressKey("[2001:db8::1]:5"), PeerAddressKey("[2001:db8::ffff:ffff:ffff:ffff]:6"));
  EXPECT_NE(PeerAddressKey("[2001:db8::1]:5"), PeerAddressKey("[2001:db8:0:1::1]:5"));
}

TEST(PeerAddress, Ipv4InIpv6IsIpv4) {
  EXPECT_EQ(PeerAddressKey("[::ffff:192.0.2.7]:5"), PeerAddressKey("192.0.2.7:5"));
  EXPECT_NE(PeerAddressKey("[::1]:5"), PeerAddressKey("0.0.0.1:5"));
}

TEST(PeerAddress, UnixSocketsAndOtherTextHaveNone) {
  for (const char* text :
       {"unix:/run/a.sock", "unix:", "", "localhost:80", "192.0.2.7", "[2001:db8::1", "[]:1", "[x]:1", ":"}) {
    EXPECT_EQ(PeerAddressKey(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice::net
