// TlsPair: a client and a server of TLS over a stream in memory, with the certificates and contexts they need.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/tls/handshake.h"
#include "support/manual_worker.h"
#include "support/memory_stream.h"
#include "support/tls_certificates.h"

namespace sluice::test {

class TlsPair : public ::testing::Test {
 public:
  TlsPair() {
    cluster.ca = "ca.crt";
    cluster.server_name = "a.example.com";
  }
  void Trust() { listener.ca = "ca.crt"; }
  // Contexts of the options as they are now.
  void MakeContexts() {
    net::TlsContents ours{{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}};
    for (const TlsCert& one_more : more)
      ours.more.push_back({{"m.crt", one_more.certificate_pem}, {"m.key", one_more.key_pem}});
    if (!listener.ca.empty()) ours.ca = {"ca.crt", ca.certificate_pem};
    auto made = net::TlsContext::ForListener(listener, ours, tickets);
    ASSERT_TRUE(made.ok()) << made.error().detail;
    server_context = *made;
    net::TlsContents theirs{{}, {}, {"ca.crt", trusted_by_client->certificate_pem}};
    if (client_has_certificate) {
      theirs.certificate = {"c.crt", client.certificate_pem};
      theirs.key = {"c.key", client.key_pem};
    }
    made = net::TlsContext::ForCluster(cluster, theirs);
    ASSERT_TRUE(made.ok()) << made.error().detail;
    client_context = *made;
  }
  void Connect() {
    if (server_context == nullptr) MakeContexts();
    auto pair = net::MemoryStream::Make(time.worker, "client", "server");
    raw_client = pair.near.get();
    raw_server = pair.far.get();
    if (call_bytes_max != 0) {
      raw_client->SetCallBytesMax(call_bytes_max);
      raw_server->SetCallBytesMax(call_bytes_max);
    }
    const base::TimePoint deadline = time.worker.now() + std::chrono::seconds(5);
    at_client = net::TlsOutcome();
    at_server = net::TlsOutcome();
    one = std::make_unique<net::TlsHandshake>(time.worker, std::move(pair.near), client_context,
                                              *net::Address::Parse(endpoint), deadline,
                                              [this](net::TlsOutcome o) { at_client = std::move(o); });
    two = std::make_unique<net::TlsHandshake>(time.worker, std::move(pair.far), server_context, deadline,
                                              [this](net::TlsOutcome o) { at_server = std::move(o); });
    time.Run();
  }
  void ExpectConnected() {
    ASSERT_NE(at_client.stream, nullptr) << at_client.detail;
    ASSERT_NE(at_server.stream, nullptr) << at_server.detail;
  }
  static std::string Read(net::Stream& stream, size_t capacity = 100'000) {
    std::string out(capacity, '\0');
    net::IoResult result = stream.Read(reinterpret_cast<uint8_t*>(out.data()), capacity);
    if (result.kind == net::IoResult::Kind::kWouldBlock) return "<nothing yet>";
    if (result.kind == net::IoResult::Kind::kEof) return "<end>";
    if (result.kind == net::IoResult::Kind::kError) return "<error " + std::to_string(result.error) + ">";
    return out.substr(0, result.bytes);
  }
  static size_t Write(net::Stream& stream, std::string_view text) {
    iovec part{const_cast<char*>(text.data()), text.size()};
    return stream.Write(&part, 1).bytes;
  }

  ManualWorker time;
  TlsCert ca = MakeCert({.common_name = "ca", .authority = true});
  TlsCert own = MakeCert({.common_name = "s", .names = "DNS:a.example.com,URI:spiffe://d/s"}, &ca);
  std::vector<TlsCert> more;  // the server's, besides
  TlsCert client = MakeCert({.common_name = "c", .names = "URI:spiffe://d/c"}, &ca);
  const TlsCert* trusted_by_client = &ca;
  bool client_has_certificate = false;
  std::string endpoint = "10.0.0.1:1";
  size_t call_bytes_max = 0;
  std::shared_ptr<net::TlsTicketKeys> tickets = std::make_shared<net::TlsTicketKeys>();
  net::ListenerTlsOptions listener;
  net::ClusterTlsOptions cluster;
  std::shared_ptr<const net::TlsContext> server_context, client_context;
  net::MemoryStream *raw_client = nullptr, *raw_server = nullptr;
  net::TlsOutcome at_client, at_server;
  std::unique_ptr<net::TlsHandshake> one, two;
};

}  // namespace sluice::test
