#include "sluicectl/channel.h"

#include <grpcpp/grpcpp.h>

#include <fstream>

namespace sluice::ctl {
namespace {

constexpr int kAnswerBytesMax = 64 << 20;  // metrics of a large daemon
constexpr int kReconnectMs = 100;          // gRPC takes no less
constexpr size_t kPemBytesMax = 1 << 20;   // as the daemon's own limit

base::Result<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const TlsArgs& tls) {
  if (!tls.any()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  for (auto [flag, path, text] : {std::tuple{"--tls-ca", &tls.ca, &options.pem_root_certs},
                                  std::tuple{"--tls-cert", &tls.certificate, &options.pem_cert_chain},
                                  std::tuple{"--tls-key", &tls.key, &options.pem_private_key}}) {
    base::Result<std::string> pem = ReadFile(flag, *path, kPemBytesMax);
    if (!pem.ok()) return pem.error();
    // gRPC says nothing but that a handshake has failed.
    if (pem->find("-----BEGIN ") == std::string::npos) {
      return base::MakeError(base::ErrorKind::kInvalidArgument, std::string(flag) + ": " + *path + " is no PEM file");
    }
    *text = std::move(*pem);
  }
  return grpc::SslCredentials(options);
}

}  // namespace

base::Result<std::string> ReadFile(std::string_view flag, const std::string& path, size_t bytes_max) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(bytes_max + 1, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream.is_open() || stream.bad()) {
    return base::MakeError(base::ErrorKind::kIo, std::string(flag) + ": cannot read " + path);
  }
  bytes.resize(static_cast<size_t>(stream.gcount()));
  if (bytes.size() > bytes_max) {
    return base::MakeError(base::ErrorKind::kTooLarge, std::string(flag) + ": " + path + " is larger than 1 MiB");
  }
  return bytes;
}

base::Result<std::shared_ptr<grpc::Channel>> MakeChannel(const Args& args) {
  auto credentials = MakeCredentials(args.tls);
  if (!credentials.ok()) return credentials.error();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
  // A daemon is not behind the http_proxy of the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (args.command == Command::kWaitReady) {  // which may be there before the daemon
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  }
  if (!args.tls.server_name.empty()) arguments.SetSslTargetNameOverride(args.tls.server_name);
  return grpc::CreateCustomChannel(args.address, *credentials, arguments);
}

}  // namespace sluice::ctl
