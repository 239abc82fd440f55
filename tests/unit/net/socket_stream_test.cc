// The readiness rules of socket_stream.cc: an edge is told once by the kernel, and nothing may be left behind.
#include "net/socket_stream.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "support/socket_worker.h"

namespace sluice::net {
namespace {

struct Fds {
  int ours, peer;
};
Fds UnixPair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {fds[0], fds[1]};
}
Fds TcpPair() {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener, generic, length), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, generic, &length), 0);
  int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(peer, generic, length), 0);
  int ours = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  ::close(listener);
  return {ours, peer};
}

class SocketStreamTest : public ::testing::TestWithParam<Fds (*)()>, public IoEvents {
 public:
  SocketStreamTest() : fds(GetParam()()), stream(MakeSocketStream(time.worker, fds.ours, "peer")) {}
  ~SocketStreamTest() override {
    if (fds.peer >= 0) ::close(fds.peer);
  }
  void OnReadable() override {
    ++readable;
    if (on_readable) on_readable();
  }
  void OnWritable() override { ++writable; }
  void Send(std::string_view text, int flags = 0) {
    EXPECT_EQ(::send(fds.peer, text.data(), text.size(), flags | MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  IoResult Read(size_t capacity) {
    got.resize(capacity);
    IoResult result = stream->Read(reinterpret_cast<uint8_t*>(got.data()), capacity);
    got.resize(result.bytes);
    return result;
  }
  void WaitUntilReadable() {
    const int before = readable;
    stream->WaitReadable(*this);
    time.RunUntil([&] { return readable > before; });
  }
  // Writes until the socket takes no more. Returns how much it took.
  size_t Fill() {
    const std::string chunk(100'000, 'x');
    for (size_t written = 0;;) {
      iovec part{const_cast<char*>(chunk.data()), chunk.size()};
      IoResult result = stream->Write(&part, 1);
      if (result.kind != IoResult::Kind::kOk) return written;
      written += result.bytes;
      if (result.bytes < chunk.size()) return written;
    }
  }
  void PeerReads(size_t bytes) {
    std::string into(65536, '\0');
    while (bytes > 0) {
      ssize_t n = ::recv(fds.peer, into.data(), std::min(bytes, into.size()), 0);
      if (n > 0)
        bytes -= static_cast<size_t>(n);
      else
        time.Run();
    }
  }

  test::SocketWorker time;
  Fds fds;
  std::unique_ptr<Stream> stream;
  int readable = 0, writable = 0;
  std::function<void()> on_readable;
  std::string got;
};

TEST_P(SocketStreamTest, TheLastBytesAndTheEndInOneEdgeAreBothHeard) {
  Send("last");
  ::shutdown(fds.peer, SHUT_WR);
  WaitUntilReadable();
  EXPECT_EQ(Read(100).bytes, 4u);  // less than there was room for, but not all that was told
  WaitUntilReadable();
  EXPECT_EQ(Read(100).kind, IoResult::Kind::kEof);
  WaitUntilReadable();  // the end stays
  EXPECT_EQ(Read(100).kind, IoResult::Kind::kEof);
}

TEST_P(SocketStreamTest, TheEndAloneIsHeardWhileWaiting) {
  stream->WaitReadable(*this);
  time.Run();
  EXPECT_EQ(readable, 0);
  ::shutdown(fds.peer, SHUT_WR);
  time.RunUntil([&] { return readable == 1; });
  EXPECT_EQ(Read(100).kind, IoResult::Kind::kEof);
}

TEST_P(SocketStreamTest, AReadThatFillsItsRoomLeavesTheRestReadable) {
  Send("0123456789");
  WaitUntilReadable();
  EXPECT_EQ(Read(4).bytes, 4u);
  WaitUntilReadable();
  EXPECT_EQ(Read(4).bytes, 4u);
  WaitUntilReadable();
  EXPECT_EQ(Read(4).bytes, 2u);
  stream->WaitReadable(*this);
  time.Run();
  EXPECT_EQ(readable, 3);
  Send("more");
  time.RunUntil([&] { return readable == 4; });
}

TEST_P(SocketStreamTest, AReadThatExactlyEmptiesIsFollowedByOneThatFindsNothing) {
  Send("0123");
  WaitUntilReadable();
  EXPECT_EQ(Read(4).bytes, 4u);
  WaitUntilReadable();  // there might have been more
  EXPECT_EQ(Read(4).kind, IoResult::Kind::kWouldBlock);
  stream->WaitReadable(*this);
  time.Run();
  EXPECT_EQ(readable, 2);
  Send("x");
  time.RunUntil([&] { return readable == 3; });
}

TEST_P(SocketStreamTest, AShortReadIsNotFollowedByAnother) {
  Send("0123");
  WaitUntilReadable();
  EXPECT_EQ(Read(5).bytes, 4u);
  stream->WaitReadable(*this);
  time.Run();
  EXPECT_EQ(readable, 1);
}

TEST_P(SocketStreamTest, BytesAfterAShortReadAreToldAlsoIfTheyArriveBeforeTheWait) {
  Send("0123");
  WaitUntilReadable();
  EXPECT_EQ(Read(5).bytes, 4u);
  Send("more");
  time.Run();  // the edge finds no waiting reader
  WaitUntilReadable();
  EXPECT_EQ(Read(5).bytes, 4u);
}

TEST_P(SocketStreamTest, ReadingUnaskedTakesNothingFromTheNextEdge) {
  Send("early");
  EXPECT_EQ(Read(100).bytes, 5u);  // its edge has not been told yet
  stream->WaitReadable(*this);
  time.Run();
  readable = 0;  // it may be, and finds nothing
  EXPECT_EQ(Read(100).kind, IoResult::Kind::kWouldBlock);
  Send("late");
  time.Run();
  if (readable == 0) WaitUntilReadable();
  EXPECT_EQ(Read(100).bytes, 4u);
}

TEST_P(SocketStreamTest, APartialWriteWaitsForRoom) {
  const size_t written = Fill();
  stream->WaitWritable(*this);
  time.Run();
  EXPECT_EQ(writable, 0);
  PeerReads(written);
  time.RunUntil([&] { return writable == 1; });
  stream->WaitWritable(*this);  // there is room still
  time.RunUntil([&] { return writable == 2; });
}

TEST_P(SocketStreamTest, RoomThatCameBeforeTheWaitIsHeard) {
  for (int round = 1; round <= 3; ++round) {
    PeerReads(Fill());
    time.Run();
    stream->WaitWritable(*this);
    time.RunUntil([&] { return writable == round; });
  }
}

TEST_P(SocketStreamTest, BothDirectionsReadyInOneEdgeAreBothToldReadingFirst) {
  const size_t written = Fill();
  stream->WaitReadable(*this);
  stream->WaitWritable(*this);
  time.Run();
  on_readable = [this] { EXPECT_EQ(writable, 0); };
  // The peer reads in one go where it can; then both are due.
  PeerReads(written);
  Send("x");
  time.RunUntil([&] { return readable == 1 && writable == 1; });
}

TEST_P(SocketStreamTest, ClosedByItsReaderItDoesNotTellItsWriter) {
  stream->WaitReadable(*this);
  stream->WaitWritable(*this);
  on_readable = [this] { stream->Close(); };
  Send("x");
  time.worker.Post([] {});
  time.RunUntil([&] { return readable + writable > 0; });
  if (readable == 0) time.RunUntil([&] { return readable == 1; });
  const int before = writable;
  time.Run();
  EXPECT_EQ(writable, before);
}

TEST_P(SocketStreamTest, DestroyedByItsReaderItDoesNotTellItsWriter) {
  const size_t written = Fill();
  stream->WaitWritable(*this);
  time.Run();
  stream->WaitReadable(*this);
  std::string into(65536, '\0');
  Send("x");
  for (size_t left = written; left > 0;) {
    ssize_t n = ::recv(fds.peer, into.data(), into.size(), MSG_DONTWAIT);
    if (n <= 0) break;
    left -= static_cast<size_t>(n);
  }
  on_readable = [this] { stream.reset(); };
  time.RunUntil([&] { return readable == 1; });
  time.Run();
  EXPECT_EQ(writable, 0);
}

TEST_P(SocketStreamTest, AfterTheirEndOursGoesOn) {
  ::shutdown(fds.peer, SHUT_WR);
  WaitUntilReadable();
  EXPECT_EQ(Read(10).kind, IoResult::Kind::kEof);
  const size_t written = Fill();
  stream->WaitWritable(*this);
  time.Run();
  EXPECT_EQ(writable, 0);
  PeerReads(written);
  time.RunUntil([&] { return writable == 1; });
}

TEST_P(SocketStreamTest, APeerThatIsGoneIsToldToBoth) {
  Fill();
  stream->WaitReadable(*this);
  stream->WaitWritable(*this);
  time.Run();
  ::close(std::exchange(fds.peer, -1));  // with bytes unread: a reset
  time.RunUntil([&] { return readable == 1 && writable == 1; });
  EXPECT_EQ(Read(10).error, ECONNRESET);
  WaitUntilReadable();
  iovec part{const_cast<char*>("x"), 1};
  EXPECT_EQ(stream->Write(&part, 1).kind, IoResult::Kind::kError);
}

// A turn that finds nothing is one; each event that means nothing makes one more.
TEST_P(SocketStreamTest, ThePeersReadsAreNoEvents) {
  for (int round = 0; round < 2; ++round) {
    iovec part{const_cast<char*>("hello"), 5};
    EXPECT_EQ(stream->Write(&part, 1).bytes, 5u);
    PeerReads(5);
    const uint64_t before = time.worker.stats().turns;
    time.Run();
    EXPECT_EQ(time.worker.stats().turns - before, 1u) << round;
    // Nor are they after it was full once.
    const size_t written = Fill();
    stream->WaitWritable(*this);
    PeerReads(written);
    time.RunUntil([&] { return writable == round + 1; });
    PeerReads(Fill());
    time.Run();
  }
}

INSTANTIATE_TEST_SUITE_P(Unix, SocketStreamTest, ::testing::Values(&UnixPair));
INSTANTIATE_TEST_SUITE_P(Tcp, SocketStreamTest, ::testing::Values(&TcpPair));

// tcp(7): a read stops short at the mark of urgent data, with more behind it and no further edge.
TEST(SocketStream, UrgentDataDoesNotDelayLaterBytes) {
  struct Reader final : IoEvents {
    void OnReadable() override { ++readable; }
    void OnWritable() override {}
    int readable = 0;
  } reader;
  test::SocketWorker time;
  Fds fds = TcpPair();
  auto stream = MakeSocketStream(time.worker, fds.ours, "peer");
  ASSERT_EQ(::send(fds.peer, "ab", 2, 0), 2);
  ASSERT_EQ(::send(fds.peer, "!", 1, MSG_OOB), 1);
  ASSERT_EQ(::send(fds.peer, "cd", 2, 0), 2);
  std::string got;
  for (int i = 1; got.size() < 4; ++i) {
    stream->WaitReadable(reader);
    time.RunUntil([&] { return reader.readable == i; });
    uint8_t bytes[100];
    IoResult result = stream->Read(bytes, sizeof bytes);
    got.append(reinterpret_cast<char*>(bytes), result.bytes);
  }
  EXPECT_EQ(got, "abcd");
  ::close(fds.peer);
}

}  // namespace
}  // namespace sluice::net
