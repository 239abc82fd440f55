// What is fixed in TLS (docs/tls.md), each seen from the other end of the connection: versions, ciphers, keys, names,
// SNI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "support/tls_pair.h"

namespace sluice::net {
namespace {

using TlsRules = test::TlsPair;
using test::MakeCert;
using ::testing::HasSubstr;

TEST_F(TlsRules, MinVersionHolds) {
  MakeContexts();
  EXPECT_EQ(SSL_CTX_get_min_proto_version(server_context->native()), TLS1_2_VERSION);
  EXPECT_EQ(SSL_CTX_get_min_proto_version(client_context->native()), TLS1_2_VERSION);
  for (bool of_server : {true, false}) {
    listener.version_min = of_server ? TlsVersion::k13 : TlsVersion::k12;
    listener.version_max = of_server ? TlsVersion::k13 : TlsVersion::k12;
    cluster.version_min = of_server ? TlsVersion::k12 : TlsVersion::k13;
    cluster.version_max = of_server ? TlsVersion::k12 : TlsVersion::k13;
    MakeContexts();
    if (of_server)
      SSL_CTX_set_max_proto_version(server_context->native(), TLS1_3_VERSION);
    else
      SSL_CTX_set_max_proto_version(client_context->native(), TLS1_3_VERSION);
    Connect();
    EXPECT_EQ(at_server.stream, nullptr);
    EXPECT_EQ(at_client.stream, nullptr);
    EXPECT_THAT(of_server ? at_server.detail : at_client.detail, HasSubstr("protocol"));
  }
}

// RFC 9113 9.2.2 and appendix A: neither CBC nor a key exchange without forward secrecy.
TEST_F(TlsRules, CiphersOf12AreThoseOfHttp2) {
  listener.version_max = TlsVersion::k12;
  for (const char* offered : {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "AES128-GCM-SHA256"}) {
    MakeContexts();
    ASSERT_EQ(SSL_CTX_set_cipher_list(client_context->native(), offered), 1);
    Connect();
    EXPECT_EQ(at_server.stream, nullptr) << offered;
    EXPECT_THAT(at_server.detail, HasSubstr("no shared cipher"));
  }
  MakeContexts();
  ASSERT_EQ(SSL_CTX_set_cipher_list(client_context->native(), "ECDHE-ECDSA-AES128-GCM-SHA256"), 1);
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  for (const auto& context : {server_context, client_context}) {
    STACK_OF(SSL_CIPHER)* all = SSL_CTX_get_ciphers(context->native());
    for (int i = 0; i < sk_SSL_CIPHER_num(all); ++i) EXPECT_EQ(SSL_CIPHER_is_aead(sk_SSL_CIPHER_value(all, i)), 1);
  }
}

TEST_F(TlsRules, NeitherRenegotiationNorCompressionNorALongSession) {
  MakeContexts();
  for (const auto& context : {server_context, client_context}) {
    EXPECT_EQ(SSL_CTX_get_options(context->native()) & SSL_OP_NO_RENEGOTIATION, SSL_OP_NO_RENEGOTIATION);
    EXPECT_EQ(SSL_CTX_get_options(context->native()) & SSL_OP_NO_COMPRESSION, SSL_OP_NO_COMPRESSION);
    EXPECT_EQ(SSL_CTX_get_timeout(context->native()), std::chrono::seconds(kTlsSessionLifetime).count());
    EXPECT_EQ(SSL_CTX_get_max_early_data(context->native()), 0u);
  }
}

TEST_F(TlsRules, AShortKeyIsRefused) {
  own = MakeCert({.common_name = "s", .names = "DNS:a.example.com", .rsa_bits = 1024}, &ca);
  auto made = TlsContext::ForListener(listener, {{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}}, nullptr);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().detail, HasSubstr("key too small"));
}

// RFC 6066 3: DNS names only.
TEST_F(TlsRules, TheServerIsToldTheNameThatIsMeant) {
  std::string asked;
  const auto seen = [](SSL* ssl, int*, void* into) -> int {
    const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    *static_cast<std::string*>(into) = name == nullptr ? "(none)" : name;
    return SSL_TLSEXT_ERR_OK;
  };
  own = MakeCert({.common_name = "s", .names = "DNS:a.example.com,DNS:b.example.com,IP:10.0.0.1"}, &ca);
  const auto asks = [&](const std::string& server_name, const std::string& address) {
    cluster.server_name = server_name;
    endpoint = address;
    MakeContexts();
    SSL_CTX_set_tlsext_servername_callback(server_context->native(), static_cast<int (*)(SSL*, int*, void*)>(seen));
    SSL_CTX_set_tlsext_servername_arg(server_context->native(), &asked);
    Connect();
    EXPECT_NE(at_client.stream, nullptr) << at_client.detail;
    return asked;
  };
  EXPECT_EQ(asks("a.example.com", "10.0.0.1:1"), "a.example.com");
  EXPECT_EQ(asks("", "b.example.com:1"), "b.example.com");
  EXPECT_EQ(asks("", "10.0.0.1:1"), "(none)");
  // The dot that closes an absolute name is for DNS only, whichever way the name comes in.
  EXPECT_EQ(asks("", "b.example.com.:1"), "b.example.com");
  EXPECT_EQ(asks("A.example.com.", "10.0.0.1:1"), "a.example.com");
}

// RFC 9525 6.3: a common name is no host name, and a star is a whole label.
TEST_F(TlsRules, HostNamesAreLookedForAsTheRfcSays) {
  const auto accepted = [this](const std::string& common_name, const std::string& names, const std::string& wanted) {
    own = MakeCert({.common_name = common_name, .names = names}, &ca);
    cluster.server_name = wanted;
    MakeContexts();
    Connect();
    EXPECT_TRUE(at_client.stream != nullptr || at_client.failure == TlsFailure::kName) << at_client.detail;
    return at_client.stream != nullptr;
  };
  EXPECT_TRUE(accepted("s", "DNS:a.example.com", "a.example.com"));
  EXPECT_FALSE(accepted("a.example.com", "", "a.example.com"));
  EXPECT_FALSE(accepted("a.example.com", "DNS:b.example.com", "a.example.com"));
  EXPECT_TRUE(accepted("s", "DNS:*.example.com", "ab.example.com"));
  EXPECT_FALSE(accepted("s", "DNS:a*.example.com", "ab.example.com"));
  EXPECT_FALSE(accepted("s", "DNS:*.example.com", "a.b.example.com"));
  EXPECT_FALSE(accepted("s", "DNS:a.example.com.evil.test", "a.example.com"));
}

// Each certificate of the bundle is trusted as it stands, also without the authority above it.
TEST_F(TlsRules, AnAuthorityInTheBundleNeedsNoRoot) {
  const test::TlsCert between = MakeCert({.common_name = "between", .authority = true}, &ca);
  own = MakeCert({.common_name = "s", .names = "DNS:a.example.com"}, &between);
  trusted_by_client = &between;
  MakeContexts();
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
}

// A session says that the peer was verified: not under other rules, nor at another endpoint.
TEST_F(TlsRules, ASessionIsOfOneTrustAndOneEndpoint) {
  for (TlsVersion version : {TlsVersion::k12, TlsVersion::k13}) {
    SCOPED_TRACE(ToString(version));
    listener = {};
    endpoint = "10.0.0.1:1";
    Trust();
    listener.version_min = listener.version_max = version;
    listener.require_client_certificate = false;
    client_has_certificate = false;
    MakeContexts();
    const auto connect = [this] {
      Connect();
      if (at_client.stream != nullptr) Read(*at_client.stream);
      return at_server.stream != nullptr && at_server.stream->peer().resumed;
    };
    EXPECT_FALSE(connect());
    EXPECT_TRUE(connect());
    endpoint = "10.0.0.2:1";
    EXPECT_FALSE(connect());
    EXPECT_TRUE(connect());
    // A client without a certificate, under a listener that wants one.
    const auto kept = client_context;
    listener.require_client_certificate = true;
    MakeContexts();
    client_context = kept;
    EXPECT_FALSE(connect());
    EXPECT_EQ(at_server.failure, TlsFailure::kNoCertificate) << at_server.detail;
  }
}

TEST_F(TlsRules, ASessionOfAnotherAuthorityIsNotResumed) {
  for (TlsVersion version : {TlsVersion::k12, TlsVersion::k13}) {
    SCOPED_TRACE(ToString(version));
    Trust();
    client_has_certificate = true;
    listener.version_min = listener.version_max = version;
    MakeContexts();
    Connect();
    ASSERT_NO_FATAL_FAILURE(ExpectConnected());
    Read(*at_client.stream);
    const test::TlsCert other = MakeCert({.common_name = "other", .authority = true});
    auto made = TlsContext::ForListener(
        listener, {{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {"ca.crt", other.certificate_pem}}, tickets);
    ASSERT_TRUE(made.ok()) << made.error().detail;
    server_context = *made;
    Connect();
    EXPECT_EQ(at_server.stream, nullptr);
    EXPECT_EQ(at_server.failure, TlsFailure::kCertificate) << at_server.detail;
  }
}

OpenSslPtr<ssl_session_st> Session(int version, unsigned char id) {
  OpenSslPtr<ssl_session_st> session(SSL_SESSION_new());
  SSL_SESSION_set_protocol_version(session.get(), version);
  SSL_SESSION_set1_id(session.get(), &id, 1);
  return session;
}

// RFC 8446 C.4: a ticket that is used twice tells an observer that both connections are of one client.
TEST(TlsSessions, OneOfTls13IsUsedOnceAndOneOf12AsLongAsItIsGood) {
  TlsSessions sessions;
  sessions.Put("a", Session(TLS1_2_VERSION, 1));
  EXPECT_NE(sessions.Take("a"), nullptr);
  EXPECT_NE(sessions.Take("a"), nullptr);
  EXPECT_EQ(sessions.Take("b"), nullptr);
  sessions.Put("b", Session(TLS1_3_VERSION, 2));
  EXPECT_NE(sessions.Take("b"), nullptr);
  EXPECT_EQ(sessions.Take("b"), nullptr);
}

TEST(TlsSessions, KeepsTheNewestOfEachAndABoundedNumberOfPeers) {
  TlsSessions sessions;
  for (unsigned char i = 0; i < TlsSessions::kPerPeerMax + 3; ++i) sessions.Put("a", Session(TLS1_3_VERSION, i));
  EXPECT_EQ(sessions.size(), TlsSessions::kPerPeerMax);
  unsigned size = 0;
  EXPECT_EQ(SSL_SESSION_get_id(sessions.Take("a").get(), &size)[0], TlsSessions::kPerPeerMax + 2);
  for (size_t i = 0; i < TlsSessions::kPeersMax + 10; ++i)
    sessions.Put("peer " + std::to_string(i), Session(TLS1_3_VERSION, 1));
  EXPECT_LE(sessions.size(), TlsSessions::kPeersMax + TlsSessions::kPerPeerMax);
  EXPECT_NE(sessions.Take("peer " + std::to_string(TlsSessions::kPeersMax + 9)), nullptr);
}

}  // namespace
}  // namespace sluice::net
