#include "net/acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <optional>

#include "base/log.h"
#include "listening.h"
#include "support/socket_worker.h"

namespace sluice::net {
namespace {

using std::chrono::milliseconds;

void Pass(test::SocketWorker& time, milliseconds span) {
  time.clock.Advance(span + milliseconds(1));  // the wheel's resolution
  time.Run();
}

class AcceptorTest : public ::testing::Test {
 public:
  void Start() {
    auto socket = Listen("127.0.0.1:0");
    address = socket->address();
    acceptor.emplace(
        time.worker, std::move(*socket),
        [this](int fd, std::string peer) {
          fds.push_back(fd);
          peers.push_back(std::move(peer));
          if (on_accept) on_accept();
        },
        [this] { return admitting; });
  }
  int Client() {
    clients.push_back(Connect(address));
    return clients.back();
  }
  ~AcceptorTest() override {
    acceptor.reset();
    time.Run();
    for (int fd : fds) ::close(fd);
    for (int fd : clients) ::close(fd);
  }
  test::SocketWorker time;
  Address address;
  std::vector<int> fds, clients;
  std::vector<std::string> peers;
  std::function<void()> on_accept;
  bool admitting = true;
  std::optional<Acceptor> acceptor;
};

TEST_F(AcceptorTest, HandsOnConnectedSocketsThatDoNotBlock) {
  Start();
  for (int i = 0; i < 100; ++i) Client();  // more than are accepted in one turn
  time.RunUntil([&] { return fds.size() == 100; });
  EXPECT_TRUE(::fcntl(fds[0], F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(::fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
  SocketAddress local;
  local.length = sizeof(local.storage);
  ::getsockname(clients[0], reinterpret_cast<sockaddr*>(&local.storage), &local.length);
  EXPECT_EQ(peers[0], ToString(local));
}

TEST_F(AcceptorTest, ThoseNotAdmittedWaitInTheKernelsQueue) {
  admitting = false;
  Start();
  Client();
  for (int i = 0; i < 10; ++i) {
    time.Run();
    time.clock.Advance(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(fds.size(), 0u);
  admitting = true;
  time.clock.Advance(std::chrono::milliseconds(100));
  time.RunUntil([&] { return fds.size() == 1; });
  Client();
  time.RunUntil([&] { return fds.size() == 2; });
}

TEST_F(AcceptorTest, OutOfDescriptorsItPausesAndTriesAgain) {
  Start();
  Client();
  // UBSan looks at an object's type through a pipe, once for each type: let it see those of the log while there are
  // descriptors for one.
  SLUICE_LOG_WARN("the {} that follows is {} {}", std::string("warning"), "expected", 1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const uint64_t turns = time.worker.stats().turns;
  for (int i = 0; i < 100; ++i) time.Run();
  EXPECT_LT(time.worker.stats().turns - turns, 110u);  // it does not spin
  time.clock.Advance(milliseconds(150));
  time.Run();  // and again
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  time.Run();
  EXPECT_EQ(fds.size(), 0u);
  time.clock.Advance(milliseconds(150));
  time.Run();
  EXPECT_EQ(fds.size(), 1u);
  Client();
  time.RunUntil([&] { return fds.size() == 2; });
}

TEST_F(UnixPath, AnAcceptorsSocketTakesNewOptions) {
  test::SocketWorker time;
  auto socket = Listen(address, {0, 0600});
  const Address bound = socket->address();
  Acceptor acceptor(time.worker, std::move(*socket), [](int fd, const std::string&) { ::close(fd); });
  std::vector<int> clients;  // the worker is not turned: all stay in the queue
  auto fill = [&] {
    for (int fd; (fd = Connect(bound, SOCK_NONBLOCK)) >= 0;) clients.push_back(fd);
    return clients.size();
  };
  const size_t before = fill();
  acceptor.Apply({10, 0622});
  EXPECT_EQ(fill(), before + 10);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0622u);
  for (int fd : clients) ::close(fd);
}

TEST_F(AcceptorTest, ACallbackMayDestroyIt) {
  Start();
  on_accept = [this] { acceptor.reset(); };
  Client();
  Client();
  time.RunUntil([&] { return !fds.empty(); });
  time.Run();
  EXPECT_EQ(fds.size(), 1u);
  EXPECT_EQ(Connect(address), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

// An address that covers another one, on the same port: both listen until one has gone.
TEST(SharedPort, OnlyASocketOpenedForItMayStandBesideASharedOne) {
  for (const auto& [first, second] : {std::pair{"0.0.0.0", "127.0.0.1"}, std::pair{"127.0.0.1", "0.0.0.0"}}) {
    SCOPED_TRACE(first);
    test::SocketWorker time;
    auto socket = Listen(std::string(first) + ":0");
    ASSERT_TRUE(socket.ok());
    const std::string port = ":" + std::to_string(socket->address().port());
    std::vector<int> accepted;
    auto acceptor = std::make_unique<Acceptor>(time.worker, std::move(*socket),
                                               [&](int fd, std::string) { accepted.push_back(fd); });
    const Address wanted = Parse(second + port);
    EXPECT_FALSE(ListenSocket::Open(wanted, {}).ok());
    EXPECT_FALSE(ListenSocket::Open(wanted, {.beside_shared = true}).ok());
    acceptor->SetShared(true);
    EXPECT_FALSE(ListenSocket::Open(wanted, {}).ok());
    auto beside = ListenSocket::Open(wanted, {.beside_shared = true});
    ASSERT_TRUE(beside.ok()) << beside.error().detail;
    acceptor->SetShared(false);
    EXPECT_FALSE(ListenSocket::Open(Parse("127.0.0.2" + port), {.beside_shared = true}).ok());
    const int client = Connect(Parse("127.0.0.1" + port));
    ASSERT_GE(client, 0);
    acceptor.reset();
    // Alone again, it is as closed to others as any.
    EXPECT_FALSE(ListenSocket::Open(wanted, {.beside_shared = true}).ok());
    EXPECT_FALSE(ListenSocket::Open(Parse(first + port), {.beside_shared = true}).ok());
    const int late = Connect(Parse("127.0.0.1" + port));
    EXPECT_GE(late, 0);
    for (int fd : {client, late}) ::close(fd);
    for (int fd : accepted) ::close(fd);
    time.Run();
  }
}

// The owner waits for `done` and must not wait for ever.
TEST_F(AcceptorTest, AnAcceptorThatIsDestroyedWhileItHandsOverSaysThatItIsClosed) {
  Start();
  int closed = 0;
  acceptor->HandOver([&] { ++closed; });
  acceptor.reset();
  EXPECT_EQ(closed, 1);
  Pass(time, Acceptor::kHandshakeGrace);
  EXPECT_EQ(closed, 1);
}

TEST_F(AcceptorTest, TheEndOfAHandOverMayDestroyTheAcceptor) {
  Start();
  Client();
  acceptor->HandOver([&] { acceptor.reset(); });
  Pass(time, Acceptor::kHandshakeGrace);
  EXPECT_FALSE(acceptor.has_value());
  EXPECT_EQ(fds.size(), 1U);
}

TEST(SharedPort, TheRestIsAcceptedAndALaterClientFindsTheNextListener) {
  test::SocketWorker time;
  auto socket = Listen("127.0.0.1:0");
  const Address address = socket->address();
  std::vector<int> accepted;
  std::optional<Acceptor> acceptor;
  acceptor.emplace(time.worker, std::move(*socket), [&](int fd, std::string) { accepted.push_back(fd); });
  std::vector<int> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(Connect(address));
  bool closed = false;
  acceptor->HandOver([&] { closed = true; });
  const SocketAddress target = *ToSocketAddress(address);
  const int late = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  clients.push_back(late);
  EXPECT_EQ(::connect(late, target.get(), target.length), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  time.Run();
  EXPECT_FALSE(closed);  // a handshake may be under way
  Pass(time, Acceptor::kHandshakeGrace);
  EXPECT_TRUE(closed);
  EXPECT_EQ(accepted.size(), clients.size() - 1);
  acceptor.reset();
  SocketAddress peer;
  peer.length = sizeof(peer.storage);
  EXPECT_EQ(::getpeername(late, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length), -1);  // it was not let in
  auto next = ListenSocket::Open(address, {});
  ASSERT_TRUE(next.ok()) << next.error().detail;
  pollfd waits{late, POLLOUT, 0};
  EXPECT_EQ(::poll(&waits, 1, 60'000), 1);  // its SYN comes again after a second
  int error = -1;
  socklen_t length = sizeof(error);
  ::getsockopt(late, SOL_SOCKET, SO_ERROR, &error, &length);
  EXPECT_EQ(error, 0);
  for (int fd : clients) ::close(fd);
  for (int fd : accepted) ::close(fd);
  time.Run();
}

}  // namespace
}  // namespace sluice::net
