#include "hostile/control_plane.h"

#include <utility>

namespace sluice::hostile {
namespace {

constexpr int kAnswersMax = 100;  // in a second
constexpr std::string_view kClusterUrl = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

// A field of protobuf with a length, below 128 bytes.
std::string Text(int number, std::string_view bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + std::string(bytes);
}

}  // namespace

struct ControlPlane::Connection {
  std::unique_ptr<FramePeer> peer;
};

ControlPlane::ControlPlane(Loop& loop, std::function<void(const std::string&)> report)
    : loop_(loop), report_(std::move(report)), listener_(loop, [this](int fd) { Accepted(fd); }) {}

ControlPlane::~ControlPlane() = default;

void ControlPlane::Accepted(int fd) {
  auto connection = std::make_shared<Connection>();
  Connection* const raw = connection.get();
  raw->peer = std::make_unique<FramePeer>(
      loop_, h2::Preface().size(),
      [raw](uint32_t stream, const Fields&, bool) {
        raw->peer->Send(h2::Headers(stream, RawBlock({{":status", "200"}, {"content-type", "application/grpc"}})));
      },
      [this, raw](const h2::Frame& frame) {
        if (frame.type == h2::kSettings && !frame.has(h2::kAck)) raw->peer->Send(h2::SettingsAck());
        if (frame.type == h2::kPing && !frame.has(h2::kAck))
          raw->peer->Send(h2::RawFrame(h2::kPing, h2::kAck, 0, frame.payload));
        if (frame.type == h2::kData && !frame.payload.empty()) Asked(*raw, frame.stream);
        if (frame.type == h2::kData && !frame.payload.empty()) {
          const auto size = static_cast<uint32_t>(frame.payload.size());
          raw->peer->Send(h2::WindowUpdate(0, size) + h2::WindowUpdate(frame.stream, size));
        }
      },
      [this, raw](const std::string&) {
        loop_.After(0, [kept = connections_[raw]] {});
        connections_.erase(raw);
      });
  connections_.emplace(raw, std::move(connection));
  raw->peer->wire().Take(fd);
  raw->peer->Send(h2::Settings());
}

void ControlPlane::Asked(Connection& connection, uint32_t stream) {
  const double now = Loop::Now();
  if (now - second_ > 1000) {
    second_ = now;
    in_second_ = 0;
  }
  if (++in_second_ == kAnswersMax)
    report_("a control plane is answered without a pause: a resource that was refused before");
  // DiscoveryResponse: version_info, resources, type_url, nonce. The resource's bytes are no message.
  const std::string response = Text(1, "1") + Text(2, Text(1, kClusterUrl) + Text(2, "\xff\xff\xff")) +
                               Text(4, kClusterUrl) + Text(5, std::to_string(++nonce_));
  connection.peer->Send(h2::Data(stream, h2::Message(response)));
}

}  // namespace sluice::hostile
