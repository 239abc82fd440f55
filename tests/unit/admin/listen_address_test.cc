// The forms of an address the control plane listens on, and what is refused.
#include "admin/listen_address.h"

#include <gtest/gtest.h>

namespace sluice::admin {
namespace {

TEST(ListenAddress, ReadsAndWritesItsForms) {
  for (const char* text : {"unix:/run/sluice.sock", "127.0.0.1:9901", "[::1]:0", "localhost:65535"}) {
    base::Result<ListenAddress> address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(ParseListenAddress("[::1]:0")->host, "::1");
}

// Whether it may do without TLS goes by this.
TEST(ListenAddress, LocalIsWhatOnlyThisHostReaches) {
  for (const char* text :
       {"unix:/run/sluice.sock", "127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1"}) {
    EXPECT_TRUE(ParseListenAddress(text)->is_local()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "[::ffff:0.0.0.0]:1", "[::ffff:10.0.0.1]:1", "[::12]:1",
                           "localhost.example.com:1", "localhost.:1", "127.0.0.1.example.com:1"}) {
    EXPECT_FALSE(ParseListenAddress(text)->is_local()) << text;
  }
}

TEST(ListenAddress, RefusesTheRest) {
  const std::string long_path = "unix:/" + std::string(107, 'x');
  EXPECT_FALSE(ParseListenAddress(long_path).ok());
  EXPECT_TRUE(ParseListenAddress(std::string_view(long_path).substr(0, 5 + 107)).ok());
  for (const char* text :
       {"", "unix:", "unix:relative", "9901", ":9901", "h:", "h:x", "h:65536", "h:-1", "::1:80", "h:80x"}) {
    base::Result<ListenAddress> address = ParseListenAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().kind, base::ErrorKind::kInvalidArgument);
  }
}

}  // namespace
}  // namespace sluice::admin
