// TLS by real clients and servers: calls go through, and each way in which a handshake must fail fails with its reason.
#include <gmock/gmock.h>

#include "support/raw_peer.h"
#include "support/tls_fixture.h"

namespace sluice::integration {
namespace {

using test::MakeCert;
using ::testing::HasSubstr;

TEST_F(Tls, AllKindsOfCallsGoThroughWithCertificatesOnAllSides) {
  StartBackend(backend_certificate, /*ask=*/true);
  config.listener = {ListenerKeys(ClientCa() + ", allowed_names: [spiffe://example.com/app/*]")};
  config.cluster = {ClusterKeys(OwnCertificate())};
  config.top.push_back("access_log: {format: json, path: " + files.File("access.log") + "}");
  config.top.push_back("forwarding: {x_forwarded: true}");
  StartProxy();
  for (Kind kind : kKinds) {
    const Reply reply = CallOnce(Credentials(ca, &client), kind);
    ASSERT_TRUE(reply.status.ok()) << ToString(kind) << ": " << Describe(reply.status);
    if (kind == Kind::kClientStream) continue;  // its answer is a count
    for (const auto& message : reply.messages) EXPECT_EQ(message.payload(), "hello");
  }
  EXPECT_EQ(Handshakes("listener", "ok"), 4);
  EXPECT_GE(Handshakes("cluster", "ok"), 1);
  // The client is known by its certificate.
  EXPECT_TRUE(WaitUntil([&] {
    return files.Read("access.log").find("\"client\":\"spiffe://example.com/app/one\"") != std::string::npos;
  }));
}

// One message of a megabyte in each direction: many records, and flow control above them.
TEST_F(Tls, LargeMessagesGoThroughWhole) {
  StartBackend(backend_certificate);
  config.listener = {ListenerKeys()};
  config.cluster = {ClusterKeys()};
  StartProxy();
  auto stub = echo::v1::Echo::NewStub(Connect(proxy->target(), Credentials(ca)));
  echo::v1::EchoRequest request;
  std::string payload(3'000'000, 'x');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>('a' + i % 23);
  request.set_payload(payload);
  grpc::ClientContext context;
  const Reply reply = Call(stub.get(), Kind::kBidiStream, &context, request, 4);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  ASSERT_EQ(reply.messages.size(), 4u);
  for (const auto& message : reply.messages) EXPECT_EQ(message.payload(), payload);
}

class Refused : public Tls {
 protected:
  Refused() {
    StartPlainBackend();
    config.listener = {ListenerKeys(ClientCa() + ", allowed_names: [spiffe://example.com/app/*]")};
    StartProxy();
  }
  // A client with these is refused and counted under `reason`; a good one beside it is served.
  void Expect(std::shared_ptr<grpc::ChannelCredentials> credentials, const std::string& reason) {
    const Reply reply = CallOnce(std::move(credentials));
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::UNAVAILABLE) << Describe(reply.status);
    EXPECT_TRUE(WaitUntil([&] { return Handshakes("listener", reason) >= 1; }))
        << proxy->server().backend().RenderMetrics();
    const Reply good = CallOnce(Credentials(ca, &client));
    EXPECT_TRUE(good.status.ok()) << Describe(good.status);
  }
};

TEST_F(Refused, AClientWithoutACertificate) { Expect(Credentials(ca), "no_certificate"); }
TEST_F(Refused, AClientOfAnotherAuthority) {
  const auto stranger = MakeCert({.common_name = "x", .names = "URI:spiffe://example.com/app/one"}, &other_ca);
  Expect(Credentials(ca, &stranger), "certificate");
}
TEST_F(Refused, AClientWhoseCertificateIsOver) {
  const auto late = MakeCert({.common_name = "x", .names = "URI:spiffe://example.com/app/one", .until = -60}, &ca);
  Expect(Credentials(ca, &late), "certificate");
}
TEST_F(Refused, AClientWhoseNameIsNotAllowed) {
  const auto other = MakeCert({.common_name = "x", .names = "URI:spiffe://example.com/other"}, &ca);
  Expect(Credentials(ca, &other), "name");
}
// gRPC's client ends the connection without an alert.
TEST_F(Refused, AClientThatDoesNotTrustUs) { Expect(Credentials(other_ca, &client), "closed"); }
TEST_F(Refused, AClientInPlainText) { Expect(nullptr, "protocol"); }

// The status of a call through a proxy whose cluster has these keys.
class Upstream : public Tls {
 protected:
  void ExpectFailure(const std::string& keys, const std::string& counted, const std::string& text) {
    config.cluster = {keys};
    StartProxy();
    const Reply reply = CallOnce(nullptr);
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::UNAVAILABLE) << Describe(reply.status);
    EXPECT_THAT(reply.status.error_message(), HasSubstr(text));
    EXPECT_EQ(reply.Trailer("sluice-reason"), "connect_failed");
    EXPECT_GE(Handshakes("cluster", counted), 1);
    EXPECT_EQ(Handshakes("cluster", "ok"), 0);
    EXPECT_EQ(backend->service().calls(), 0u);
  }
};

TEST_F(Upstream, OfAnotherAuthorityItIsNotTrusted) {
  StartBackend(MakeCert({.common_name = "backend", .names = "DNS:backend.example.com"}, &other_ca));
  ExpectFailure(ClusterKeys(), "certificate", "the peer's certificate: ");
}
TEST_F(Upstream, OfAnotherNameItIsNotTrusted) {
  StartBackend(MakeCert({.common_name = "backend.example.com", .names = "DNS:other.example.com"}, &ca));
  ExpectFailure(ClusterKeys(), "name", "the peer's certificate is for another name");
}
TEST_F(Upstream, WithoutServerNameTheAddressMustStandInTheCertificate) {
  StartBackend(backend_certificate);
  ExpectFailure("tls: {ca: " + files.File("ca.crt") + "}", "name", "the peer's certificate is for another name");
}
TEST_F(Upstream, InPlainTextItGetsNothing) {
  StartPlainBackend();
  ExpectFailure(ClusterKeys(), "protocol", "TLS with 127.0.0.1:");
}
TEST_F(Upstream, TheSystemsAuthoritiesDoNotVouchForOurs) {
  StartBackend(backend_certificate);
  ExpectFailure("tls: {ca: system, server_name: backend.example.com}", "certificate", "the peer's certificate: ");
}

// In TLS 1.3 the client is done before the server has looked at its certificate: the alert comes behind the handshake,
// and counts as a failed connection all the same.
TEST_F(Upstream, ThatWantsACertificateOfUsGetsNoCalls) {
  StartBackend(backend_certificate, /*ask=*/true);
  config.cluster = {ClusterKeys()};
  StartProxy();
  const Reply reply = CallOnce(nullptr);
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::UNAVAILABLE) << Describe(reply.status);
  EXPECT_GE(proxy->Metric("sluice_upstream_connect_failures_total"), 1);
  EXPECT_EQ(backend->service().calls(), 0u);
}

TEST_F(Upstream, ByItsAddressOrAnAllowedNameItIsFound) {
  StartBackend(MakeCert({.common_name = "b", .names = "IP:127.0.0.1,URI:spiffe://example.com/users"}, &ca));
  config.cluster = {"tls: {ca: " + files.File("ca.crt") + "}"};
  StartProxy();
  EXPECT_TRUE(CallOnce(nullptr).status.ok());
  config.cluster = {"tls: {ca: " + files.File("ca.crt") + ", allowed_names: [spiffe://example.com/users]}"};
  proxy = std::make_unique<Proxy>(config);
  EXPECT_TRUE(CallOnce(nullptr).status.ok());
}

// Clients that connect and send nothing: within handshakes_max they delay no other client, and they are closed in time.
TEST_F(Tls, SilentClientsDelayNoOtherAndAreClosed) {
  StartPlainBackend();
  config.listener = {ListenerKeys(", handshake_timeout: 1s, handshakes_max: 20")};
  StartProxy();
  std::vector<RawPeer> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(RawPeer::Connect(proxy->port()));
  for (int i = 0; i < 5; ++i) {
    const Reply reply = CallOnce(Credentials(ca));
    EXPECT_TRUE(reply.status.ok()) << Describe(reply.status);
  }
  for (RawPeer& peer : silent) EXPECT_EQ(peer.Rest(), "");
  EXPECT_TRUE(WaitUntil([&] { return Handshakes("listener", "timeout") == 10; }));
}

TEST_F(Tls, BeyondHandshakesMaxConnectionsWaitAndAreServedInTheEnd) {
  StartPlainBackend();
  config.listener = {ListenerKeys(", handshake_timeout: 1s, handshakes_max: 2")};
  StartProxy();
  std::vector<RawPeer> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(RawPeer::Connect(proxy->port()));
  const Reply reply = CallOnce(Credentials(ca));
  EXPECT_TRUE(reply.status.ok()) << Describe(reply.status);
  // The silent clients before it had to end first: at most two handshakes are under way at once.
  EXPECT_GE(Handshakes("listener", "timeout"), 2);
  for (RawPeer& peer : silent) EXPECT_EQ(peer.Rest(), "");
}

TEST_F(Tls, ADrainEndsHandshakesUnderWay) {
  StartPlainBackend();
  config.listener = {ListenerKeys(", handshake_timeout: 10m")};
  config.top.push_back("drain_timeout: 10m");
  StartProxy();
  RawPeer silent = RawPeer::Connect(proxy->port());
  ASSERT_TRUE(CallOnce(Credentials(ca)).status.ok());  // so the other one has been accepted
  ASSERT_TRUE(proxy->server().Drain(std::nullopt, std::nullopt).ok());
  EXPECT_EQ(silent.Rest(), "");
  EXPECT_TRUE(proxy->server().WaitStopped(kLongWait));
}

}  // namespace
}  // namespace sluice::integration
