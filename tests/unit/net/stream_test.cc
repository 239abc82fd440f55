// The contract of net::Stream, held by the socket, by the one in memory and by TLS over a socket alike.
#include "net/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/socket_stream.h"
#include "net/tls/handshake.h"
#include "support/memory_stream.h"
#include "support/socket_worker.h"
#include "support/tls_certificates.h"

namespace sluice::net {
namespace {

struct Listener final : IoEvents {
  void OnReadable() override {
    ++readable;
    if (on_readable) on_readable();
  }
  void OnWritable() override { ++writable; }
  int readable = 0, writable = 0;
  std::function<void()> on_readable;
};

struct Ends {
  std::unique_ptr<Stream> a, b;
};
Ends MakeSockets(runtime::Worker& worker) {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {MakeSocketStream(worker, fds[0], "b"), MakeSocketStream(worker, fds[1], "a")};
}
Ends MakeMemory(runtime::Worker& worker) {
  auto pair = MemoryStream::Make(worker, "a", "b");
  return {std::move(pair.near), std::move(pair.far)};
}

// TLS over sockets, with the bytes behind the handshake read already.
Ends MakeTls(runtime::Worker& worker) {
  static const auto ca = test::MakeCert({.common_name = "ca", .authority = true});
  static const auto own = test::MakeCert({.names = "DNS:a.example.com"}, &ca);
  ClusterTlsOptions cluster;
  cluster.server_name = "a.example.com";
  auto server = TlsContext::ForListener({}, {{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}}, nullptr);
  auto client = TlsContext::ForCluster(cluster, {{}, {}, {"ca.crt", ca.certificate_pem}});
  EXPECT_TRUE(server.ok() && client.ok());
  Ends transports = MakeSockets(worker), out;
  TlsHandshake one(worker, std::move(transports.a), *client, Address(), base::kNever,
                   [&](TlsOutcome outcome) { out.a = std::move(outcome.stream); });
  TlsHandshake two(worker, std::move(transports.b), *server, base::kNever,
                   [&](TlsOutcome outcome) { out.b = std::move(outcome.stream); });
  while (out.a == nullptr || out.b == nullptr) worker.RunUntilIdleForTest();
  for (Stream* end : {out.a.get(), out.b.get()}) {
    uint8_t byte;
    EXPECT_EQ(end->Read(&byte, 1).kind, IoResult::Kind::kWouldBlock);
  }
  return out;
}

class StreamTest : public ::testing::TestWithParam<Ends (*)(runtime::Worker&)> {
 public:
  static IoResult Write(Stream& stream, std::string_view text) {
    iovec part{const_cast<char*>(text.data()), text.size()};
    return stream.Write(&part, 1);
  }
  static std::string Read(Stream& stream, size_t capacity = 1000) {
    std::string out(capacity, '\0');
    IoResult result = stream.Read(reinterpret_cast<uint8_t*>(out.data()), capacity);
    switch (result.kind) {
      case IoResult::Kind::kWouldBlock:
        return "<nothing yet>";
      case IoResult::Kind::kEof:
        return "<end>";
      case IoResult::Kind::kError:
        return "<error>";
      case IoResult::Kind::kOk:
        break;
    }
    return out.substr(0, result.bytes);
  }
  test::SocketWorker time;
  Ends ends = GetParam()(time.worker);
  Stream &a = *ends.a, &b = *ends.b;
  Listener listener;
};

TEST_P(StreamTest, CarriesBytesBothWaysInOrder) {
  EXPECT_EQ(a.PeerName(), "b");
  iovec parts[] = {{const_cast<char*>("one "), 4}, {const_cast<char*>(""), 0}, {const_cast<char*>("two"), 3}};
  EXPECT_EQ(a.Write(parts, 3).bytes, 7u);
  EXPECT_EQ(Read(b, 5), "one t");
  EXPECT_EQ(Read(b), "wo");
  EXPECT_EQ(Read(b), "<nothing yet>");
  Write(b, "back");
  EXPECT_EQ(Read(a), "back");
}

TEST_P(StreamTest, ReadinessIsToldOnceForEachTimeItIsAskedFor) {
  a.WaitReadable(listener);
  time.Run();
  EXPECT_EQ(listener.readable, 0);
  Write(b, "x");
  EXPECT_EQ(listener.readable, 0);  // not from inside the write
  time.RunUntil([&] { return listener.readable == 1; });
  Write(b, "y");
  time.Run();
  EXPECT_EQ(listener.readable, 1);
  a.WaitReadable(listener);  // asked with bytes there already
  time.RunUntil([&] { return listener.readable == 2; });
  a.WaitWritable(listener);
  time.RunUntil([&] { return listener.writable == 1; });
}

TEST_P(StreamTest, AListenerMayWaitAgainFromInside) {
  listener.on_readable = [&] {
    if (Read(a) != "<end>") a.WaitReadable(listener);
  };
  a.WaitReadable(listener);
  for (int i = 1; i <= 5; ++i) {
    Write(b, "x");
    time.RunUntil([&] { return listener.readable == i; });
  }
}

TEST_P(StreamTest, AFullStreamBlocksUntilThePeerReads) {
  const std::string chunk(10'000, 'x');
  size_t written = 0;
  for (;;) {
    IoResult result = Write(a, chunk);
    if (result.kind == IoResult::Kind::kWouldBlock) break;
    ASSERT_EQ(result.kind, IoResult::Kind::kOk);
    written += result.bytes;
  }
  a.WaitWritable(listener);
  time.Run();
  EXPECT_EQ(listener.writable, 0);
  size_t read = 0;
  while (read < written) {
    const std::string got = Read(b, 100'000);
    if (got != "<nothing yet>") read += got.size();
    time.Run();  // TLS has bytes of its own on the way
  }
  EXPECT_EQ(read, written);
  time.RunUntil([&] { return listener.writable == 1; });
}

TEST_P(StreamTest, ShutdownWriteIsReadAsTheEndAndTheOtherDirectionGoesOn) {
  Write(a, "last");
  a.ShutdownWrite();
  b.WaitReadable(listener);
  time.RunUntil([&] { return listener.readable == 1; });
  EXPECT_EQ(Read(b), "last");
  EXPECT_EQ(Read(b), "<end>");
  EXPECT_EQ(Write(b, "more").kind, IoResult::Kind::kOk);
  EXPECT_EQ(Read(a), "more");
}

TEST_P(StreamTest, AfterCloseNothingIsToldAndThePeerReadsTheEnd) {
  a.WaitReadable(listener);
  a.WaitWritable(listener);
  time.worker.Post([&] { a.Close(); });
  Write(b, "x");
  a.Close();
  a.Close();
  time.Run();
  EXPECT_EQ(listener.readable + listener.writable, 0);
  EXPECT_EQ(Read(a), "<end>");
  EXPECT_EQ(Write(a, "x").kind, IoResult::Kind::kError);
  a.WaitReadable(listener);
  time.Run();
  EXPECT_EQ(listener.readable, 0);
  b.WaitReadable(listener);
  time.RunUntil([&] { return listener.readable == 1; });
  IoResult written = Write(b, "y");
  EXPECT_EQ(written.kind, IoResult::Kind::kError);  // and no SIGPIPE
  EXPECT_EQ(written.error, EPIPE);
}

TEST_P(StreamTest, ItMayBeDestroyedWhileItWaitsAndFromInsideItsListener) {
  Listener other;
  a.WaitReadable(other);
  b.WaitReadable(listener);
  listener.on_readable = [&] { ends.b.reset(); };
  Write(a, "x");
  time.RunUntil([&] { return listener.readable == 1; });
  ends.a.reset();
  time.Run();
  EXPECT_EQ(listener.readable, 1);
}

INSTANTIATE_TEST_SUITE_P(Socket, StreamTest, ::testing::Values(&MakeSockets));
INSTANTIATE_TEST_SUITE_P(Tls, StreamTest, ::testing::Values(&MakeTls));
INSTANTIATE_TEST_SUITE_P(Memory, StreamTest, ::testing::Values(&MakeMemory));

TEST(MemoryStream, BrokenItLosesWhatIsInFlightAndBothEndsKnow) {
  test::ManualWorker time;
  auto pair = MemoryStream::Make(time.worker, "a", "b");
  StreamTest::Write(*pair.near, "lost");
  Listener listener;
  pair.far->WaitReadable(listener);
  pair.near->Break(ECONNRESET);
  time.Run();
  EXPECT_EQ(listener.readable, 1);
  uint8_t byte;
  EXPECT_EQ(pair.far->Read(&byte, 1).error, ECONNRESET);
  EXPECT_EQ(StreamTest::Write(*pair.near, "x").error, ECONNRESET);
}

TEST(MemoryStream, ItsBufferMayShrinkBelowWhatItHoldsAndGrowAgain) {
  test::ManualWorker time;
  auto pair = MemoryStream::Make(time.worker, "a", "b", 10);
  EXPECT_EQ(StreamTest::Write(*pair.near, "0123456789abc").bytes, 10u);
  EXPECT_EQ(StreamTest::Read(*pair.far, 4), "0123");
  pair.near->SetBufferBytes(3);
  EXPECT_EQ(StreamTest::Write(*pair.near, "x").kind, IoResult::Kind::kWouldBlock);
  pair.near->SetBufferBytes(20);
  EXPECT_EQ(StreamTest::Write(*pair.near, "abcdefghijklmnopq").bytes, 14u);
  EXPECT_EQ(StreamTest::Read(*pair.far), "456789abcdefghijklmn");
}

}  // namespace
}  // namespace sluice::net
