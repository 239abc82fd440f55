// Address: one spelling for each address, and errors that say what to write instead.
#include "net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace sluice::net {
namespace {

using ::testing::HasSubstr;

std::string Canonical(std::string_view text) {
  auto address = Address::Parse(text);
  return address.ok() ? address->ToString() : "error: " + address.error().detail;
}

std::string ErrorOf(std::string_view text) {
  auto address = Address::Parse(text);
  if (address.ok()) return "no error: " + address->ToString();
  EXPECT_EQ(address.error().kind, base::ErrorKind::kInvalidArgument);
  return address.error().detail;
}

TEST(Address, TellsTheThreeKindsApart) {
  EXPECT_EQ(Address::Parse("127.0.0.1:50051")->kind(), Address::Kind::kIp);
  EXPECT_EQ(Address::Parse("[::1]:50051")->kind(), Address::Kind::kIp);
  EXPECT_EQ(Address::Parse("users.prod.svc:50051")->kind(), Address::Kind::kName);
  EXPECT_EQ(Address::Parse("unix:/run/a.sock")->kind(), Address::Kind::kUnix);
  EXPECT_EQ(Address::Parse("[::1]:50051")->host(), "::1");
  EXPECT_EQ(Address::Parse("[::1]:50051")->port(), 50051);
  EXPECT_EQ(Address::Parse("unix:/run/a.sock")->host(), "/run/a.sock");
}

TEST(Address, PrintsWhatItParsed) {
  for (std::string_view text :
       {"127.0.0.1:0", "0.0.0.0:65535", "[::]:1", "a:1", "my_svc.a-b.local.:50051", "unix:/a"}) {
    EXPECT_EQ(Canonical(text), text);
  }
}

// RFC 5952 section 4: no leading zeros, the longest run of zeros shortened and the first of equal ones, a
// single zero field not shortened, lower case. Section 5: mapped addresses in mixed notation.
TEST(Address, GivesAnIpv6AddressItsCanonicalText) {
  EXPECT_EQ(Canonical("[2001:0DB8:0:0:0:0:0:0001]:80"), "[2001:db8::1]:80");
  EXPECT_EQ(Canonical("[2001:db8:0:0:1:0:0:1]:80"), "[2001:db8::1:0:0:1]:80");
  EXPECT_EQ(Canonical("[2001:db8::1:1:1:1:1]:80"), "[2001:db8:0:1:1:1:1:1]:80");
  EXPECT_EQ(Canonical("[2001:0:0:1:0:0:0:1]:80"), "[2001:0:0:1::1]:80");
  EXPECT_EQ(Canonical("[::FFFF:10.0.0.7]:80"), "[::ffff:10.0.0.7]:80");
  EXPECT_EQ(Canonical("[::ffff:a00:7]:80"), "[::ffff:10.0.0.7]:80");
}

TEST(Address, IgnoresTheCaseOfNamesButNotOfPaths) {
  EXPECT_EQ(Canonical("Users.PROD:50051"), "users.prod:50051");
  EXPECT_EQ(Canonical("unix:/Run/A.sock"), "unix:/Run/A.sock");
}

TEST(Address, TakesTheThreeSlashesOfGrpcForAUnixPath) { EXPECT_EQ(Canonical("unix:///run/a"), "unix:/run/a"); }

TEST(Address, SaysWhatToWriteInstead) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("allowed: host:port, [IPv6]:port, unix:/path"));
  EXPECT_THAT(ErrorOf("127.0.0.1"), HasSubstr("no port"));
  EXPECT_THAT(ErrorOf("/tmp/x.sock"), HasSubstr("a Unix socket is written with unix: before its path"));
  EXPECT_THAT(ErrorOf("[::1]"), HasSubstr("no port"));
  EXPECT_THAT(ErrorOf("::1:50051"), HasSubstr("needs brackets: [::1]:port"));
  EXPECT_THAT(ErrorOf("[::1:50051"), HasSubstr("no ] after"));
  EXPECT_THAT(ErrorOf("[::1]x:50051"), HasSubstr("must follow the ]"));
  EXPECT_THAT(ErrorOf("[127.0.0.1]:1"), HasSubstr("no IPv6 address"));
  EXPECT_THAT(ErrorOf("[fe80::1%eth0]:1"), HasSubstr("zones"));
  EXPECT_THAT(ErrorOf(":50051"), HasSubstr("0.0.0.0:port or [::]:port"));
  EXPECT_THAT(ErrorOf("http://a:1"), HasSubstr("a URL is no address"));
  EXPECT_THAT(ErrorOf("unix:a.sock"), HasSubstr("must be absolute"));
  EXPECT_THAT(ErrorOf("unix://host/a.sock"), HasSubstr("must be absolute"));
  EXPECT_THAT(ErrorOf("unix:"), HasSubstr("must be absolute"));
}

TEST(Address, RefusesPortsThatAreNoPlainNumber) {
  for (std::string_view text :
       {"a:", "a:65536", "a:-1", "a:+1", "a: 1", "a:1 ", "a:0x1", "a:01", "a:100000", "a:http"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("the port is no number in [0, 65535]")) << text;
  }
}

TEST(Address, RefusesAMistypedIpv4AddressInsteadOfLookingItUp) {
  for (std::string_view text : {"10.0.0.256:1", "10.0.0:1", "10.0.0.07:1", "1.2.3.4.5:1", "7:1", "10.0.0.1.:1"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("no IPv4 address")) << text;
  }
}

TEST(Address, RefusesWhatIsNoHostName) {
  const std::string label(64, 'a');
  const std::string long_name = "x." + std::string(250, 'a') + "bc";
  for (std::string text : {std::string("a..b"), std::string("-a"), std::string("a-.b"), std::string("a b"),
                           std::string("a/b"), std::string(".a"), std::string("."), label, long_name}) {
    EXPECT_THAT(ErrorOf(text + ":1"), HasSubstr("no host name")) << text;
  }
  EXPECT_EQ(Canonical(std::string(63, 'a') + ":1"), std::string(63, 'a') + ":1");
}

TEST(Address, BoundsAUnixPathByTheKernelsLimit) {
  const std::string longest = "unix:/" + std::string(106, 'a');
  EXPECT_EQ(Canonical(longest), longest);
  EXPECT_THAT(ErrorOf(longest + "a"), HasSubstr("108 bytes; the system allows 107"));
}

TEST(Address, ShowsHostileTextSafely) {
  EXPECT_EQ(ErrorOf("a\x1b[31m:1").find('\x1b'), std::string::npos);
  EXPECT_THAT(ErrorOf(std::string_view("a\0b:1", 5)), HasSubstr("NUL"));
  EXPECT_THAT(ErrorOf(std::string_view("unix:/a\0b", 9)), HasSubstr("NUL"));
  EXPECT_LT(ErrorOf(std::string(100000, 'a') + ":1").size(), 300u);
}

TEST(Address, ParsesItsOwnTextToAnEqualAddress) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  constexpr std::string_view kAlphabet = "0123456789abcdefxX:.[]-_/% unix:";
  size_t parsed = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text = random.Below(2) ? "" : "[";
    for (uint64_t n = random.Below(12); n > 0; --n) text += kAlphabet[random.Below(kAlphabet.size())];
    if (random.Below(2)) text += text.starts_with('[') ? "]:1" : ":1";
    auto address = Address::Parse(text);
    if (!address.ok()) continue;
    ++parsed;
    auto again = Address::Parse(address->ToString());
    ASSERT_TRUE(again.ok()) << text << " -> " << address->ToString();
    ASSERT_EQ(*again, *address) << text;
    ASSERT_EQ(again->ToString(), address->ToString()) << text;
  }
  EXPECT_GT(parsed, 1000u);  // else the test shows nothing
}

TEST(Address, KnowsWhatOnlyThisHostReaches) {
  for (const char* text : {"127.0.0.1:1", "127.255.255.254:1", "[::1]:1", "[0:0::1]:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_TRUE(Address::Parse(text)->is_loopback()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "128.0.0.1:1", "12.7.0.1:1", "[::]:1", "[::2]:1", "[::12]:1", "[::1:0]:1",
                           "[::ffff:10.0.0.1]:1", "[::ffff:0.0.0.0]:1", "[::ffff:0:127.0.0.1]:1", "[127::1]:1",
                           "localhost:1", "127.example.com:1", "unix:/127.0.0.1"}) {
    EXPECT_FALSE(Address::Parse(text)->is_loopback()) << text;
  }
}

}  // namespace
}  // namespace sluice::net
