#include "admin/tls_files.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "admin/certificate_view.h"
#include "base/log.h"
#include "net/tls_context.h"

namespace sluice::admin {
namespace {

base::Result<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(TlsFiles::kFileBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) {
    return base::MakeError(base::ErrorKind::kIo, path + ": cannot be read: " + std::strerror(errno));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > TlsFiles::kFileBytesMax) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, path + ": is larger than 1 MiB");
  }
  // gRPC takes text that ends at its first NUL: what is behind it would be checked here and not be used there.
  if (text.find('\0') != std::string::npos) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, path + ": has a NUL in it; a PEM file is text");
  }
  return text;
}

}  // namespace

// gRPC's credentials that ask before each handshake. Its C++ API knows only such as never change, or those of the file
// watcher; the C API has the question.
class TlsFiles::Fetcher final : public grpc::ServerCredentials {
 public:
  explicit Fetcher(TlsFiles& files)
      : credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &Fetch, &files))) {}
  ~Fetcher() override { grpc_server_credentials_release(credentials_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** out) {
    TlsFiles& files = *static_cast<TlsFiles*>(self);
    std::lock_guard lock(files.mutex_);
    if (files.handed_out_ == files.version_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{files.pem_.key.c_str(), files.pem_.certificate.c_str()};
    *out = grpc_ssl_server_certificate_config_create(files.pem_.client_ca.c_str(), &pair, 1);
    files.handed_out_ = files.version_;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

base::Result<std::unique_ptr<TlsFiles>> TlsFiles::Open(TlsPaths paths) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(std::move(paths)));
  base::Result<Pem> pem = files->Read();
  if (!pem.ok()) return pem.error();
  base::Result<Shown> shown = files->Check(*pem);
  if (!shown.ok()) return shown.error();
  files->shown_ = std::move(*shown);
  files->seen_ = files->pem_ = std::move(*pem);
  return files;
}

TlsFiles::~TlsFiles() = default;

base::Result<TlsFiles::Pem> TlsFiles::Read() const {
  Pem pem;
  for (auto [path, text] : {std::pair(&paths_.certificate, &pem.certificate), std::pair(&paths_.key, &pem.key),
                            std::pair(&paths_.client_ca, &pem.client_ca)}) {
    base::Result<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.error();
    *text = std::move(*read);
  }
  return pem;
}

// The data path's check: gRPC would say nothing but that a handshake has failed.
base::Result<TlsFiles::Shown> TlsFiles::Check(const Pem& pem) const {
  net::ListenerTlsOptions options;
  options.certificate = paths_.certificate;
  options.key = paths_.key;
  options.ca = paths_.client_ca;
  const net::TlsContents contents{
      {paths_.certificate, pem.certificate}, {paths_.key, pem.key}, {paths_.client_ca, pem.client_ca}};
  auto context = net::TlsContext::ForListener(options, contents, nullptr);
  if (!context.ok()) return context.error();
  return Shown{(*context)->certificate(), (*context)->trusted()};
}

void TlsFiles::Refresh() {
  std::lock_guard lock(refresh_mutex_);
  base::Result<Pem> pem = Read();
  if (!pem.ok()) {
    read_ = false;
    return Complain(pem.error().detail);
  }
  if (*pem == seen_ && read_) return;  // taken or complained about already
  read_ = true;
  seen_ = *pem;
  base::Result<Shown> shown = Check(*pem);
  if (!shown.ok()) return Complain(shown.error().detail);
  std::lock_guard handshakes(mutex_);
  problem_.clear();
  if (*pem == pem_) {
    SLUICE_LOG_INFO("admin.tls: the files are good again, and as they were");
    return;
  }
  pem_ = std::move(*pem);
  shown_ = std::move(*shown);
  ++version_;
  SLUICE_LOG_INFO("admin.tls: new connections get what {} has now", paths_.certificate);
}

void TlsFiles::Complain(const std::string& problem) {
  {
    std::lock_guard lock(mutex_);
    if (problem == problem_) return;
    problem_ = problem;
  }
  SLUICE_LOG_ERROR("admin.tls: what was there stays in use: {}", problem);
}

std::vector<CertificateView> TlsFiles::List() const {
  std::vector<CertificateView> out;
  const int64_t now = WallSeconds();
  std::lock_guard lock(mutex_);
  out.push_back(ViewOf(shown_.own, paths_.certificate, "own", now));
  for (const net::CertificateInfo& trusted : shown_.trusted)
    out.push_back(ViewOf(trusted, paths_.client_ca, "trusted", now));
  for (CertificateView& view : out) {
    view.used_by = "admin";
    view.error = problem_;
  }
  return out;
}

std::shared_ptr<grpc::ServerCredentials> TlsFiles::Credentials() { return std::make_shared<Fetcher>(*this); }

}  // namespace sluice::admin
