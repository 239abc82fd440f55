#include "net/address_range.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

bool In(const char* range, const char* peer) { return AddressRange::Parse(range)->Contains(peer); }

TEST(AddressRange, HasTheAddressesOfItsPrefix) {
  EXPECT_TRUE(In("10.0.0.0/8", "10.255.1.2"));
  EXPECT_FALSE(In("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(In("192.0.2.7", "192.0.2.7"));
  EXPECT_FALSE(In("192.0.2.7", "192.0.2.6"));
  EXPECT_TRUE(In("192.0.2.6/31", "192.0.2.7"));
  EXPECT_TRUE(In("0.0.0.0/0", "203.0.113.1"));
  EXPECT_FALSE(In("0.0.0.0/0", "::1"));
  EXPECT_TRUE(In("::/0", "::1"));
  EXPECT_TRUE(In("fd00::/8", "[fd12::1]"));
  EXPECT_FALSE(In("fd00::/8", "fe80::1"));
  EXPECT_TRUE(In("fe80::/10", "fe80::1%eth0"));
  EXPECT_TRUE(In("10.0.0.0/8", "::ffff:10.1.1.1"));
  EXPECT_TRUE(In("unix", "unix:/run/x"));
  EXPECT_FALSE(In("unix", "10.0.0.1"));
  EXPECT_FALSE(In("::/0", "unix:"));
  EXPECT_FALSE(In("::/0", "localhost"));
  EXPECT_FALSE(In("::/0", ""));
}

TEST(AddressRange, WhatIsNoneIsSaid) {
  for (const char* text : {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "10.0.0.1/8", "10.0.0/8",
                           "host", "fd00::/129", "fd00::1/8", "10.0.0.0/8/8", "[::1]", "unix:/run/x", "10.0.0.0 /8"}) {
    EXPECT_FALSE(AddressRange::Parse(text).ok()) << text;
  }
  EXPECT_EQ(AddressRange::Parse("10.0.0.1/8").error().detail,
            "10.0.0.1/8 has bits behind its prefix; allowed: 10.0.0.0/8, 192.0.2.7, fd00::/8, unix");
}

}  // namespace
}  // namespace sluice::net
