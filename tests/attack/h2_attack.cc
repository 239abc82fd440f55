// h2_attack: one HTTP/2 flood at full speed against a server on loopback, for a bounded time; then what came of it, in
// one line. See README.md beside this file. Not part of ctest.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "floods.h"
#include "frame_socket.h"

namespace sluice::attack {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  const Flood* flood = nullptr;
  sockaddr_in address{};
  double seconds = 5;
  uint32_t connections = 1;
  uint64_t connections_max = UINT64_MAX;  // in all, with those made again
  std::string path = "/grpc.health.v1.Health/Check";
  std::string authority = "localhost";
  std::string message;  // of each call
};

struct Totals {
  uint64_t connections = 0, refused = 0, ended = 0, frames = 0, bytes = 0, resets = 0, answers = 0;
  Goaways goaways;
};

// One connection to the victim: nonblocking, made again by the loop when it has ended.
class Attacker {
 public:
  Attacker(const Options& options, Totals& totals) : options_(options), flood_(*options.flood), totals_(totals) {}

  int fd() const { return socket_.fd(); }
  bool Connect() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&options_.address), sizeof options_.address) != 0) {
      ++totals_.refused;
      ::close(fd);
      return false;
    }
    socket_.Open(fd);
    ++totals_.connections;
    wire_ = Wire{};
    wire_.path = options_.path;
    wire_.authority = options_.authority;
    wire_.message = options_.message;
    waiting_ = unacknowledged_ = 0;
    constant_ = false;
    answers_.clear();
    batch_.clear();
    socket_.Send(flood_.start ? h2::Preface() + flood_.start(wire_) : "");
    return true;
  }
  void Close() { socket_.Close(); }
  short Events() {
    if (socket_.AllSent()) socket_.Send(NextBatch());
    return static_cast<short>((socket_.AllSent() ? 0 : POLLOUT) | (flood_.reads ? POLLIN : 0));
  }
  // False: the connection has ended.
  bool Handle(short events) {
    std::vector<h2::Frame> frames;
    if ((events & POLLIN) != 0 && !socket_.Read(frames)) return false;
    for (const h2::Frame& frame : frames) Heard(frame);
    if ((events & POLLOUT) != 0 && !socket_.Write(totals_.bytes)) return false;
    return (events & (POLLERR | POLLHUP)) == 0;
  }

 private:
  static constexpr uint32_t kWindowStep = 32768, kCallsABatch = 10;

  std::string NextBatch() {
    std::string next = std::exchange(answers_, "");
    if (!flood_.batch || (flood_.calls_max != 0 && waiting_ + kCallsABatch > flood_.calls_max)) return next;
    if (!constant_) {
      const uint32_t before = wire_.next_id;
      std::string batch = flood_.batch(wire_);
      constant_ = batch == batch_ && before == wire_.next_id && wire_.round == 0;
      batch_ = std::move(batch);
      if (flood_.calls_max != 0) waiting_ += (wire_.next_id - before) / 2;
      frames_ = 0;
      for (size_t at = 0; at + 9 <= batch_.size(); ++frames_) at += 9 + Length(batch_.data() + at);
    }
    totals_.frames += frames_;
    return next += batch_;
  }
  static size_t Length(const char* p) {
    auto byte = [p](int i) { return static_cast<size_t>(static_cast<uint8_t>(p[i])); };
    return byte(0) << 16 | byte(1) << 8 | byte(2);
  }
  void Heard(const h2::Frame& frame) {
    const bool ends = frame.has(h2::kEndStream) && (frame.type == h2::kHeaders || frame.type == h2::kData);
    if (ends || frame.type == h2::kRstStream) {
      ++(ends ? totals_.answers : totals_.resets);
      if (waiting_ > 0) --waiting_;
    }
    if (frame.type == h2::kGoaway) totals_.goaways.Count(frame);
    if (!flood_.opens_windows) return;
    if (frame.type == h2::kSettings && !frame.has(h2::kAck)) answers_ += h2::SettingsAck();
    if (frame.type == h2::kData) {
      unacknowledged_ += static_cast<uint32_t>(frame.payload.size());
      if (unacknowledged_ >= kWindowStep) answers_ += h2::WindowUpdate(0, std::exchange(unacknowledged_, 0));
    }
  }

  const Options& options_;
  const Flood& flood_;
  Totals& totals_;
  FrameSocket socket_;
  Wire wire_;
  std::string batch_;    // as it was sent last
  std::string answers_;  // go before the next batch
  uint64_t frames_ = 0;
  uint32_t waiting_ = 0, unacknowledged_ = 0;
  bool constant_ = false;  // each batch is as the one before
};

void Run(const Options& options, Totals& totals) {
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  std::vector<std::unique_ptr<Attacker>> attackers;
  for (uint32_t i = 0; i < options.connections; ++i) attackers.push_back(std::make_unique<Attacker>(options, totals));
  const bool only_connects = std::string_view(options.flood->name) == "connect";
  std::vector<pollfd> polls(attackers.size());
  while (Clock::now() < end) {
    bool any = false;
    for (size_t i = 0; i < attackers.size(); ++i) {
      Attacker& attacker = *attackers[i];
      if (attacker.fd() < 0 && totals.connections < options.connections_max) attacker.Connect();
      if (only_connects) attacker.Close();
      polls[i] = {attacker.fd(), static_cast<short>(attacker.fd() < 0 ? 0 : attacker.Events()), 0};
      any |= attacker.fd() >= 0;
    }
    if (!any && totals.connections >= options.connections_max) return;
    if (only_connects) continue;
    // Without a connection a pause; with one until there is something to do.
    if (::poll(polls.data(), polls.size(), any ? 100 : 1) <= 0) continue;
    for (size_t i = 0; i < attackers.size(); ++i) {
      if (polls[i].revents == 0 || attackers[i]->Handle(polls[i].revents)) continue;
      ++totals.ended;
      attackers[i]->Close();
    }
  }
}

std::string Unhex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::strtol(std::string(hex.substr(i, 2)).c_str(), nullptr, 16)));
  }
  return out;
}

int Usage() {
  std::fprintf(
      stderr,
      "usage: h2_attack FLOOD PORT [--host 127.x.y.z] [--seconds N] [--connections N] [--connections-max N]\n"
      "                            [--path /pkg.Service/Method] [--authority NAME] [--message HEX]\n\nfloods:\n");
  for (const Flood& flood : Floods()) std::fprintf(stderr, "  %-22s %s\n", flood.name, flood.what);
  return 2;
}

int Main(int argc, char** argv) {
  Options options;
  if (argc < 3) return Usage();
  for (const Flood& flood : Floods()) {
    if (std::string_view(flood.name) == argv[1]) options.flood = &flood;
  }
  if (options.flood == nullptr) return Usage();
  std::string host = "127.0.0.1";
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    if (key == "--host")
      host = argv[i + 1];
    else if (key == "--seconds")
      options.seconds = std::clamp(std::atof(argv[i + 1]), 0.01, 600.0);
    else if (key == "--connections")
      options.connections = static_cast<uint32_t>(std::clamp(std::atoi(argv[i + 1]), 1, 10000));
    else if (key == "--connections-max")
      options.connections_max = static_cast<uint64_t>(std::max(1, std::atoi(argv[i + 1])));
    else if (key == "--path")
      options.path = argv[i + 1];
    else if (key == "--authority")
      options.authority = argv[i + 1];
    else if (key == "--message")
      options.message = Unhex(argv[i + 1]);
    else
      return Usage();
  }
  options.address.sin_family = AF_INET;
  options.address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
  if (::inet_pton(AF_INET, host.c_str(), &options.address.sin_addr) != 1 || !host.starts_with("127.") ||
      options.path.size() > 126 || options.authority.size() > 126) {
    std::fprintf(stderr, "h2_attack: only addresses of loopback (127.0.0.0/8), and names of at most 126 bytes\n");
    return 2;
  }
  Totals totals;
  const auto start = Clock::now();
  Run(options, totals);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf(
      "%s: %.1f s, %llu connections (%llu refused, %llu ended by the peer), %.0f frames/s, %.1f MB/s, %llu answers, "
      "%llu resets",
      options.flood->name, seconds, static_cast<unsigned long long>(totals.connections),
      static_cast<unsigned long long>(totals.refused), static_cast<unsigned long long>(totals.ended),
      static_cast<double>(totals.frames) / seconds, static_cast<double>(totals.bytes) / seconds / 1e6,
      static_cast<unsigned long long>(totals.answers), static_cast<unsigned long long>(totals.resets));
  totals.goaways.Print();
  return 0;
}

}  // namespace
}  // namespace sluice::attack

int main(int argc, char** argv) { return sluice::attack::Main(argc, argv); }
