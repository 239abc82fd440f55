#include "net/tls/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cerrno>

#include "base/random.h"
#include "support/tls_pair.h"

namespace sluice::net {
namespace {

using test::MakeCert;
using test::TlsCert;
using ::testing::HasSubstr;

struct Waits final : IoEvents {
  void OnReadable() override { ++readable; }
  void OnWritable() override { ++writable; }
  int readable = 0, writable = 0;
};

using TlsTest = test::TlsPair;

TEST_F(TlsTest, BothVersionsCarryBytesBothWaysHoweverTheyAreCut) {
  for (TlsVersion version : {TlsVersion::k12, TlsVersion::k13}) {
    for (size_t cut : {size_t{1}, size_t{7}, size_t{1000}, size_t{0}}) {
      SCOPED_TRACE(std::string(ToString(version)) + " cut " + std::to_string(cut));
      call_bytes_max = cut;
      listener.version_min = listener.version_max = version;
      MakeContexts();
      Connect();
      ASSERT_NO_FATAL_FAILURE(ExpectConnected());
      EXPECT_EQ(at_client.stream->peer().version, "TLSv" + std::string(ToString(version)));
      EXPECT_EQ(at_client.stream->peer().names.Best(), "spiffe://d/s");
      EXPECT_FALSE(at_server.stream->peer().has_certificate);
      base::Random random(17);
      std::string sent[2], got[2];
      TlsStream* ends[2] = {at_client.stream.get(), at_server.stream.get()};
      for (int round = 0; round < (cut == 0 ? 300 : cut < 10 ? 3 : 30); ++round) {
        for (int i : {0, 1}) {
          std::string text(random.Below(40'000) + 1, static_cast<char>('a' + round % 26));
          const size_t half = random.Below(text.size());
          iovec parts[] = {{text.data(), half}, {text.data() + half, text.size() - half}};
          const IoResult result = ends[i]->Write(parts, 2);
          sent[i] += text.substr(0, result.bytes);
          const std::string read = Read(*ends[1 - i], random.Below(50'000) + 1);
          if (read != "<nothing yet>") got[i] += read;
        }
        time.Run();
      }
      for (int idle = 0; idle < 1'000'000 && (got[0].size() < sent[0].size() || got[1].size() < sent[1].size());
           ++idle) {
        for (int i : {0, 1}) {
          const std::string read = Read(*ends[1 - i]);
          if (read != "<nothing yet>") got[i] += read;
        }
        time.Run();
      }
      EXPECT_TRUE(got[0] == sent[0] && got[1] == sent[1]);
    }
  }
}

TEST_F(TlsTest, PendingBytesAreToldWithoutASocketEvent) {
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  Read(*at_server.stream);
  EXPECT_EQ(Write(*at_client.stream, "0123456789"), 10u);
  EXPECT_EQ(Read(*at_server.stream, 4), "0123");
  Waits waits;
  at_server.stream->WaitReadable(waits);
  EXPECT_EQ(waits.readable, 0);
  time.Run();
  EXPECT_EQ(waits.readable, 1);
  EXPECT_EQ(Read(*at_server.stream), "456789");
  EXPECT_EQ(Read(*at_server.stream), "<nothing yet>");
  at_server.stream->WaitReadable(waits);
  time.Run();
  EXPECT_EQ(waits.readable, 1);
}

TEST_F(TlsTest, OneWriteOfManyPartsIsOneWriteOfTheTransport) {
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  const uint64_t before = raw_client->writes();
  std::string text(50, 'x');
  std::vector<iovec> parts(256, iovec{text.data(), text.size()});
  EXPECT_EQ(at_client.stream->Write(parts.data(), parts.size()).bytes, 12'800u);
  EXPECT_EQ(raw_client->writes(), before + 1);
  EXPECT_LT(raw_client->unread(), 12'800u + 100u);  // one record
}

TEST_F(TlsTest, AnEndWithGoodbyeIsTheEndAndOneWithoutIsAnError) {
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  Write(*at_client.stream, "last");
  at_client.stream->ShutdownWrite();
  EXPECT_EQ(Read(*at_server.stream), "last");
  EXPECT_EQ(Read(*at_server.stream), "<end>");
  Write(*at_server.stream, "more");
  raw_server->ShutdownWrite();
  EXPECT_EQ(Read(*at_client.stream), "more");
  EXPECT_EQ(Read(*at_client.stream), "<error " + std::to_string(ECONNRESET) + ">");
  EXPECT_THAT(at_client.stream->Problem(), HasSubstr("close_notify"));
}

TEST_F(TlsTest, SessionsResumeAndNotUnderAnotherTrust) {
  Trust();
  client_has_certificate = true;
  for (TlsVersion version : {TlsVersion::k12, TlsVersion::k13}) {
    listener.version_min = listener.version_max = version;
    listener.allowed_names = {"spiffe://d/*"};
    MakeContexts();
    for (bool resumed : {false, true}) {
      Connect();
      ASSERT_NO_FATAL_FAILURE(ExpectConnected());
      Read(*at_client.stream);  // tickets
      EXPECT_EQ(at_server.stream->peer().resumed, resumed);
      EXPECT_EQ(at_server.stream->peer().names.Best(), "spiffe://d/c");
    }
    listener.allowed_names = {"spiffe://d/other"};  // the client keeps its sessions, the ticket keys stay
    auto kept = client_context;
    MakeContexts();
    client_context = kept;
    Connect();
    EXPECT_EQ(at_server.stream, nullptr);
    EXPECT_EQ(at_server.failure, TlsFailure::kName);
  }
}

TEST_F(TlsTest, AServerOfAnotherAuthorityOrNameIsRefused) {
  TlsCert other = MakeCert({.common_name = "other", .authority = true});
  trusted_by_client = &other;
  MakeContexts();
  Connect();
  EXPECT_EQ(at_client.failure, TlsFailure::kCertificate);
  EXPECT_THAT(at_client.detail, HasSubstr("issuer certificate"));
  EXPECT_EQ(at_server.failure, TlsFailure::kAlert) << at_server.detail;
  trusted_by_client = &ca;
  cluster.server_name = "b.example.com";
  MakeContexts();
  Connect();
  EXPECT_EQ(at_client.failure, TlsFailure::kName) << at_client.detail;
  cluster.server_name = "";  // then the address
  MakeContexts();
  Connect();
  EXPECT_EQ(at_client.failure, TlsFailure::kName) << at_client.detail;
  cluster.allowed_names = {"spiffe://d/s"};
  MakeContexts();
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  cluster = {};
  cluster.server_name = "a.example.com";
  own = MakeCert({.common_name = "s", .names = "DNS:a.example.com", .from = -7200, .until = -3600}, &ca);
  MakeContexts();
  Connect();
  EXPECT_EQ(at_client.failure, TlsFailure::kCertificate);
  EXPECT_THAT(at_client.detail, HasSubstr("expired"));
}

TEST_F(TlsTest, AClientWithoutACertificateOrWithAnotherNameIsRefused) {
  Trust();
  MakeContexts();
  Connect();
  EXPECT_EQ(at_server.failure, TlsFailure::kNoCertificate) << at_server.detail;
  client_has_certificate = true;
  listener.allowed_names = {"spiffe://d/other"};
  MakeContexts();
  Connect();
  EXPECT_EQ(at_server.failure, TlsFailure::kName);
  EXPECT_THAT(at_server.detail, HasSubstr("spiffe://d/c"));
}

TEST_F(TlsTest, WithoutH2ThereIsNoConnection) {
  for (TlsVersion version : {TlsVersion::k12, TlsVersion::k13}) {
    listener.version_min = listener.version_max = version;
    for (const std::string& offer : {std::string("\x08http/1.1"), std::string("\x03h2c"), std::string()}) {
      MakeContexts();
      SSL_CTX_set_alpn_protos(client_context->native(), reinterpret_cast<const unsigned char*>(offer.data()),
                              static_cast<unsigned>(offer.size()));
      Connect();
      EXPECT_EQ(at_server.failure, TlsFailure::kNoAlpn) << at_server.detail;
      EXPECT_EQ(at_client.failure, TlsFailure::kNoAlpn) << at_client.detail;  // by the server's alert
    }
    MakeContexts();
    SSL_CTX_set_alpn_select_cb(server_context->native(), nullptr, nullptr);  // a server that does not know ALPN
    Connect();
    EXPECT_EQ(at_client.failure, TlsFailure::kNoAlpn) << at_client.detail;
  }
}

TEST_F(TlsTest, AFullTransportIsToldAndItsBytesGoWithoutBeingAsked) {
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  const std::string text(200'000, 'x');
  size_t sent = 0;
  while (const size_t n = Write(*at_client.stream, text)) sent += n;
  EXPECT_EQ(sent, TlsStream::kBatchBytes);  // the transport has 64 KiB, and records are larger than their text
  Waits waits;
  at_client.stream->WaitWritable(waits);
  time.Run();
  EXPECT_EQ(waits.writable, 0);
  size_t got = 0;
  while (got < sent) {
    got += Read(*at_server.stream, 10'000'000).size();
    time.Run();
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(waits.writable, 1);
  EXPECT_EQ(Write(*at_client.stream, "y"), 1u);
}

TEST_F(TlsTest, CancelledOrClosedNothingIsTold) {
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  Waits waits;
  at_client.stream->WaitReadable(waits);
  at_client.stream->WaitWritable(waits);
  at_client.stream->Close();
  at_client.stream->Close();
  time.Run();
  EXPECT_EQ(waits.readable + waits.writable, 0);
  EXPECT_EQ(Read(*at_client.stream), "<end>");
  Connect();
  auto pair = MemoryStream::Make(time.worker, "client", "server");
  bool told = false;
  auto cancelled =
      std::make_unique<TlsHandshake>(time.worker, std::move(pair.far), server_context,
                                     time.worker.now() + std::chrono::seconds(5), [&](TlsOutcome) { told = true; });
  cancelled.reset();
  time.clock.Advance(std::chrono::seconds(6));
  time.Run();
  EXPECT_FALSE(told);
}

TEST_F(TlsTest, ASilentPeerMeetsTheDeadlineAndGarbageIsToldAtOnce) {
  MakeContexts();
  auto pair = MemoryStream::Make(time.worker, "client", "server");
  TlsHandshake silent(time.worker, std::move(pair.far), server_context, time.worker.now() + std::chrono::seconds(5),
                      [this](TlsOutcome o) { at_server = std::move(o); });
  time.clock.Advance(std::chrono::milliseconds(4999));
  time.Run();
  EXPECT_EQ(at_server.failure, TlsFailure::kNone);
  time.clock.Advance(std::chrono::milliseconds(2));
  time.Run();
  EXPECT_EQ(at_server.failure, TlsFailure::kTimeout);
  auto garbage = MemoryStream::Make(time.worker, "client", "server");
  Write(*garbage.near, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  TlsHandshake loud(time.worker, std::move(garbage.far), server_context, time.worker.now() + std::chrono::seconds(5),
                    [this](TlsOutcome o) { at_server = std::move(o); });
  time.Run();
  EXPECT_EQ(at_server.failure, TlsFailure::kProtocol) << at_server.detail;
}

}  // namespace
}  // namespace sluice::net
