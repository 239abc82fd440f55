#include "raw_backend.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "attack/frame_socket.h"
#include "support/h2_frames.h"

namespace sluice::matrix {
namespace {

constexpr size_t kConnectionsMax = 1000;
constexpr size_t kFillersMax = 16;  // connections that fill a listen queue of length 0
constexpr uint32_t kInternalError = 2;
constexpr size_t kPrefaceBytes = 24;

enum class Fault {
  kListenFull,  // the kernel drops each SYN
  kMute,        // accepts connections and sends no byte
  kGarbage,     // sends bytes that are no HTTP/2 in answer to the first ones, and closes
  kRstStream,   // executes each call and answers RST_STREAM(INTERNAL_ERROR)
  kTcpReset,    // executes a call and resets its connection
  kGoaway,      // answers the first call of a connection, with GOAWAY behind it
  kPoison,      // answers each call after the service time; one whose x-key is "poison" resets its connection then
};
constexpr std::pair<const char*, Fault> kFaults[] = {
    {"listen_full", Fault::kListenFull}, {"mute", Fault::kMute},          {"garbage", Fault::kGarbage},
    {"rst_stream", Fault::kRstStream},   {"tcp_reset", Fault::kTcpReset}, {"goaway", Fault::kGoaway},
    {"poison", Fault::kPoison}};

using Clock = std::chrono::steady_clock;

// What a request's metadata say.
struct Request {
  uint32_t id = 0;  // x-call; 0: it has none
  bool poison = false;
};

// One connection, from when it is accepted.
class Peer {
 public:
  Peer(int fd, Fault fault, const RawOptions& options, Executions& executions)
      : fault_(fault), options_(options), executions_(executions) {
    const bool frames = fault != Fault::kMute && fault != Fault::kGarbage;
    socket_.Open(fd, frames ? kPrefaceBytes : 0);
    nghttp2_hd_inflate_new(&inflater_);
    // The window is for all requests that a run can have: they are of five bytes each.
    if (frames) out_ = h2::Settings() + h2::WindowUpdate(0, 1 << 30);
  }
  ~Peer() { nghttp2_hd_inflate_del(inflater_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  int fd() const { return socket_.fd(); }
  short Events() const {
    if (fault_ == Fault::kMute) return 0;
    return static_cast<short>(POLLIN | (out_.empty() && socket_.AllSent() ? 0 : POLLOUT));
  }

  // Answers what is due. False: the connection is over.
  bool Answer(Clock::time_point now) {
    for (; !due_.empty() && due_.front().at <= now; due_.pop_front()) {
      if (due_.front().poison) return ResetAtOnce();
      AddAnswer(due_.front().stream);
    }
    return Handle(0);
  }
  bool owes() const { return !due_.empty(); }

  // False: the connection is over.
  bool Handle(short revents) {
    if ((revents & (POLLERR | POLLNVAL)) != 0) return false;
    if ((revents & (POLLIN | POLLHUP)) != 0 && !Read()) return false;
    uint64_t sent = 0;
    if (socket_.AllSent() && !out_.empty()) socket_.Send(std::exchange(out_, {}));
    if (!socket_.AllSent() && !socket_.Write(sent)) return false;
    if (closing_ && socket_.AllSent() && out_.empty()) {
      // What the peer had sent meanwhile is still read: a close with unread bytes would reset what was sent here.
      ::shutdown(fd(), SHUT_WR);
      closing_ = false;
    }
    return true;
  }

 private:
  bool Read() {
    if (fault_ == Fault::kMute) return false;  // POLLHUP
    if (fault_ == Fault::kGarbage) return SendGarbage();
    std::vector<h2::Frame> frames;
    if (!socket_.Read(frames)) return false;
    for (const h2::Frame& frame : frames) {
      if (!Take(frame)) return false;
    }
    return true;
  }

  bool SendGarbage() {
    char bytes[4096];
    if (::recv(fd(), bytes, sizeof bytes, 0) <= 0) return false;
    if (answered_ != 0) return true;
    answered_ = 1;
    // As a frame this would be one of 4 MB of an unknown type.
    for (int i = 0; i < 16; ++i) out_ += "Garbage, not HTTP/2\n";
    closing_ = true;
    return true;
  }

  bool Take(const h2::Frame& frame) {
    if (frame.type == h2::kSettings && !frame.has(h2::kAck)) out_ += h2::SettingsAck();
    if (frame.type == h2::kPing && !frame.has(h2::kAck)) out_ += h2::RawFrame(h2::kPing, h2::kAck, 0, frame.payload);
    if (frame.type == h2::kHeaders) calls_[frame.stream] = Read(frame);
    if (frame.type == h2::kRstStream) calls_.erase(frame.stream);
    const bool ended = frame.has(h2::kEndStream) && (frame.type == h2::kHeaders || frame.type == h2::kData);
    return !ended || Execute(frame.stream);
  }

  // The request of `stream` is whole. False: the connection is over.
  bool Execute(uint32_t stream) {
    const auto call = calls_.extract(stream);
    if (fault_ == Fault::kGoaway && answered_ != 0) return true;  // above the GOAWAY's last stream: not executed
    if (call && call.mapped().id != 0) executions_.Record(call.mapped().id);
    if (fault_ == Fault::kRstStream) out_ += h2::RstStream(stream, kInternalError);
    if (fault_ == Fault::kTcpReset) return ResetAtOnce();
    if (fault_ == Fault::kPoison)
      due_.push_back({Clock::now() + std::chrono::microseconds(static_cast<int64_t>(options_.service_ms * 1000)),
                      stream, call && call.mapped().poison});
    if (fault_ == Fault::kGoaway) {
      answered_ = stream;
      AddAnswer(stream);
      out_ += h2::Goaway(stream, 0);
      closing_ = true;
    }
    return true;
  }

  void AddAnswer(uint32_t stream) {
    out_ += h2::Headers(stream, h2::Block(h2::GrpcResponse())) + h2::Data(stream, h2::Message("")) +
            h2::Headers(stream, h2::Block(h2::With(h2::GrpcTrailers(), {{"x-backend", options_.name}})),
                        h2::kEndHeaders | h2::kEndStream);
  }

  // The socket is closed next.
  bool ResetAtOnce() {
    const linger at_once{1, 0};
    ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return false;
  }

  // The client's metadata fits into one frame.
  Request Read(const h2::Frame& frame) {
    std::string_view block = frame.payload;
    if (frame.has(h2::kPadded) && !block.empty()) {
      const auto padding = static_cast<uint8_t>(block[0]);
      block = block.substr(1, block.size() - 1 - std::min<size_t>(padding, block.size() - 1));
    }
    if (frame.has(h2::kPriorityFlag)) block.remove_prefix(std::min<size_t>(5, block.size()));
    Request request;
    while (true) {
      nghttp2_nv field;
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags,
                                                  reinterpret_cast<const uint8_t*>(block.data()), block.size(), 1);
      if (used < 0) break;
      block.remove_prefix(static_cast<size_t>(used));
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        const std::string_view name(reinterpret_cast<const char*>(field.name), field.namelen);
        const std::string value(reinterpret_cast<const char*>(field.value), field.valuelen);
        if (name == "x-call") request.id = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
        request.poison |= name == "x-key" && value == "poison";
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
        nghttp2_hd_inflate_end_headers(inflater_);
        break;
      }
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && block.empty()) break;
    }
    return request;
  }

  const Fault fault_;
  const RawOptions& options_;
  Executions& executions_;
  attack::FrameSocket socket_;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string out_;                    // behind what the socket is sending
  std::map<uint32_t, Request> calls_;  // whose requests are not whole, by stream
  struct Due {
    Clock::time_point at;
    uint32_t stream;
    bool poison;
  };
  std::deque<Due> due_;    // answers that are still to be given
  uint32_t answered_ = 0;  // the stream whose answer was the connection's last
  bool closing_ = false;   // when all is sent
};

// Connections of our own until the listen queue takes no more; they stay open.
bool FillQueue(const sockaddr_in& address) {
  for (size_t i = 0; i < kFillersMax; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    pollfd wait{fd, POLLOUT, 0};
    if (::poll(&wait, 1, 100) == 0) return true;  // its SYN was dropped
  }
  return false;
}

void Serve(int listener, Fault fault, const RawOptions& options, Executions& executions) {
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<pollfd> polls;
  while (true) {
    const bool accepts = fault != Fault::kListenFull && peers.size() < kConnectionsMax;
    polls.assign({{STDIN_FILENO, POLLIN, 0}, {listener, static_cast<short>(accepts ? POLLIN : 0), 0}});
    for (const auto& peer : peers) polls.push_back({peer->fd(), peer->Events(), 0});
    const bool owes = std::any_of(peers.begin(), peers.end(), [](const auto& peer) { return peer->owes(); });
    if (::poll(polls.data(), polls.size(), owes ? 1 : -1) < 0) continue;
    char line[256];
    if (polls[0].revents != 0 && ::read(STDIN_FILENO, line, sizeof line) <= 0) return;
    for (size_t i = peers.size(); i > 0; --i) {
      Peer& peer = *peers[i - 1];
      if ((polls[i + 1].revents != 0 && !peer.Handle(polls[i + 1].revents)) ||
          (peer.owes() && !peer.Answer(Clock::now())))
        peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (polls[1].revents == 0) continue;
    if (const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0)
      peers.push_back(std::make_unique<Peer>(fd, fault, options, executions));
  }
}

}  // namespace

const char* RawFaults() { return "listen_full, mute, garbage, rst_stream, tcp_reset, goaway, poison"; }

int RunRaw(const RawOptions& options, Executions& executions) {
  const auto* const found = std::find_if(std::begin(kFaults), std::end(kFaults),
                                         [&](const auto& entry) { return options.fault == entry.first; });
  if (found == std::end(kFaults)) {
    std::fprintf(stderr, "matrix_backend: --raw %s: it is one of %s\n", options.fault.c_str(), RawFaults());
    return 2;
  }
  const Fault fault = found->second;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  socklen_t length = sizeof address;
  if (::inet_pton(AF_INET, options.host.c_str(), &address.sin_addr) != 1 ||
      ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, fault == Fault::kListenFull ? 0 : 1024) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      (fault == Fault::kListenFull && !FillQueue(address))) {
    std::perror("matrix_backend: cannot listen so");
    return 1;
  }
  std::printf("listening %s:%d\n", options.host.c_str(), ntohs(address.sin_port));
  std::fflush(stdout);
  Serve(listener, fault, options, executions);
  return 0;
}

}  // namespace sluice::matrix
