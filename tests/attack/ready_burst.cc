// ready_burst: many connections that each send many small requests at once, beside honest clients with one call each at
// a time. Prints what the honest clients waited for, alone and beside the burst. ready_burst.py runs it and judges.
//
//   ready_burst PORT CONNECTIONS REQUESTS SECONDS
//
// SECONDS: of each of both parts, at most. All stays on loopback.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "frame_socket.h"

namespace sluice::attack {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

constexpr int kHonest = 10;
constexpr std::chrono::milliseconds kBetweenHonest{10};  // from an honest client's answer to its next call
const char kPath[] = "/sluice.echo.v1.Echo/Unary";

// A request whose fields are in the peer's table (RFC 7541 6.2.1) after the first: a few bytes each.
std::string Request(uint32_t id, bool first) {
  const h2::Fields fields = h2::GrpcRequest(kPath);
  std::string block;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!first) {
      block += static_cast<char>(0x80 | (61 + fields.size() - i));
      continue;
    }
    block += '\x40';
    for (const std::string& text : {fields[i].first, fields[i].second}) block += static_cast<char>(text.size()) + text;
  }
  return h2::Headers(id, block) + h2::Data(id, h2::Message(""), h2::kEndStream);
}

int ConnectTo(uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  return fd;
}

struct Peer {
  FrameSocket socket;
  uint32_t next_id = 1;
  bool alive = true;
  bool message = false;  // honest: the call under way has its message
  Clock::time_point began{}, again{};
  bool waits = false;  // honest: a call is under way
};

class Program {
 public:
  Program(uint16_t port, int connections, int requests, int seconds)
      : port_(port), requests_(requests), limit_(seconds), burst_(static_cast<size_t>(connections)) {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  }

  int Run() {
    for (Peer& peer : honest_) Open(peer);
    Turn(Clock::now() + limit_, false);
    Print("alone");
    for (Peer& peer : burst_) Open(peer);
    Turn(Clock::now() + std::chrono::seconds(1), false);
    std::printf("connected\n");
    std::fflush(stdout);
    latencies_.clear();
    std::string wire;
    for (int i = 0; i < requests_; ++i) wire += Request(static_cast<uint32_t>(2 * i + 1), i == 0);
    for (Peer& peer : burst_) peer.socket.Send(wire);
    wanted_ = burst_.size() * static_cast<size_t>(requests_);
    const auto begin = Clock::now();
    for (Peer& peer : burst_) Write(peer);
    Turn(begin + limit_, true);
    std::printf("burst of %zu: %zu answered, %zu reset, %zu connections lost, %.1f s\n", wanted_, answered_, reset_,
                lost_, Millis(Clock::now() - begin).count() / 1000);
    Print("beside");
    return 0;
  }

 private:
  void Open(Peer& peer) {
    peer.socket.Open(ConnectTo(port_));
    // The window of a connection is for all of its answers: none of these clients is one that does not read.
    peer.socket.Send(h2::Preface() + h2::Settings() + h2::WindowUpdate(0, 1u << 30));
    uint64_t bytes = 0;
    peer.socket.Write(bytes);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = &peer;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, peer.socket.fd(), &event);
  }
  bool Honest(const Peer& peer) const { return &peer >= honest_ && &peer < honest_ + kHonest; }

  void Write(Peer& peer) {
    uint64_t bytes = 0, before = 0;
    do {
      before = bytes;
      if (!peer.alive || peer.socket.AllSent()) return;
      if (!peer.socket.Write(bytes)) return Lose(peer);
    } while (bytes != before);
  }
  void Lose(Peer& peer) {
    if (!peer.alive) return;
    peer.alive = false;
    peer.socket.Close();
    ++lost_;
    if (Honest(peer)) ++honest_failed_;
  }
  void Read(Peer& peer) {
    std::vector<h2::Frame> frames;
    while (peer.alive) {
      frames.clear();
      if (!peer.socket.Read(frames)) return Lose(peer);
      if (frames.empty()) return;
      for (const h2::Frame& frame : frames) Heard(peer, frame);
    }
  }
  void Heard(Peer& peer, const h2::Frame& frame) {
    const bool ends = frame.has(h2::kEndStream) && (frame.type == h2::kHeaders || frame.type == h2::kData);
    if (frame.type == h2::kData) peer.message = true;
    if (!ends && frame.type != h2::kRstStream) return;
    if (!Honest(peer)) {
      ++(ends ? answered_ : reset_);
      return;
    }
    if (ends && peer.message)
      latencies_.push_back(Millis(Clock::now() - peer.began).count());
    else
      ++honest_failed_;
    peer.waits = false;
    peer.again = Clock::now() + kBetweenHonest;
  }
  void BeginHonest() {
    const auto now = Clock::now();
    for (Peer& peer : honest_) {
      if (!peer.alive || peer.waits || now < peer.again) continue;
      peer.waits = true;
      peer.message = false;
      peer.began = now;
      peer.socket.Send(Request(peer.next_id, peer.next_id == 1));
      peer.next_id += 2;
      Write(peer);
    }
  }
  // Until `end`; `burst`: or until the burst is over.
  void Turn(Clock::time_point end, bool burst) {
    std::vector<epoll_event> events(256);
    while (Clock::now() < end && !(burst && answered_ + reset_ >= wanted_)) {
      BeginHonest();
      const int n = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 1);
      for (int i = 0; i < n; ++i) {
        Peer& peer = *static_cast<Peer*>(events[static_cast<size_t>(i)].data.ptr);
        if ((events[static_cast<size_t>(i)].events & EPOLLOUT) != 0) Write(peer);
        Read(peer);
      }
    }
    // An honest call that has no answer yet has waited so long at least.
    for (Peer& peer : honest_) {
      if (peer.alive && peer.waits) latencies_.push_back(Millis(Clock::now() - peer.began).count());
    }
  }
  void Print(const char* what) {
    std::sort(latencies_.begin(), latencies_.end());
    const auto at = [&](double share) {
      return latencies_.empty() ? 0
                                : latencies_[static_cast<size_t>(share * static_cast<double>(latencies_.size() - 1))];
    };
    std::printf("%s: %zu honest calls, %zu failed, p50 %.2f p99 %.2f max %.2f ms\n", what, latencies_.size(),
                honest_failed_, at(0.5), at(0.99), at(1));
    std::fflush(stdout);
  }

  const uint16_t port_;
  const int requests_;
  const std::chrono::seconds limit_;
  int epoll_ = -1;
  Peer honest_[kHonest];
  std::deque<Peer> burst_;
  size_t wanted_ = 0, answered_ = 0, reset_ = 0, lost_ = 0, honest_failed_ = 0;
  std::vector<double> latencies_;
};

}  // namespace
}  // namespace sluice::attack

int main(int argc, char** argv) {
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (argc != 5 || number(1) <= 0 || number(2) < 0 || number(3) <= 0 || number(3) > 1000 || number(4) <= 0) {
    std::fprintf(stderr, "usage: ready_burst PORT CONNECTIONS REQUESTS(1..1000) SECONDS\n");
    return 2;
  }
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return sluice::attack::Program(static_cast<uint16_t>(number(1)), number(2), number(3), std::min(number(4), 60)).Run();
}
