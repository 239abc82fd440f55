#include "handover/channel.h"

#include "base/visible_text.h"

namespace sluice::handover {

std::string ToText(std::string_view value, size_t bytes_max) { return base::VisibleText(value.substr(0, bytes_max)); }

base::Status Channel::Send(const v1::Message& message, std::span<const int> descriptors) {
  return socket_.Send(message.SerializeAsString(), descriptors);
}

void Channel::Fail(const std::string& why) {
  if (!open()) return;
  v1::Message message;
  message.mutable_failed()->set_why(ToText(why));
  (void)Send(message);
}

base::Result<std::optional<Channel::Received>> Channel::Receive(std::chrono::milliseconds timeout) {
  auto raw = socket_.Receive(timeout);
  if (!raw) return raw.error();
  if (!*raw) return std::optional<Received>();
  Received out;
  if (!out.message.ParseFromString((*raw)->message))
    return base::MakeError(base::ErrorKind::kInvalidArgument,
                           "what the other process says is no message of a handover");
  out.descriptors = std::move((*raw)->descriptors);
  return std::optional(std::move(out));
}

}  // namespace sluice::handover
