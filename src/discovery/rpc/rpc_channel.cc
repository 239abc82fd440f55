#include "discovery/rpc/rpc_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include "base/ascii.h"

namespace sluice::discovery {
namespace {

// The threads that run reactions belong to the channels that use them: the destructor of the last one joins them. It
// may run on one of them, behind the OnDone of a stream that outlived its owner, and a thread cannot join itself. So
// one channel, whose only call has failed at once, uses them for as long as the process lives.
void KeepReactionThreads() {
  struct Kept final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    Kept() {
      stub.PrepareBidiStreamingCall(&context, "/none", {}, this);
      StartCall();
    }
    void OnDone(const grpc::Status&) override {}
    grpc::ClientContext context;
    grpc::GenericStub stub{grpc::CreateChannel("none", /*creds=*/nullptr)};  // fails each call, and never connects
  };
  [[maybe_unused]] static Kept* volatile kept = new Kept;  // volatile: it is there, and LeakSanitizer finds it
}

std::shared_ptr<grpc::Channel> Open(const RpcTarget& target) {
  KeepReactionThreads();
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a sidecar's way is its configuration's, not its environment's
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(target.keepalive.count()));
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(RpcChannel::kPingTimeout.count()));
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The least back-off is also the time that a connection may take.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 1000);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(RpcChannel::kConnectTimeout.count()));
  args.SetMaxReceiveMessageSize(static_cast<int>(RpcChannel::kMessageBytesMax));
  if (!target.tls) return grpc::CreateCustomChannel(target.address, grpc::InsecureChannelCredentials(), args);
  if (!target.server_name.empty()) args.SetSslTargetNameOverride(base::HostAsNamed(target.server_name));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = target.ca;
  options.pem_cert_chain = target.certificate;
  options.pem_private_key = target.key;
  return grpc::CreateCustomChannel(target.address, grpc::SslCredentials(options), args);
}

}  // namespace

RpcChannel::RpcChannel(const RpcTarget& target) : channel_(Open(target)) {}

RpcChannel::~RpcChannel() = default;

bool RpcChannel::connected() const { return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY; }

}  // namespace sluice::discovery
