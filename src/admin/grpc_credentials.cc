#include "admin/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "base/check.h"

namespace sluice::admin {

// gRPC's credentials that ask before each handshake. Its C++ API has only credentials that never change and those of
// the file watcher; the C API has the question.
class GrpcCredentials::Fetcher final : public grpc::ServerCredentials {
 public:
  explicit Fetcher(GrpcCredentials& source)
      : credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &Fetch, &source))) {}
  ~Fetcher() override { grpc_server_credentials_release(credentials_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** out) {
    GrpcCredentials& source = *static_cast<GrpcCredentials*>(self);
    std::lock_guard lock(source.mutex_);
    if (source.handed_out_ == source.version_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const net::TlsContents& contents = source.contents_;
    const grpc_ssl_pem_key_cert_pair pair{contents.key.text.c_str(), contents.certificate.text.c_str()};
    *out = grpc_ssl_server_certificate_config_create(contents.ca.text.c_str(), &pair, 1);
    source.handed_out_ = source.version_;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

base::Status GrpcCredentials::Check(const net::TlsContents& contents) {
  for (const net::TlsFile* file : {&contents.certificate, &contents.key, &contents.ca}) {
    // gRPC's texts end at their first NUL: the rest would be checked by TlsContext and not used by gRPC.
    if (file->text.find('\0') != std::string::npos) {
      return base::MakeError(base::ErrorKind::kInvalidArgument, file->name + ": has a NUL in it; a PEM file is text");
    }
  }
  return base::Ok();
}

GrpcCredentials::GrpcCredentials(net::TlsContents contents) : contents_(std::move(contents)) {
  SLUICE_CHECK(!contents_.ca.name.empty());  // without it gRPC would trust the system's authorities
}

GrpcCredentials::~GrpcCredentials() = default;

void GrpcCredentials::Put(net::TlsContents contents) {
  SLUICE_CHECK(!contents.ca.name.empty());
  std::lock_guard lock(mutex_);
  contents_ = std::move(contents);
  ++version_;
}

std::shared_ptr<grpc::ServerCredentials> GrpcCredentials::ForServer() { return std::make_shared<Fetcher>(*this); }

}  // namespace sluice::admin
