// A reload moves a listener to an address with the same port that covers the former one, or is covered by it: with real
// sockets, while clients come and go.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "integration/support/temp_dir.h"
#include "net/acceptor.h"
#include "net/socket_address.h"
#include "server/server.h"
#include "support/h2_frames.h"

namespace sluice::server {
namespace {

// A client's connection as far as SETTINGS both ways; blocking.
class Client {
 public:
  explicit Client(uint16_t port) {
    const net::SocketAddress target = *net::ToSocketAddress(*net::Address::Parse("127.0.0.1:" + std::to_string(port)));
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    connected_ = ::connect(fd_, target.get(), target.length) == 0;
  }
  ~Client() { ::close(fd_); }
  // It gets an answer to PING, behind the preface and SETTINGS where those are not out yet.
  bool Answers() {
    if (!connected_) return false;
    if (!std::exchange(begun_, true)) Send(h2::Preface() + h2::Settings());
    Send(h2::RawFrame(h2::kPing, 0, 0, "12345678"));
    for (;;) {
      char buffer[4096];
      const ssize_t got = ::recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) return false;
      received_.append(buffer, static_cast<size_t>(got));
      for (const h2::Frame& frame : h2::TakeFrames(received_)) {
        if (frame.type == h2::kPing && frame.has(h2::kAck)) return true;
      }
    }
  }

 private:
  void Send(const std::string& bytes) const { (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  int fd_ = -1;
  bool connected_ = false, begun_ = false;
  std::string received_;
};

class ListenerChange : public ::testing::Test {
 public:
  ListenerChange() {
    port = net::ListenSocket::Open(*net::Address::Parse("127.0.0.1:0"), {})->address().port();  // and free again
    Write({"0.0.0.0"});
    auto parsed = config::Load(dir.File("sluice.yaml"));
    EXPECT_TRUE(parsed.ok());
    ServerOptions options;
    options.config_file = dir.File("sluice.yaml");
    auto started = Server::Start(parsed.config, options);
    EXPECT_TRUE(started.ok()) << started.error().detail;
    server = std::move(*started);
  }
  void Write(const std::vector<std::string>& hosts, const std::string& more = "") {
    std::string listeners;
    for (const std::string& host : hosts) listeners += "  - address: \"" + host + ":" + std::to_string(port) + "\"\n";
    dir.Write("sluice.yaml", "listeners:\n" + listeners +
                                 "clusters: [{name: c, endpoints: [127.0.0.1:1]}]\nroutes: [{cluster: c, hash_by: "
                                 "random}]\nadmin: {grpc: \"\"}\n" +
                                 more);
  }
  std::string Reload() {
    const admin::ReloadResult result = server->Reload();
    return result.errors.empty() ? "" : result.errors.back();
  }
  integration::TempDir dir;
  uint16_t port = 0;
  std::unique_ptr<Server> server;
};

TEST_F(ListenerChange, ToAnAddressThatCoversTheFormerOneAndBackLosesNoConnection) {
  Client stays(port);
  ASSERT_TRUE(stays.Answers());
  std::atomic<bool> stop{false};
  std::atomic<int> served{0}, lost{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) ++(Client(port).Answers() ? served : lost);
    });
  }
  for (int round = 0; round < 10; ++round) {
    for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
      Write({host});
      EXPECT_EQ(Reload(), "") << host;
      const int before = served.load();
      while (served.load() < before + 3 && lost.load() == 0) std::this_thread::yield();
    }
  }
  stop.store(true);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_TRUE(stays.Answers());
}

TEST_F(ListenerChange, ToOneOfAnotherProcessFailsAndTheFormerOneGoesOn) {
  auto other = net::ListenSocket::Open(*net::Address::Parse("127.0.0.1:0"), {});
  ASSERT_TRUE(other.ok());
  const uint16_t mine = std::exchange(port, other->address().port());
  Write({"0.0.0.0"});
  EXPECT_NE(Reload().find("cannot listen on 0.0.0.0:" + std::to_string(port)), std::string::npos);
  port = mine;
  EXPECT_TRUE(Client(port).Answers());
  // An address that stays is not shared with a new one.
  Write({"0.0.0.0", "127.0.0.1"});
  EXPECT_NE(Reload().find("cannot both be listened on"), std::string::npos);
  EXPECT_TRUE(Client(port).Answers());
}

TEST_F(ListenerChange, AfterItThePortIsNotShared) {
  Write({"127.0.0.1"});
  EXPECT_EQ(Reload(), "");
  for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
    EXPECT_FALSE(
        net::ListenSocket::Open(*net::Address::Parse(host + (":" + std::to_string(port))), {.beside_shared = true})
            .ok());
  }
}

}  // namespace
}  // namespace sluice::server
