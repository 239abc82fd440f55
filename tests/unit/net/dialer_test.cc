#include "net/dialer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

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
  void Dial(const Address& address, milliseconds timeout = milliseconds(1000)) {
    dialer = std::make_unique<Dialer>(time.worker, address, time.worker.now() + timeout, [this](auto r) {
      result.emplace(std::move(r));
      dialer.reset();  // as a pool does
    });
    EXPECT_FALSE(result);
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

TEST_F(DialerTest, DestroyedItNeverCallsBack) {
  FullListener full;
  auto socket = ListenSocket::Open(Parse("127.0.0.1:0"), {});
  for (const Address& address :
       {full.address, socket->address(), Parse("localhost:1"), Parse("127.0.0.1:1")}) {
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
