#include "handover/predecessor.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "handover/record_file.h"
#include "handover/successor.h"

namespace sluice::handover {

using base::ErrorKind;
using base::MakeError;

base::Result<std::unique_ptr<Predecessor>> Predecessor::FromEnvironment(std::string_view version) {
  const char* text = std::getenv(Successor::kVariable);
  if (text == nullptr) return std::unique_ptr<Predecessor>();
  const std::string value(text);
  ::unsetenv(Successor::kVariable);
  int fd = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), fd);
  if (error != std::errc() || end != value.data() + value.size() || fd < 0) {
    std::string message = Successor::kVariable;
    message.append(" is \"").append(ToText(value, 100));
    message += "\": it is for the daemon's own use, and has a descriptor";
    return MakeError(ErrorKind::kInvalidArgument, std::move(message));
  }
  auto socket = MessageSocket::Adopt(fd);
  if (!socket) return socket.error();
  return Meet(Channel(std::move(*socket)), version, kFormat);
}

base::Result<std::unique_ptr<Predecessor>> Predecessor::Meet(Channel channel, std::string_view version,
                                                             uint32_t format) {
  std::unique_ptr<Predecessor> out(new Predecessor(std::move(channel)));
  v1::Message hello;
  hello.mutable_hello()->set_format(format);
  hello.mutable_hello()->set_version(ToText(version));
  hello.mutable_hello()->set_pid(static_cast<uint64_t>(::getpid()));
  if (auto sent = out->channel_.Send(hello); !sent) return sent.error();
  auto begin = out->Expect(v1::Message::kBegin);
  if (!begin) return begin.error();
  out->begin_ = begin->message.begin();
  if (begin->descriptors.size() != static_cast<size_t>(out->begin_.sockets_size()) + 1)
    return MakeError(ErrorKind::kInvalidArgument, "the other process has not sent the sockets that it names");
  out->lists_ = std::move(begin->descriptors[0]);
  for (size_t i = 1; i < begin->descriptors.size(); ++i) out->sockets_.push_back(std::move(begin->descriptors[i]));
  return out;
}

base::Result<Channel::Received> Predecessor::Expect(v1::Message::KindCase kind) {
  auto received = channel_.Receive(kWaitMax);
  if (!received) return received.error();
  if (!*received) return MakeError(ErrorKind::kIo, "the other process says nothing");
  const v1::Message& message = (*received)->message;
  if (message.kind_case() == v1::Message::kFailed)
    return MakeError(ErrorKind::kIo, "the other process goes on: " + ToText(message.failed().why()));
  if (message.kind_case() != kind)
    return MakeError(ErrorKind::kInvalidArgument, "the other process says something else than what is due");
  return std::move(**received);
}

base::Status Predecessor::Ready() {
  v1::Message ready;
  ready.mutable_ready();
  if (auto sent = channel_.Send(ready); !sent) return sent;
  auto take = Expect(v1::Message::kTake);
  if (!take) return take.error();
  take_ = take->message.take();
  const auto processes = static_cast<size_t>(take_.processes_size());
  if (processes == 0 || take->descriptors.size() != processes + 1)
    return MakeError(ErrorKind::kInvalidArgument, "the other process has not sent the processes that it names");
  state_ = std::move(take->descriptors[0]);
  held_ = std::move(take->descriptors[1]);
  for (size_t i = 2; i < take->descriptors.size(); ++i) processes_.push_back(std::move(take->descriptors[i]));
  return base::Ok();
}

std::vector<Channel> Predecessor::TakeChannels() {
  std::vector<Channel> out;
  for (Descriptor& process : processes_) {
    auto socket = MessageSocket::Adopt(process.Release());
    out.push_back(socket ? Channel(std::move(*socket)) : Channel());
  }
  return out;
}

Channel Predecessor::Serving() {
  v1::Message serving;
  serving.mutable_serving();
  (void)channel_.Send(serving);
  lists_ = Descriptor();
  state_ = Descriptor();
  held_ = Descriptor();
  return std::move(channel_);
}

}  // namespace sluice::handover
