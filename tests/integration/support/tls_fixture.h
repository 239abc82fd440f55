// Tls: the fixture of tests of TLS: an authority with certificates for a client, the proxy and a backend, as files; a
// proxy with TLS on one side or both in front of a TLS backend.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sluice-echo/echo_server.h"
#include "support/echo_call.h"
#include "support/proxy.h"
#include "support/temp_dir.h"
#include "support/tls_certificates.h"
#include "support/wait_until.h"

namespace sluice::integration {

class Tls : public testing::Test {
 protected:
  Tls() {
    Write("ca", ca);
    Write("proxy", proxy_certificate);
    config.top = {"workers: 2"};
  }
  void Write(const std::string& name, const test::TlsCert& certificate) {
    // As a careful operator does: whole files, renamed into their place.
    for (const auto& [end, text] :
         {std::pair(".crt", &certificate.certificate_pem), std::pair(".key", &certificate.key_pem)}) {
      files.Write("new", *text);
      std::filesystem::rename(files.File("new"), files.File(name + end));
    }
  }
  std::string ListenerKeys(const std::string& more = "") const {
    return "tls: {certificate: " + files.File("proxy.crt") + ", key: " + files.File("proxy.key") + more + "}";
  }
  std::string ClientCa() const { return ", client_ca: " + files.File("ca.crt"); }
  std::string ClusterKeys(const std::string& more = "") const {
    return "tls: {ca: " + files.File("ca.crt") + ", server_name: backend.example.com" + more + "}";
  }
  std::string OwnCertificate() const {
    return ", certificate: " + files.File("proxy.crt") + ", key: " + files.File("proxy.key");
  }

  // A backend with a certificate of `signer`, which asks for the client's if it is to.
  void StartBackend(const test::TlsCert& certificate, bool ask = false) {
    grpc::SslServerCredentialsOptions options(ask ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                  : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_key_cert_pairs = {{certificate.key_pem, certificate.certificate_pem}};
    if (ask) options.pem_root_certs = ca.certificate_pem;
    backend = echo::EchoServer::Start("127.0.0.1:0", "echo-1", grpc::SslServerCredentials(options));
    config.endpoints = {{"echo-1", "127.0.0.1:" + std::to_string(backend->port())}};
  }
  void StartPlainBackend() {
    backend = echo::EchoServer::Start("127.0.0.1:0", "echo-1");
    config.endpoints = {{"echo-1", "127.0.0.1:" + std::to_string(backend->port())}};
  }
  void StartProxy() { proxy = std::make_unique<Proxy>(config); }

  // The authority that a client trusts, and the certificate that it shows. Null `own`: none.
  static std::shared_ptr<grpc::ChannelCredentials> Credentials(const test::TlsCert& trusted,
                                                               const test::TlsCert* own = nullptr) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = trusted.certificate_pem;
    if (own != nullptr) {
      options.pem_cert_chain = own->certificate_pem;
      options.pem_private_key = own->key_pem;
    }
    return grpc::SslCredentials(options);
  }
  // One call over a connection of its own. Never waits for a connection that fails.
  Reply CallOnce(std::shared_ptr<grpc::ChannelCredentials> credentials, Kind kind = Kind::kUnary) {
    auto stub = echo::v1::Echo::NewStub(Connect(proxy->target(), std::move(credentials)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    echo::v1::EchoRequest request;
    request.set_payload("hello");
    return Call(stub.get(), kind, &context, request, 3);
  }
  // Of the metric's series that have all these labels ('result="ok"').
  double Metric(const std::string& name, const std::vector<std::string>& labels) {
    std::istringstream lines(proxy->server().backend().RenderMetrics());
    double sum = 0;
    for (std::string line; std::getline(lines, line);) {
      bool all = line.starts_with(name + "{");
      for (const std::string& label : labels) all = all && line.find(label) != line.npos;
      if (all) sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
    }
    return sum;
  }
  double Handshakes(const std::string& side, const std::string& result) {
    return Metric("sluice_tls_handshakes_total", {"side=\"" + side + "\"", "result=\"" + result + "\""});
  }

  TempDir files;
  test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
  test::TlsCert other_ca = test::MakeCert({.common_name = "other", .authority = true});
  test::TlsCert proxy_certificate =
      test::MakeCert({.common_name = "proxy", .names = "DNS:localhost,IP:127.0.0.1"}, &ca);
  test::TlsCert backend_certificate =
      test::MakeCert({.common_name = "backend", .names = "DNS:backend.example.com"}, &ca);
  test::TlsCert client = test::MakeCert({.common_name = "client", .names = "URI:spiffe://example.com/app/one"}, &ca);
  ProxyConfig config;
  std::unique_ptr<echo::EchoServer> backend;
  std::unique_ptr<Proxy> proxy;
};

}  // namespace sluice::integration
