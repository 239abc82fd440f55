// TlsFixture: certificates for the admin RPC, and clients with other ones.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>

#include "admin/admin_server.h"
#include "fake_backend.h"
#include "support/tls_certificates.h"

namespace sluice::admin {

class TlsFixture : public testing::Test {
 protected:
  // Authorities: of the daemon's certificate, of clients, and one that is not trusted.
  test::TlsCert daemon_ca_ = test::MakeCert({"daemon ca", "", true});
  test::TlsCert client_ca_ = test::MakeCert({"client ca", "", true});
  test::TlsCert strange_ca_ = test::MakeCert({"client ca", "", true});
  test::TlsCert ops_ = test::MakeCert({"", "URI:spiffe://corp/ops"}, &client_ca_);
  test::TlsCert watcher_ = test::MakeCert({"watcher", ""}, &client_ca_);
  test::TlsCert stranger_ = test::MakeCert({"", "URI:spiffe://corp/other"}, &client_ca_);

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }

  // A certificate of the daemon with this common name, for Contents().
  void MakeDaemon(const std::string& common_name) {
    daemon_ = test::MakeCert({common_name, "DNS:admin.test,IP:127.0.0.1"}, &daemon_ca_);
  }

  net::TlsContents Contents() const {
    return {{"cert.pem", daemon_.certificate_pem}, {"key.pem", daemon_.key_pem}, {"ca.pem", trusted_}};
  }

  AdminSecurity Security() {
    MakeDaemon("first");
    return {std::make_shared<GrpcCredentials>(Contents()), {{"CN=watcher"}, {"spiffe://corp/ops"}}};
  }

  // A connection of its own; `identity` null: without a certificate.
  std::shared_ptr<grpc::Channel> Connect(const std::string& address, const test::TlsCert* identity) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = daemon_ca_.certificate_pem;
    if (identity != nullptr) {
      options.pem_cert_chain = identity->certificate_pem;
      options.pem_private_key = identity->key_pem;
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
  }

  TempDir dir_;
  test::TlsCert daemon_;
  std::string trusted_ = client_ca_.certificate_pem;  // by the daemon
};

}  // namespace sluice::admin
