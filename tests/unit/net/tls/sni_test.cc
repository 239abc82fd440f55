// Several certificates of a listener: a client gets the one for the name that it asks for.
#include <gmock/gmock.h>

#include "net/tls/own_certificate.h"
#include "support/tls_pair.h"

namespace sluice::net {
namespace {

using test::MakeCert;
using testing::ElementsAre;
using testing::HasSubstr;

class SniTest : public test::TlsPair {
 public:
  // The common name of the certificate that a client gets that asks for `name`, and its failure.
  std::string Shown(const std::string& name) {
    cluster.server_name = name;
    MakeContexts();
    Connect();
    return at_client.stream != nullptr ? at_client.stream->peer().names.common_name : at_client.detail;
  }
};

TEST_F(SniTest, AnExactNameComesBeforeAWildcardAndTheFirstStandsForNone) {
  more.push_back(MakeCert({.common_name = "wild", .names = "DNS:*.example.org"}, &ca));
  more.push_back(MakeCert({.common_name = "b", .names = "DNS:b.example.org,DNS:b.example.net"}, &ca));
  EXPECT_EQ(Shown("a.example.com"), "s");
  EXPECT_EQ(Shown("b.example.org"), "b");
  EXPECT_EQ(Shown("b.example.net"), "b");
  EXPECT_EQ(Shown("c.example.org"), "wild");
  EXPECT_EQ(Shown("B.Example.ORG"), "b");
  EXPECT_THAT(Shown("x.c.example.org"), HasSubstr("for another name"));
  EXPECT_THAT(Shown("example.org"), HasSubstr("for another name"));
}

// By its address a client asks for no name (RFC 6066 3).
TEST_F(SniTest, AClientThatAsksForNoNameGetsTheFirst) {
  own = MakeCert({.common_name = "first", .names = "IP:10.0.0.1"}, &ca);
  more.push_back(MakeCert({.common_name = "b", .names = "DNS:b.example.org,IP:10.0.0.1"}, &ca));
  EXPECT_EQ(Shown(""), "first");
}

// Else OpenSSL would choose between the two by what the client likes.
TEST_F(SniTest, AKeyOfAnotherKindTakesThePlaceOfTheFirst) {
  more.push_back(MakeCert({.common_name = "rsa", .names = "DNS:b.example.org", .rsa_bits = 2048}, &ca));
  EXPECT_EQ(Shown("b.example.org"), "rsa");
  EXPECT_EQ(Shown("a.example.com"), "s");
  own = MakeCert({.common_name = "rsa too", .names = "DNS:a.example.com", .rsa_bits = 2048}, &ca);
  more.clear();
  more.push_back(MakeCert({.common_name = "ec", .names = "DNS:b.example.org"}, &ca));
  EXPECT_EQ(Shown("b.example.org"), "ec");
  EXPECT_EQ(Shown("a.example.com"), "rsa too");
}

TEST_F(SniTest, OneSlowKeyMakesAllHandshakesApart) {
  more.push_back(MakeCert({.common_name = "b", .names = "DNS:b.example.org"}, &ca));
  MakeContexts();
  EXPECT_FALSE(server_context->slow_key());
  more.push_back(MakeCert({.common_name = "slow", .names = "DNS:c.example.org", .rsa_bits = 3072}, &ca));
  MakeContexts();
  EXPECT_TRUE(server_context->slow_key());
  EXPECT_EQ(server_context->own().size(), 3u);
}

TEST_F(SniTest, EachPairIsChecked) {
  const auto other = MakeCert({.common_name = "b", .names = "DNS:b.example.org"}, &ca);
  TlsContents ours{{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}};
  ours.more.push_back({{"b.crt", other.certificate_pem}, {"b.key", own.key_pem}});
  const auto made = TlsContext::ForListener(listener, ours, tickets);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().detail, "b.key: is not the key of the first certificate in b.crt");
}

TEST_F(SniTest, TheClientsCertificateIsAskedForWhateverTheName) {
  Trust();
  more.push_back(MakeCert({.common_name = "b", .names = "DNS:b.example.org"}, &ca));
  client_has_certificate = true;
  EXPECT_EQ(Shown("b.example.org"), "b");
  ASSERT_NE(at_server.stream, nullptr) << at_server.detail;
  EXPECT_THAT(at_server.stream->peer().names.uris, ElementsAre("spiffe://d/c"));
  client_has_certificate = false;
  (void)Shown("b.example.org");
  EXPECT_EQ(at_server.failure, TlsFailure::kNoCertificate);
}

}  // namespace
}  // namespace sluice::net
