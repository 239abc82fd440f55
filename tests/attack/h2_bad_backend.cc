// h2_bad_backend: a backend on loopback that floods its callers, at full speed, for a bounded time; then what came of
// it, in one line. The counterpart of h2_attack. See README.md beside this file. Not part of ctest.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frame_socket.h"
#include "support/h2_frames.h"

namespace sluice::attack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* k103 =
    "\x08\x03"
    "103";  // :status, RFC 7541 6.2.2
// A tiny field that comes into the table, and 240 references to it.
const std::string kBomb = std::string("\x40\x01\x61\x00", 4) + std::string(240, '\xbe');
constexpr size_t kHeldBytesMax = 1 << 20;  // output that the caller does not take: nothing is added
constexpr size_t kConnectionsMax = 1000;

struct Flood {
  const char* name;
  const char* what;
  // Said to each call, on its stream.
  std::function<std::string(uint32_t stream)> answer;
  // From the first call on, again and again: about one read's worth. `stream`: the first call's.
  std::function<std::string(uint32_t stream, uint32_t round)> batch;
  bool silent = false;  // not even SETTINGS
  bool dies = false;    // the connection ends at a call whose DATA says POISON
};

std::string Repeat(int count, const std::function<std::string(int)>& frame) {
  std::string out;
  for (int i = 0; i < count; ++i) out += frame(i);
  return out;
}
std::string Nothing(uint32_t) { return {}; }
std::string Head(uint32_t stream) { return h2::Headers(stream, h2::Block(h2::GrpcResponse())); }
std::string Whole(uint32_t stream) {
  return Head(stream) + h2::Data(stream, h2::Message("")) +
         h2::Headers(stream, h2::Block(h2::GrpcTrailers()), h2::kEndHeaders | h2::kEndStream);
}

std::vector<Flood> Floods() {
  using N = uint32_t;
  return {
      {"answers", "not an attack: it answers each call, to compare with", Whole, nullptr},
      {"poison", "it answers each call, and ends the connection at one whose message says POISON", Whole, nullptr,
       false, true},
      {"silent", "it accepts, and says nothing", Nothing, nullptr, true},
      {"settings", "SETTINGS", Nothing, [](N, N) { return Repeat(5000, [](int) { return h2::Settings(); }); }},
      {"settings-window", "INITIAL_WINDOW_SIZE up and down", Nothing,
       [](N, N) { return Repeat(2000, [](int i) {
                    return h2::Settings({{0x4, 65535 + (i & 1)}});
                  }); }},
      {"settings-table", "HEADER_TABLE_SIZE up and down", Nothing,
       [](N, N) { return Repeat(2000, [](int i) {
                    return h2::Settings({{0x1, (i & 1) * 4096}});
                  }); }},
      {"ping", "PING", Nothing, [](N, N) { return Repeat(3000, [](int) { return h2::Ping(1); }); }},
      {"priority", "PRIORITY", Nothing,
       [](N, N) {
         return Repeat(3000, [](int i) { return h2::RawFrame(h2::kPriority, 0, i * 2 + 1, h2::Big(0, 4) + "w"); });
       }},
      {"window-update", "WINDOW_UPDATE of 1", Nothing,
       [](N s, N) { return Repeat(5000, [s](int) { return h2::WindowUpdate(s, 1); }); }},
      {"unknown", "frames of an unknown type", Nothing,
       [](N, N) { return Repeat(5000, [](int) { return h2::RawFrame(0xfe, 0, 0, ""); }); }},
      {"goaway", "GOAWAY that lets all through", Nothing,
       [](N, N) { return Repeat(3000, [](int) { return h2::Goaway(0x7fffffff, 0); }); }},
      {"interim", "interim responses", Nothing,
       [](N s, N) { return Repeat(3000, [s](int) { return h2::Headers(s, k103); }); }},
      {"empty-data", "DATA of no bytes", Head,
       [](N s, N) { return Repeat(5000, [s](int) { return h2::Data(s, ""); }); }},
      {"late-data", "DATA behind the end", Whole,
       [](N s, N) { return Repeat(3000, [s](int) { return h2::Data(s, "late"); }); }},
      {"late-resets", "RST_STREAM on a stream that is over", Whole,
       [](N s, N) { return Repeat(4000, [s](int) { return h2::RstStream(s, 8); }); }},
      {"continuation-empty", "a block of empty CONTINUATIONs", Nothing,
       [](N s, N round) {
         return (round == 0 ? h2::Headers(s, "", 0) : std::string()) +
                Repeat(4000, [s](int) { return h2::Continuation(s, "", 0); });
       }},
      {"hpack-bomb", "each answer 16,000 indexes of a field of 4,000 bytes",
       [](N s) {
         return h2::Headers(s, "\x40\x01x\x7f\xa1\x1e" + std::string(4000, 'v') + std::string(12000, '\xbe'));
       },
       nullptr},
      {"bomb-held", "CVE-2026-49975: each answer 240 references to a tiny field, and no end",
       [](N s) { return h2::Headers(s, h2::Block(h2::GrpcResponse()) + kBomb); }, nullptr},
      {"bomb-trailers", "the same in the trailers",
       [](N s) {
         return Head(s) + h2::Data(s, h2::Message("")) +
                h2::Headers(s, h2::Block(h2::GrpcTrailers()) + kBomb, h2::kEndHeaders | h2::kEndStream);
       },
       nullptr},
      {"malformed", "each answer without :status",
       [](N s) {
         return h2::Headers(s, h2::Block({{"a", "b"}}), h2::kEndHeaders | h2::kEndStream);
       },
       nullptr},
      {"resets", "each call is reset", [](N s) { return h2::RstStream(s, 2); }, nullptr},
      {"garbage", "each connection gets bytes of no protocol", [](N) { return std::string(10'000, '\xee'); }, nullptr},
  };
}

struct Totals {
  uint64_t connections = 0, calls = 0, bytes = 0;
  Goaways goaways;
};

// One connection of a caller.
class Caller {
 public:
  Caller(int fd, const Flood& flood, Totals& totals) : flood_(flood), totals_(totals) {
    socket_.Open(fd, h2::Preface().size());
    ++totals_.connections;
    if (!flood.silent) socket_.Send(h2::Settings());
  }

  int fd() const { return socket_.fd(); }
  short Events() {
    if (socket_.AllSent()) {
      std::string next = std::exchange(answers_, "");
      if (first_ != 0 && flood_.batch) next += flood_.batch(first_, round_++);
      socket_.Send(std::move(next));
    }
    return static_cast<short>(POLLIN | (socket_.AllSent() ? 0 : POLLOUT));
  }
  // False: it has gone.
  bool Handle(short events) {
    std::vector<h2::Frame> frames;
    if ((events & POLLIN) != 0 && !socket_.Read(frames)) return false;
    for (const h2::Frame& frame : frames) {
      if (flood_.dies && frame.type == h2::kData && frame.payload.find("POISON") != std::string::npos) return false;
    }
    if (!flood_.silent) {
      for (const h2::Frame& frame : frames) Heard(frame);
    }
    if ((events & POLLOUT) != 0 && !socket_.Write(totals_.bytes)) return false;
    return (events & (POLLERR | POLLHUP)) == 0;
  }

 private:
  void Heard(const h2::Frame& frame) {
    if (frame.type == h2::kSettings && !frame.has(h2::kAck)) answers_ += h2::SettingsAck();
    // Where a call may kill, it is answered when all of it is here.
    if (flood_.dies ? frame.type == h2::kData && frame.has(h2::kEndStream) : frame.type == h2::kHeaders) {
      ++totals_.calls;
      if (first_ == 0) first_ = frame.stream;
      if (answers_.size() < kHeldBytesMax) answers_ += flood_.answer(frame.stream);
    }
    if (frame.type == h2::kGoaway) totals_.goaways.Count(frame);
  }

  const Flood& flood_;
  Totals& totals_;
  FrameSocket socket_;
  std::string answers_;
  uint32_t first_ = 0, round_ = 0;  // the first call's stream
};

void Serve(int listener, const Flood& flood, double seconds, Totals& totals) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::unique_ptr<Caller>> callers;
  std::vector<pollfd> polls;
  while (Clock::now() < end) {
    polls.assign(1, {listener, static_cast<short>(callers.size() < kConnectionsMax ? POLLIN : 0), 0});
    for (const auto& caller : callers) polls.push_back({caller->fd(), caller->Events(), 0});
    if (::poll(polls.data(), polls.size(), 50) <= 0) continue;
    for (size_t i = callers.size(); i > 0; --i) {
      if (polls[i].revents != 0 && !callers[i - 1]->Handle(polls[i].revents))
        callers.erase(callers.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (polls[0].revents == 0) continue;
    if (const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0)
      callers.push_back(std::make_unique<Caller>(fd, flood, totals));
  }
}

int Usage(const std::vector<Flood>& floods) {
  std::fprintf(stderr, "usage: h2_bad_backend FLOOD PORT [--seconds N]\n\nfloods:\n");
  for (const Flood& flood : floods) std::fprintf(stderr, "  %-22s %s\n", flood.name, flood.what);
  return 2;
}

int Main(int argc, char** argv) {
  const std::vector<Flood> floods = Floods();
  double seconds = 5;
  if (argc == 5 && std::string_view(argv[3]) == "--seconds")
    seconds = std::clamp(std::atof(argv[4]), 0.01, 600.0);
  else if (argc != 3)
    return Usage(floods);
  const auto flood =
      std::find_if(floods.begin(), floods.end(), [&](const Flood& f) { return std::string_view(f.name) == argv[1]; });
  if (flood == floods.end()) return Usage(floods);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int one = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 1024) != 0) {
    std::perror("h2_bad_backend");
    return 1;
  }
  Totals totals;
  Serve(listener, *flood, seconds, totals);
  ::close(listener);
  std::printf("%s: %llu connections, %llu calls, %.1f MB/s", flood->name,
              static_cast<unsigned long long>(totals.connections), static_cast<unsigned long long>(totals.calls),
              static_cast<double>(totals.bytes) / seconds / 1e6);
  totals.goaways.Print();
  return 0;
}

}  // namespace
}  // namespace sluice::attack

int main(int argc, char** argv) { return sluice::attack::Main(argc, argv); }
