#include "net/tls/names.h"

#include <gtest/gtest.h>

#include "net/tls/options.h"

namespace sluice::net {
namespace {

TlsNames Dns(std::string name) { return {"", {std::move(name)}, {}, {}}; }
TlsNames Uri(std::string name) { return {"", {}, {std::move(name)}, {}}; }

TEST(TlsNames, ADnsNameIsAllowedWithoutRegardToCase) {
  EXPECT_TRUE(NameAllowed(Dns("A.Example.com"), "a.example.COM"));
  EXPECT_TRUE(NameAllowed(Dns("a.example.com."), "a.example.com"));
  EXPECT_FALSE(NameAllowed(Dns("b.example.com"), "a.example.com"));
  EXPECT_FALSE(NameAllowed(Dns("a.example.com.evil.org"), "a.example.com"));
}

TEST(TlsNames, AStarIsExactlyOneLabel) {
  EXPECT_TRUE(NameAllowed(Dns("a.example.com"), "*.example.com"));
  EXPECT_FALSE(NameAllowed(Dns("a.b.example.com"), "*.example.com"));
  EXPECT_FALSE(NameAllowed(Dns("example.com"), "*.example.com"));
  EXPECT_FALSE(NameAllowed(Dns(".example.com"), "*.example.com"));
  EXPECT_FALSE(NameAllowed(Dns("aexample.com"), "*.example.com"));
}

TEST(TlsNames, AWildcardCertificateNamesNoParticularHost) {
  EXPECT_FALSE(NameAllowed(Dns("*.example.com"), "a.example.com"));
  EXPECT_FALSE(NameAllowed(Dns("*.example.com"), "*.example.com"));
}

TEST(TlsNames, AUriIsAllowedExactlyOrBelow) {
  EXPECT_TRUE(NameAllowed(Uri("spiffe://a/b"), "spiffe://a/b"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/B"), "spiffe://a/b"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/bc"), "spiffe://a/b"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/b/c"), "spiffe://a/b"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a"), "spiffe://a/b"));
  EXPECT_TRUE(NameAllowed(Uri("spiffe://a/b/c"), "spiffe://a/b/*"));
  EXPECT_TRUE(NameAllowed(Uri("spiffe://a/b/c/d"), "spiffe://a/b/*"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/bc"), "spiffe://a/b/*"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/b/"), "spiffe://a/b/*"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/b"), "spiffe://a/b/*"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/b/../c"), "spiffe://a/b/*"));
  EXPECT_FALSE(NameAllowed(Uri("spiffe://a/b/.."), "spiffe://a/b/*"));
}

TEST(TlsNames, KindsAreNotTakenForEachOther) {
  TlsNames names{"a.example.com", {"CN=x"}, {"a.example.com"}, {"10.0.0.1"}};
  EXPECT_FALSE(NameAllowed(names, "a.example.com"));
  EXPECT_FALSE(NameAllowed(names, "CN=x"));
  EXPECT_FALSE(NameAllowed(names, "10.0.0.1"));
  EXPECT_TRUE(NameAllowed(names, "CN=a.example.com"));
  EXPECT_FALSE(NameAllowed(names, "CN=a.example"));
  EXPECT_FALSE(NameAllowed(names, "CN=example.com"));
  EXPECT_FALSE(NameAllowed(names, "CN=A.example.com"));
  EXPECT_FALSE(NameAllowed(TlsNames{}, "CN="));
}

TEST(TlsNames, WhatMayStandInTheListIsChecked) {
  for (const char* good : {"a.example.com", "*.example.com", "a_b-c", "spiffe://a", "spiffe://a/b/*", "CN=Some One"}) {
    EXPECT_TRUE(CheckAllowedName(good).ok()) << good;
  }
  for (const char* bad : {"", "*", "*.", "a.*.com", "a*.com", "a..b", ".a", "a.", "a b", "CN=", "://a", "spiffe:///a",
                          "spiffe://", "spiffe://a/*/b", "spiffe://*", "spiffe://a/b*", "a\nb"}) {
    EXPECT_FALSE(CheckAllowedName(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace sluice::net
