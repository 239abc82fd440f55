#include "net/dialer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <optional>

#include "net/acceptor.h"
#include "net/socket_address.h"
#include "support/socket_worker.h"

namespace sluice::net {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;

Address Parse(const std::string& text) { return *Address::Parse(text); }

class DialerTest : public ::testing::Test {
 public:
  void Dial(const Address& address, milliseconds timeout = milliseconds(1000), Dialer::Resolve resolve = nullptr) {
    auto done = [this](auto r) {
      result.emplace(std::move(r));
      dialer.reset();  // as a pool does
    };
    dialer = std::make_unique<Dialer>(time.worker, address, time.worker.now() + timeout, done, std::move(resolve));
    EXPECT_FALSE(result);
  }
  // A name with these addresses. Returns when they are known and the first is being tried.
  void DialName(const std::vector<Address>& addresses, milliseconds timeout = milliseconds(1000)) {
    auto resolved = std::make_shared<std::atomic<bool>>(false);
    Dial(Parse("name.test:1"), timeout, [addresses, resolved](const Address&) {
      std::vector<SocketAddress> out;
      for (const Address& address : addresses) out.push_back(*ToSocketAddress(address));
      resolved->store(true);
      return base::Result<std::vector<SocketAddress>>(std::move(out));
    });
    time.RunUntil([&] { return resolved->load(); });
    time.RunUntil([&] { return result.has_value() || Sockets() > sockets_before; });
  }
  void Advance(milliseconds by) {
    time.clock.Advance(by);
    time.Run();
  }
  // Descriptors of this process.
  static size_t Sockets() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
  }
  void Wait() {
    time.RunUntil([&] { return result.has_value(); });
  }
  ~DialerTest() override {
    dialer.reset();
    result.reset();
    time.Run();
  }
  test::SocketWorker time;
  std::optional<base::Result<std::unique_ptr<Stream>>> result;
  std::unique_ptr<Dialer> dialer;
  size_t sockets_before = 0;
};

TEST_F(DialerTest, ConnectsToAnAddress) {
  auto socket = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  Dial(socket->address());
  Wait();
  ASSERT_TRUE(result->ok()) << result->error().detail;
  EXPECT_EQ((**result)->PeerName(), socket->address().ToString());
  iovec part{const_cast<char*>("ping"), 4};
  EXPECT_EQ((**result)->Write(&part, 1).bytes, 4u);
}

TEST_F(DialerTest, ConnectsToAUnixSocket) {
  const std::string path = test::SocketPath("dialer");
  auto socket = ListenSocket::Open(Parse("unix:" + path), {});
  Dial(socket->address());
  Wait();
  EXPECT_TRUE(result->ok());
  ::unlink(path.c_str());
}

TEST_F(DialerTest, ConnectsToANameResolvedElsewhere) {
  auto socket = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  Dial(Parse("localhost:" + std::to_string(socket->address().port())));
  Wait();
  ASSERT_TRUE(result->ok()) << result->error().detail;
}

TEST_F(DialerTest, ARefusedConnectionFails) {
  Address gone;
  {
    auto socket = ListenSocket::Open(Parse("127.0.0.1:0"), {});
    gone = socket->address();
  }
  Dial(gone);
  Wait();
  ASSERT_FALSE(result->ok());
  EXPECT_EQ(result->error().kind, ErrorKind::kConnectFailed);
  EXPECT_NE(result->error().detail.find(gone.ToString()), std::string::npos);
}

TEST_F(DialerTest, AUnixSocketThatIsNotThereFails) {
  Dial(Parse("unix:/nonexistent/socket"));
  Wait();
  EXPECT_EQ(result->error().kind, ErrorKind::kConnectFailed);
}

// A listener whose queue is full does not answer: the connection stays under way.
struct FullListener {
  FullListener() {
    SocketAddress local = *ToSocketAddress(Parse("127.0.0.1:0"));
    listener = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(listener, local.get(), local.length), 0);
    EXPECT_EQ(::listen(listener, 0), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&local.storage), &local.length);
    address = Parse(ToString(local));
    for (int& fd : fillers) {
      fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      ::connect(fd, local.get(), local.length);
    }
  }
  // For the other connections that wait.
  void MakeRoom() {
    for (int& fd : fillers) ::close(std::exchange(fd, -1));
    ::listen(listener, 10);
  }
  ~FullListener() {
    for (int fd : fillers) ::close(fd);
    ::close(listener);
  }
  int listener;
  int fillers[4];
  Address address;
};

TEST_F(DialerTest, WithoutAnAnswerItTimesOut) {
  FullListener full;
  Dial(full.address, milliseconds(500));
  time.Run();
  time.clock.Advance(milliseconds(499));
  time.Run();
  EXPECT_FALSE(result);
  time.clock.Advance(milliseconds(1));
  time.Run();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().kind, ErrorKind::kConnectTimeout);
}

// RFC 8305: an address that does not answer costs a name some of its time, and not all of it.
TEST_F(DialerTest, ANamesNextAddressIsTriedBesideOneThatDoesNotAnswer) {
  FullListener full;
  auto good = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  sockets_before = Sockets();
  DialName({full.address, good->address()}, milliseconds(5000));
  Advance(Dialer::kNextAddressAfter - milliseconds(1));
  EXPECT_FALSE(result);
  Advance(milliseconds(1));
  Wait();
  ASSERT_TRUE(result->ok()) << result->error().detail;
  EXPECT_EQ((**result)->PeerName(), "name.test:1");
  EXPECT_EQ(Sockets(), sockets_before + 1);  // the other is closed
}

TEST_F(DialerTest, ANamesAddressesShareWhatTimeThereIs) {
  FullListener one, two;
  auto good = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  sockets_before = Sockets();
  DialName({one.address, two.address, good->address()}, milliseconds(300));
  Advance(milliseconds(100));  // a third for each
  EXPECT_FALSE(result);
  Advance(milliseconds(99));
  EXPECT_FALSE(result);
  Advance(milliseconds(1));
  Wait();
  EXPECT_TRUE(result->ok()) << result->error().detail;
}

TEST_F(DialerTest, ANamesAddressThatRefusesIsFollowedAtOnce) {
  Address gone;
  {
    auto socket = ListenSocket::Open(Parse("127.0.0.1:0"), {});
    gone = socket->address();
  }
  auto good = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  sockets_before = Sockets();
  DialName({gone, gone, good->address()});
  Wait();
  EXPECT_TRUE(result->ok()) << result->error().detail;
}

// The first is given up only where there are too many beside it.
TEST_F(DialerTest, ALateAnswerOfTheFirstAddressStillCounts) {
  FullListener slow, silent;
  sockets_before = Sockets();
  DialName({slow.address, silent.address}, milliseconds(60000));
  Advance(Dialer::kNextAddressAfter);
  EXPECT_EQ(Sockets(), sockets_before + 2);
  EXPECT_FALSE(result);
  slow.MakeRoom();  // and the kernel's next SYN is answered
  Wait();
  EXPECT_TRUE(result->ok()) << result->error().detail;
}

// Both may be told with one epoll_wait: the first to be told ends the dialer, and with it the other.
TEST_F(DialerTest, TwoAddressesThatAnswerAtOnceMakeOneConnection) {
  FullListener slow;
  sockets_before = Sockets();
  DialName({slow.address, slow.address}, milliseconds(60000));
  Advance(Dialer::kNextAddressAfter);
  EXPECT_EQ(Sockets(), sockets_before + 2);
  slow.MakeRoom();
  sockets_before -= std::size(slow.fillers);
  Wait();
  EXPECT_TRUE(result->ok()) << result->error().detail;
  EXPECT_EQ(Sockets(), sockets_before + 1);
}

TEST_F(DialerTest, ANameWithoutAnAnswerTimesOutOnceForAllAndHoldsFewSockets) {
  FullListener full;
  sockets_before = Sockets();
  DialName(std::vector<Address>(20, full.address), milliseconds(10000));
  for (int i = 0; i < 30; ++i) {
    Advance(Dialer::kNextAddressAfter);
    EXPECT_LE(Sockets(), sockets_before + Dialer::kConnectingMax);
  }
  EXPECT_EQ(Sockets(), sockets_before + Dialer::kConnectingMax);
  EXPECT_FALSE(result);
  Advance(milliseconds(10000) - 30 * Dialer::kNextAddressAfter);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().kind, ErrorKind::kConnectTimeout);
  time.Run();
  EXPECT_EQ(Sockets(), sockets_before);
}

TEST_F(DialerTest, TheFamiliesOfANameTakeTurns) {
  FullListener full;
  auto good = ListenSocket::Open(Parse("[::1]:0"), {});
  if (!good) GTEST_SKIP() << "no IPv6 here";
  sockets_before = Sockets();
  DialName({full.address, full.address, full.address, good->address()}, milliseconds(5000));
  Advance(Dialer::kNextAddressAfter);
  Wait();
  EXPECT_TRUE(result->ok()) << result->error().detail;
}

TEST_F(DialerTest, DestroyedItNeverCallsBack) {
  FullListener full;
  auto socket = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  for (const Address& address : {full.address, socket->address(), Parse("localhost:1"), Parse("127.0.0.1:1")}) {
    for (int turns = 0; turns < 2; ++turns) {
      Dial(address, milliseconds(500));
      for (int i = 0; i < turns; ++i) time.worker.Post([] {});
      dialer.reset();
      time.Run();
    }
  }
  time.clock.Advance(milliseconds(1000));
  time.Run();
  EXPECT_FALSE(result);
}

TEST_F(DialerTest, ADeadlineInThePastTimesOut) {
  FullListener full;
  Dial(full.address, milliseconds(-1));
  time.clock.Advance(milliseconds(1));
  Wait();
  EXPECT_EQ(result->error().kind, ErrorKind::kConnectTimeout);
}

}  // namespace
}  // namespace sluice::net
