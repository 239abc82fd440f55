// Attacks on TLS that have hit other programs: a flood of KeyUpdates, a ClientHello in
// parts, plain bytes before TLS, a NUL in a certificate's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls/names.h"
#include "net/tls/stream.h"
#include "net/tls/wire.h"
#include "support/raw_tls.h"
#include "support/tls_pair.h"

namespace sluice::net {
namespace {

using test::MakeCert;
using test::RawTls;
using test::TlsCert;
using ::testing::HasSubstr;

class KnownTlsAttack : public test::TlsPair {
 public:
  // A server of ours, and a raw client on the other end.
  void Begin() {
    MakeContexts();
    auto pair = MemoryStream::Make(time.worker, "client", "server", 1 << 20);
    transport_ = std::move(pair.near);
    raw = std::make_unique<RawTls>(*transport_);
    two = std::make_unique<TlsHandshake>(time.worker, std::move(pair.far), server_context,
                                         time.worker.now() + std::chrono::seconds(5),
                                         [this](TlsOutcome o) { at_server = std::move(o); });
  }
  // `change`: of what the client says first.
  void Shake(const std::function<std::string(std::string)>& change = nullptr) {
    Begin();
    bool first = true;
    for (int i = 0; i < 20 && at_server.stream == nullptr && at_server.failure == TlsFailure::kNone; ++i) {
      SSL_do_handshake(raw->ssl());
      std::string said = raw->Said();
      if (change && std::exchange(first, false)) said = change(said);
      Pass(std::move(said));
    }
  }
  void Pass(std::string said) {
    do time.Run();
    while (raw->Pass(said));
  }
  // The client's KeyUpdates (RFC 8446 4.6.3).
  std::string KeyUpdates(int count, bool requested) {
    for (int i = 0; i < count; ++i) {
      SSL_key_update(raw->ssl(), requested ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
      SSL_do_handshake(raw->ssl());
    }
    return raw->Said();
  }

  std::unique_ptr<RawTls> raw;

 private:
  std::unique_ptr<Stream> transport_;
};

struct WaitsForTls final : IoEvents {
  void OnReadable() override { ++readable; }
  void OnWritable() override {}
  int readable = 0;
};

// CVE-2026-32283 and kin: a record of 27 bytes costs two key schedules.
TEST_F(KnownTlsAttack, KeyUpdateFloodIsCountedAndTakenInPartsOfATurn) {
  for (const bool requested : {false, true}) {
    at_server = TlsOutcome();
    Shake();
    ASSERT_NE(at_server.stream, nullptr) << at_server.detail;
    TlsStream& stream = *at_server.stream;
    Read(stream);
    constexpr uint32_t kUpdates = 1000;
    std::string said = KeyUpdates(kUpdates, requested);
    ASSERT_EQ(SSL_write(raw->ssl(), "hello", 5), 5);
    said += raw->Said();
    ASSERT_TRUE(raw->Pass(said));
    uint32_t useless = 0, reads = 0;
    WaitsForTls waits;
    uint8_t bytes[100];
    IoResult result;
    do {
      if (reads > 0) {  // no bytes come from the transport: the stream knows that it has some
        stream.WaitReadable(waits);
        time.Run();
        ASSERT_EQ(waits.readable, static_cast<int>(reads));
      }
      result = stream.Read(bytes, sizeof bytes);
      ++reads;
      EXPECT_LE(result.useless, 2 * TlsWire::kRecordsMax);
      useless += result.useless;
    } while (result.kind == IoResult::Kind::kWouldBlock && reads < 100);
    ASSERT_EQ(result.kind, IoResult::Kind::kOk);
    EXPECT_EQ(std::string(reinterpret_cast<char*>(bytes), result.bytes), "hello");
    EXPECT_GE(useless, kUpdates);
    EXPECT_LE(useless, 2 * kUpdates);
    EXPECT_GE(reads, kUpdates / TlsWire::kRecordsMax);
    EXPECT_EQ(Read(stream), "<nothing yet>");
  }
}

TEST_F(KnownTlsAttack, DataHasNothingUselessInIt) {
  Shake();
  ASSERT_NE(at_server.stream, nullptr) << at_server.detail;
  Read(*at_server.stream);
  std::string said;
  for (int i = 0; i < 1000; ++i) {  // more records than a read takes
    SSL_write(raw->ssl(), "x", 1);
    said += raw->Said();
  }
  ASSERT_TRUE(raw->Pass(said));
  std::string got;
  for (int i = 0; i < 10 && got.size() < 1000; ++i) {
    uint8_t bytes[2000];
    const IoResult result = at_server.stream->Read(bytes, sizeof bytes);
    ASSERT_EQ(result.kind, IoResult::Kind::kOk);
    EXPECT_EQ(result.useless, 0u);
    EXPECT_LE(result.bytes, TlsWire::kRecordsMax);
    got.append(reinterpret_cast<char*>(bytes), result.bytes);
  }
  EXPECT_EQ(got, std::string(1000, 'x'));
}

// KeyUpdates behind the client's Finished, in the same bytes: the stream begins with them held.
TEST_F(KnownTlsAttack, KeyUpdatesBehindTheHandshakeAreTakenInPartsToo) {
  Begin();
  SSL_do_handshake(raw->ssl());
  Pass(raw->Said());
  SSL_do_handshake(raw->ssl());  // its Finished
  std::string said = raw->Said() + KeyUpdates(1000, false);
  Pass(std::move(said));
  ASSERT_NE(at_server.stream, nullptr) << at_server.detail;
  uint32_t useless = 0, most = 0;
  for (int i = 0; i < 20; ++i) {
    uint8_t bytes[100];
    const IoResult result = at_server.stream->Read(bytes, sizeof bytes);
    ASSERT_EQ(result.kind, IoResult::Kind::kWouldBlock);
    useless += result.useless;
    most = std::max(most, result.useless);
  }
  EXPECT_GE(useless, 1000u);
  EXPECT_LE(most, 2 * TlsWire::kRecordsMax);  // what the handshake took with it is here, too
}

// Traefik CVE-2026-32305 and kin: a reader that looks for the name in the first record alone is passed by.
TEST_F(KnownTlsAttack, SplitClientHelloIsReadAsOne) {
  more.push_back(MakeCert({.common_name = "b", .names = "DNS:b.example.com"}, &ca));
  Begin();
  SSL_set_tlsext_host_name(raw->ssl(), "b.example.com");
  SSL_do_handshake(raw->ssl());
  const std::string hello = raw->Said();
  std::string parts;  // RFC 8446 5.1: a message may be in several records; here a byte in each
  for (size_t at = 5; at < hello.size(); ++at) parts += hello.substr(0, 3) + std::string("\0\1", 2) + hello[at];
  ASSERT_GT(hello.size(), TlsWire::kRecordsMax);  // more records than one step takes
  Pass(std::move(parts));
  for (int i = 0; i < 20 && at_server.stream == nullptr && at_server.failure == TlsFailure::kNone; ++i) {
    SSL_do_handshake(raw->ssl());
    Pass(raw->Said());
  }
  ASSERT_NE(at_server.stream, nullptr) << at_server.detail;
  X509* shown = SSL_get0_peer_certificate(raw->ssl());
  ASSERT_NE(shown, nullptr);
  EXPECT_EQ(NamesOf(shown).common_name, "b");
}

// nginx CVE-2026-1642: what an endpoint, or one on the way to it, says before TLS is no answer.
TEST_F(KnownTlsAttack, PlainBytesBeforeTlsEndTheHandshake) {
  MakeContexts();
  for (const bool before : {true, false}) {  // before the ClientHello, or behind it
    auto pair = MemoryStream::Make(time.worker, "client", "server");
    const std::string plain(
        "\0\0\0\4\0\0\0\0\0"
        "\0\0\1\1\5\0\0\0\1\x88",
        19);  // SETTINGS, and :status 200 with its end
    at_client = TlsOutcome();
    if (before) Write(*pair.far, plain);
    TlsHandshake handshake(time.worker, std::move(pair.near), client_context, *Address::Parse(endpoint),
                           time.worker.now() + std::chrono::seconds(5),
                           [this](TlsOutcome o) { at_client = std::move(o); });
    time.Run();
    if (!before) Write(*pair.far, plain);
    time.Run();
    EXPECT_EQ(at_client.stream, nullptr);
    EXPECT_EQ(at_client.failure, TlsFailure::kProtocol) << at_client.detail;
  }
}

// A certificate whose DNS name has a NUL inside, signed by an authority that reads names to their length.
TlsCert CertWithNul(const TlsCert& issuer, std::string_view name) {
  TlsCert cert = MakeCert({.common_name = "s"}, &issuer);
  GENERAL_NAMES* names = GENERAL_NAMES_new();
  GENERAL_NAME* one = GENERAL_NAME_new();
  ASN1_IA5STRING* text = ASN1_IA5STRING_new();
  ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
  GENERAL_NAME_set0_value(one, GEN_DNS, text);
  sk_GENERAL_NAME_push(names, one);
  X509_add1_ext_i2d(cert.certificate, NID_subject_alt_name, names, 0, 0);
  GENERAL_NAMES_free(names);
  X509_sign(cert.certificate, issuer.key, EVP_sha256());
  BIO* pem = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(pem, cert.certificate);
  cert.certificate_pem = test::TakeText(pem);
  return cert;
}

// Envoy CVE-2025-66220.
TEST_F(KnownTlsAttack, NulInADnsNameOfACertificateNamesNoHost) {
  own = CertWithNul(ca, std::string_view("a.example.com\0.evil.example", 27));
  EXPECT_FALSE(NameAllowed(NamesOf(own.certificate), "a.example.com"));
  MakeContexts();
  Connect();  // to a.example.com
  EXPECT_EQ(at_client.stream, nullptr);
  EXPECT_EQ(at_client.failure, TlsFailure::kName) << at_client.detail;
  own = CertWithNul(ca, "a.example.com");
  MakeContexts();
  Connect();
  EXPECT_NE(at_client.stream, nullptr) << at_client.detail;
}

TEST(TlsRecords, BeginWhereTheirHeadsSay) {
  const std::string records(
      "\x17\3\3\0\2ab"
      "\x17\3\3\0\0"
      "\x16\3\3\1\0",
      17);
  const std::string all = records + std::string(256, 'x') + "\x17";
  const auto* data = reinterpret_cast<const uint8_t*>(all.data());
  for (size_t cut = 1; cut <= all.size(); ++cut) {
    TlsRecords reader;
    uint32_t most = 3;
    size_t taken = 0;
    for (size_t at = 0; at < all.size(); at += cut) {
      const size_t part = std::min(cut, all.size() - at);
      const size_t got = reader.Take(data + at, part, most);
      taken += got;
      if (got < part) break;
    }
    EXPECT_EQ(taken, all.size() - 1) << cut;  // not the fourth record's first byte
    EXPECT_EQ(most, 0u);
  }
  TlsRecords reader;
  uint32_t most = 2;
  EXPECT_EQ(reader.Take(data, all.size(), most), 12u);
  EXPECT_EQ(reader.Take(data + 12, 5, most), 0u);
  most = 1;
  EXPECT_EQ(reader.Take(data + 12, all.size() - 12, most), 261u);
}

}  // namespace
}  // namespace sluice::net
