#include "proxy/canonical/authority.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace sluice::proxy {
namespace {

TEST(CanonicalAuthority, EachHostHasOneSpelling) {
  const std::pair<const char*, const char*> kSame[] = {
      {"admin.test", "admin.test"},
      {"Admin.TEST", "admin.test"},
      {"admin.test.", "admin.test"},
      {"ADMIN.test.:443", "admin.test:443"},
      {"admin.test:", "admin.test"},
      {"admin.test:0443", "admin.test:443"},
      {"admin.test:00", "admin.test:0"},
      {"admin.test:0", "admin.test:0"},
      {"admin.test:65535", "admin.test:65535"},
      {"my_service-1", "my_service-1"},
      {"127.0.0.1:50051", "127.0.0.1:50051"},
      {"[::1]", "[::1]"},
      {"[0:0::0001]:80", "[::1]:80"},
      {"[2001:DB8::A]", "[2001:db8::a]"},
      {"[::1]:", "[::1]"},
  };
  for (const auto& [said, canonical] : kSame) {
    const auto found = CanonicalAuthority(said);
    ASSERT_TRUE(found) << said;
    EXPECT_EQ(*found, canonical) << said;
    EXPECT_EQ(CanonicalAuthority(*found), found) << said;
    EXPECT_EQ(IsCanonicalAuthority(said), said[0] != '[' && said == *found) << said;
  }
}

TEST(CanonicalAuthority, WhatIsNoHostIsNone) {
  for (const char* said : {"",
                           ".",
                           "..",
                           "admin.test..",
                           ".admin.test",
                           "admin..test",
                           "admin.test/",
                           "admin.test?",
                           "admin.test?x",
                           "admin.test;a",
                           "admin.test,x",
                           "x,admin.test",
                           "admin.test:80:80",
                           "admin%2etest",
                           "%61dmin.test",
                           "admin.test:80x",
                           "admin.test:65536",
                           "admin.test:999999",
                           "admin.test:-1",
                           "admin.test:+80",
                           "admin.test: 80",
                           ":80",
                           "admin.test\\",
                           "user@admin.test",
                           "admin.test#",
                           "admin test",
                           "admin.test\t",
                           "\xc3\xa4.test",
                           "admin.test\xff",
                           "admin.test\x01",
                           "[::1",
                           "::1",
                           "[::1]x",
                           "[]",
                           "[::1%25eth0]",
                           "[::g]",
                           "[127.0.0.1]",
                           "[[::1]]",
                           "x[::1]",
                           "http://admin.test",
                           "admin.test!",
                           "admin.test*",
                           "*.test",
                           "admin.test(",
                           "admin.test=x",
                           "admin.test&x",
                           "admin.test'",
                           "admin.test~"}) {
    EXPECT_FALSE(CanonicalAuthority(said)) << said;
    EXPECT_FALSE(IsCanonicalAuthority(said)) << said;
  }
  EXPECT_FALSE(CanonicalAuthority(std::string_view("admin.test\0", 11)));
  EXPECT_FALSE(CanonicalAuthority(std::string_view("[::1\0]", 6)));
}

}  // namespace
}  // namespace sluice::proxy
