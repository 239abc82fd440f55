// tls_attack: a flood of TLS itself, at full speed, against a server on loopback, for a bounded time; then what came of
// it, in one line. As h2_attack, for what is below HTTP/2. See README.md beside this file. Not part of ctest.
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/h2_frames.h"

namespace sluice::attack {
namespace {

using Clock = std::chrono::steady_clock;

struct Totals {
  unsigned long long connections = 0, refused = 0, records = 0;
};

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// A connection that has said the preface of HTTP/2.
class Attacker {
 public:
  Attacker(SSL_CTX* context, const sockaddr_in& address, Totals& totals) : totals_(totals) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{2, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ssl_.reset(SSL_new(context));
    SSL_set_fd(ssl_.get(), fd_);
    static const unsigned char h2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_.get(), h2, sizeof h2);
    const std::string hello = h2::Preface() + h2::Settings();
    good_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
            SSL_connect(ssl_.get()) == 1 && SSL_write(ssl_.get(), hello.data(), static_cast<int>(hello.size())) > 0;
    ++(good_ ? totals_.connections : totals_.refused);
  }
  ~Attacker() {
    ssl_.reset();
    if (fd_ >= 0) ::close(fd_);
  }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  bool good() const { return good_; }
  // RFC 8446 4.6.3. `requested`: the peer has to send one, too.
  bool KeyUpdates(int count, bool requested) {
    for (int i = 0; i < count; ++i) {
      if (SSL_key_update(ssl_.get(), requested ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) != 1 ||
          SSL_do_handshake(ssl_.get()) != 1)
        return false;
      ++totals_.records;
    }
    // Off the socket, unread by TLS: nothing of it is needed to go on.
    char answers[16384];
    ssize_t n = 0;
    while ((n = ::recv(fd_, answers, sizeof answers, MSG_DONTWAIT)) > 0) {
    }
    if (n == 0) return false;
    return true;
  }

 private:
  Totals& totals_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  int fd_ = -1;
  bool good_ = false;
};

int Usage() {
  std::fprintf(stderr,
               "usage: tls_attack FLOOD PORT [--seconds N] [--connections N]\n\nfloods:\n"
               "  key-update             KeyUpdate records that ask for one of the peer's\n"
               "  key-update-quiet       KeyUpdate records that ask for nothing\n");
  return 2;
}

int Main(int argc, char** argv) {
  if (argc < 3) return Usage();
  const std::string_view flood = argv[1];
  if (flood != "key-update" && flood != "key-update-quiet") return Usage();
  double seconds = 5;
  size_t connections = 4;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    if (key == "--seconds")
      seconds = std::clamp(std::atof(argv[i + 1]), 0.01, 600.0);
    else if (key == "--connections")
      connections = static_cast<size_t>(std::clamp(std::atoi(argv[i + 1]), 1, 1000));
    else
      return Usage();
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);  // whatever certificate the victim has
  std::signal(SIGPIPE, SIG_IGN);
  Totals totals;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  unsigned long long ended = 0;
  {
    std::vector<std::unique_ptr<Attacker>> attackers(connections);
    while (Clock::now() < end) {
      for (auto& attacker : attackers) {
        if (attacker == nullptr || !attacker->good()) attacker = std::make_unique<Attacker>(context, address, totals);
        if (!attacker->good() || attacker->KeyUpdates(100, flood == "key-update")) continue;
        attacker.reset();
        ++ended;
      }
    }
  }
  SSL_CTX_free(context);
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("%s: %.1f s, %llu connections (%llu refused, %llu ended by the peer), %.0f records/s\n", argv[1], took,
              totals.connections, totals.refused, ended, static_cast<double>(totals.records) / took);
  return 0;
}

}  // namespace
}  // namespace sluice::attack

int main(int argc, char** argv) { return sluice::attack::Main(argc, argv); }
