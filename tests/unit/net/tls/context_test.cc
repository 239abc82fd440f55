#include "net/tls/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <ctime>

#include "support/tls_certificates.h"

namespace sluice::net {
namespace {

using test::MakeCert;
using test::TlsCert;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TlsContextTest : public ::testing::Test {
 public:
  base::Result<std::shared_ptr<const TlsContext>> Listener() {
    return TlsContext::ForListener(listener, contents, std::make_shared<TlsTicketKeys>());
  }
  std::string Refusal() {
    auto made = Listener();
    if (made) return "";
    EXPECT_EQ(made.error().kind, base::ErrorKind::kInvalidArgument);
    return made.error().detail;
  }
  TlsCert ca = MakeCert({.common_name = "ca", .authority = true});
  TlsCert own = MakeCert({.common_name = "me", .names = "DNS:a.example.com,URI:spiffe://d/a,IP:127.0.0.1"}, &ca);
  ListenerTlsOptions listener;
  TlsContents contents{{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}};
};

TEST_F(TlsContextTest, SaysWhatItsOwnCertificateAndItsTrustAre) {
  contents.ca = {listener.ca = "ca.crt", ca.certificate_pem};
  listener.allowed_names = {"spiffe://d/*"};
  auto made = Listener();
  ASSERT_TRUE(made.ok()) << made.error().detail;
  const CertificateInfo& info = (*made)->own().front().info;
  EXPECT_EQ(info.subject, "CN=me");
  EXPECT_EQ(info.issuer, "CN=ca");
  EXPECT_THAT(info.names.dns, ElementsAre("a.example.com"));
  EXPECT_THAT(info.names.uris, ElementsAre("spiffe://d/a"));
  EXPECT_THAT(info.names.ips, ElementsAre("127.0.0.1"));
  EXPECT_EQ(info.names.Best(), "spiffe://d/a");
  EXPECT_EQ(info.not_after - info.not_before, 86400 + 3600);
  EXPECT_NEAR(static_cast<double>(info.not_after), static_cast<double>(std::time(nullptr) + 86400),
              7200);  // valid for a day
  ASSERT_EQ((*made)->trusted().size(), 1u);
  EXPECT_EQ((*made)->trusted()[0].subject, "CN=ca");
  EXPECT_FALSE((*made)->slow_key());
}

// A client sends no certificate of an authority that is missing from the list.
TEST_F(TlsContextTest, ClientsAreToldAllAuthoritiesOrNone) {
  std::string bundle;
  const auto told = [&] {
    contents.ca = {listener.ca = "ca.crt", bundle};
    auto made = Listener();
    EXPECT_TRUE(made.ok()) << made.error().detail;
    const STACK_OF(X509_NAME)* names = made.ok() ? SSL_CTX_get_client_CA_list((*made)->native()) : nullptr;
    return names == nullptr ? 0 : sk_X509_NAME_num(names);
  };
  for (int i = 0; i < 100; ++i)
    bundle += MakeCert({.common_name = "ca " + std::to_string(i), .authority = true}).certificate_pem;
  EXPECT_EQ(told(), 100);
  bundle += MakeCert({.common_name = "one more", .authority = true}).certificate_pem;
  EXPECT_EQ(told(), 0);
}

TEST_F(TlsContextTest, AnExpiredCertificateIsTakenAndKnown) {
  own = MakeCert({.common_name = "old", .from = -7200, .until = -3600}, &ca);
  contents.certificate.text = own.certificate_pem;
  contents.key.text = own.key_pem;
  auto made = Listener();
  ASSERT_TRUE(made.ok()) << made.error().detail;
  const CertificateInfo& info = (*made)->own().front().info;
  EXPECT_EQ(info.not_after - info.not_before, 3600);
}

TEST_F(TlsContextTest, ALongRsaKeyIsSlow) {
  for (unsigned bits : {2048u, 3072u}) {
    own = MakeCert({.common_name = "rsa", .rsa_bits = bits}, &ca);
    contents.certificate.text = own.certificate_pem;
    contents.key.text = own.key_pem;
    auto made = Listener();
    ASSERT_TRUE(made.ok()) << made.error().detail;
    EXPECT_EQ((*made)->slow_key(), bits > 2048);
  }
}

TEST_F(TlsContextTest, AKeyOfAnotherCertificateIsRefusedWithBothFiles) {
  contents.key.text = ca.key_pem;
  EXPECT_EQ(Refusal(), "a.key: is not the key of the first certificate in a.crt");
}

TEST_F(TlsContextTest, FilesWithoutWhatTheyShouldHaveAreRefused) {
  contents.certificate.text = "hello\n";
  EXPECT_THAT(Refusal(), HasSubstr("a.crt: has no certificate"));
  contents.certificate.text = own.key_pem;
  EXPECT_THAT(Refusal(), HasSubstr("a.crt: has no certificate"));
  contents.certificate.text = own.certificate_pem;
  contents.key.text = own.certificate_pem;
  EXPECT_THAT(Refusal(), HasSubstr("a.key: has no private key"));
  contents.key.text = "";
  EXPECT_THAT(Refusal(), HasSubstr("a.key: has no private key"));
}

TEST_F(TlsContextTest, ABrokenBlockBehindAGoodOneIsNotPassedOver) {
  std::string broken = ca.certificate_pem;
  broken[100] = '!';
  contents.certificate.text += broken;
  EXPECT_THAT(Refusal(), HasSubstr("a.crt: has a certificate that cannot be read"));
  contents.certificate.text = own.certificate_pem + ca.certificate_pem.substr(0, 200);
  EXPECT_THAT(Refusal(), HasSubstr("a.crt: has a certificate that cannot be read"));
}

TEST_F(TlsContextTest, AnEncryptedKeyIsNamedAsSuch) {
  for (bool traditional : {false, true}) {
    BIO* text = BIO_new(BIO_s_mem());
    char pass[] = "secret";
    auto write = traditional ? &PEM_write_bio_PrivateKey_traditional : &PEM_write_bio_PrivateKey;
    write(text, own.key, EVP_aes_128_cbc(), reinterpret_cast<unsigned char*>(pass), 6, nullptr, nullptr);
    contents.key.text = test::TakeText(text);
    EXPECT_THAT(Refusal(), HasSubstr("a.key: has an encrypted private key"));
  }
}

TEST_F(TlsContextTest, RulesThatCannotHoldAreRefused) {
  listener.allowed_names = {"a.example.com"};
  EXPECT_THAT(Refusal(), HasSubstr("needs client_ca"));
  contents.ca = {listener.ca = "ca.crt", ca.certificate_pem};
  listener.require_client_certificate = false;
  EXPECT_THAT(Refusal(), HasSubstr("require_client_certificate"));
  listener.require_client_certificate = true;
  EXPECT_EQ(Refusal(), "");
  listener.allowed_names = {"*"};
  EXPECT_THAT(Refusal(), HasSubstr("*"));
  listener.allowed_names.clear();
  listener.version_min = TlsVersion::k13;
  listener.version_max = TlsVersion::k12;
  EXPECT_THAT(Refusal(), HasSubstr("version_min"));
}

TEST_F(TlsContextTest, AListenerNeverVerifiesLessThanItWasTold) {
  listener.ca = "ca.crt";  // and the file's text is missing
  EXPECT_THAT(Refusal(), HasSubstr("client_ca was not read"));
  listener.ca = std::string(kSystemCa);
  EXPECT_THAT(Refusal(), HasSubstr("must be a file"));
}

TEST_F(TlsContextTest, NamesWithControlCharactersAreLeftOut) {
  TlsCert odd = MakeCert({.common_name = std::string("good.com\0evil", 13)}, &ca);
  EXPECT_EQ(NamesOf(odd.certificate).common_name, "");
}

// A reader of the first and a reader of the last of them see two identities.
TEST_F(TlsContextTest, OfTwoCommonNamesNeitherCounts) {
  EXPECT_EQ(NamesOf(MakeCert({.common_name = "a", .common_name_too = "b"}).certificate).common_name, "");
  EXPECT_EQ(NamesOf(MakeCert({.common_name = "a"}).certificate).common_name, "a");
}

TEST_F(TlsContextTest, AClusterNeedsNoCertificate) {
  ClusterTlsOptions cluster;
  cluster.server_name = "a.example.com";
  auto made = TlsContext::ForCluster(cluster, {{}, {}, {"ca.crt", ca.certificate_pem}});
  ASSERT_TRUE(made.ok()) << made.error().detail;
  EXPECT_EQ((*made)->server_name(), "a.example.com");
  EXPECT_TRUE((*made)->own().empty());
  cluster.ca = std::string(kSystemCa);
  EXPECT_TRUE(TlsContext::ForCluster(cluster, {}).ok());
}

TEST(TlsTicketKeys, AKeyOpensForOneLifeMore) {
  TlsTicketKeys keys;
  const base::TimePoint start(std::chrono::hours(1));
  keys.RotateIfDue(start);
  const TlsTicketKeys::Key first = keys.current();
  keys.RotateIfDue(start + TlsTicketKeys::kLifetime - base::Nanos(1));
  TlsTicketKeys::Key found;
  EXPECT_EQ(keys.Find(first.name.data(), &found), TlsTicketKeys::Found::kCurrent);
  keys.RotateIfDue(start + TlsTicketKeys::kLifetime);
  EXPECT_EQ(keys.Find(first.name.data(), &found), TlsTicketKeys::Found::kFormer);
  EXPECT_EQ(found.cipher, first.cipher);
  EXPECT_EQ(found.mac, first.mac);
  EXPECT_NE(keys.current().name, first.name);
  keys.RotateIfDue(start + 2 * TlsTicketKeys::kLifetime);
  EXPECT_EQ(keys.Find(first.name.data(), &found), TlsTicketKeys::Found::kNo);
}

}  // namespace
}  // namespace sluice::net
