#include "tracing/otlp_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <opentelemetry/proto/collector/trace/v1/trace_service.pb.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace sluice::tracing {
namespace {

constexpr char kMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

// The threads that tell of an end belong to the channels that use them: the destructor of the last one joins them. It
// may run on one of them, behind an export that outlived its client, and a thread cannot join itself. So one channel,
// whose only call has failed at once, uses them for as long as the process lives.
void KeepReactionThreads() {
  struct Kept {
    Kept() {
      stub.UnaryCall(&context, "/none", {}, &nothing, &answer, [](grpc::Status) {});
    }
    grpc::ClientContext context;
    grpc::Slice empty;
    grpc::ByteBuffer nothing{&empty, 1}, answer;
    grpc::GenericStub stub{grpc::CreateChannel("none", /*creds=*/nullptr)};  // fails each call, and never connects
  };
  [[maybe_unused]] static Kept* volatile kept = new Kept;  // volatile: it is there, and LeakSanitizer finds it
}

std::shared_ptr<grpc::Channel> Open(const std::string& target) {
  KeepReactionThreads();
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a sidecar's way is its configuration's, not its environment's
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, static_cast<int>(OtlpClient::kReconnectMin.count()));
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(OtlpClient::kReconnectMax.count()));
  args.SetMaxReceiveMessageSize(OtlpClient::kResponseBytesMax);
  args.SetUserAgentPrefix("sluice");
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), args);
}

// OTLP 1.5, "Failures": those that a later try may mend. RESOURCE_EXHAUSTED only if the collector says when, in details
// that are not read here: it has too much already.
bool MayRetry(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return true;
    default:
      return false;
  }
}

// Bytes that the library may read for as long as it likes.
grpc::ByteBuffer BufferOf(std::shared_ptr<const ReverseBuffer> request) {
  const std::string_view bytes = request->view();
  auto* const owner = new std::shared_ptr<const ReverseBuffer>(std::move(request));
  const grpc::Slice slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* held) { delete static_cast<std::shared_ptr<const ReverseBuffer>*>(held); }, owner);
  return {&slice, 1};
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

}  // namespace

struct OtlpClient::Channel {
  explicit Channel(const std::string& target) : channel(Open(target)), stub(channel) {}
  const std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
};

// Until the export has ended, which may be after the client.
struct OtlpClient::Call {
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  grpc::Status status;             // published by `ended`
  std::atomic<bool> ended{false};  // set on a thread of gRPC's
};

OtlpClient::OtlpClient(const std::string& target, std::function<void()> done)
    : done_(std::move(done)), channel_(std::make_unique<Channel>(target)) {}

OtlpClient::~OtlpClient() { Cancel(); }

void OtlpClient::Send(std::shared_ptr<const ReverseBuffer> request, std::chrono::milliseconds timeout) {
  call_ = std::make_shared<Call>();
  call_->request = BufferOf(std::move(request));
  // A span, which gRPC adds to its own clock.
  call_->context.set_deadline(gpr_time_from_millis(timeout.count(), GPR_TIMESPAN));
  channel_->stub.UnaryCall(&call_->context, kMethod, {}, &call_->request, &call_->response,
                           [call = call_, done = done_](grpc::Status status) {
                             call->status = std::move(status);
                             call->ended.store(true, std::memory_order_release);
                             done();
                           });
}

std::optional<OtlpClient::Result> OtlpClient::TakeResult() {
  if (call_ == nullptr || !call_->ended.load(std::memory_order_acquire)) return std::nullopt;
  const std::shared_ptr<Call> call = std::exchange(call_, nullptr);
  Result result;
  result.ok = call->status.ok();
  if (!result.ok) {
    result.retry = MayRetry(call->status.error_code());
    result.detail = call->status.error_message();
    return result;
  }
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse response;
  // What cannot be read says nothing against the spans: they were taken.
  if (response.ParseFromString(TextOf(call->response)) && response.has_partial_success()) {
    result.rejected = static_cast<uint64_t>(std::max<int64_t>(0, response.partial_success().rejected_spans()));
    result.detail = response.partial_success().error_message();
  }
  return result;
}

void OtlpClient::Cancel() {
  if (call_ != nullptr) call_->context.TryCancel();
}

}  // namespace sluice::tracing
