// TLS at its edges: random cuts and sizes, tickets over changes of keys, certificates that end meanwhile, the wire's
// bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/random.h"
#include "support/tls_pair.h"

namespace sluice::net {
namespace {

using TlsEdge = test::TlsPair;
using ::testing::HasSubstr;

// One direction: bytes of a known sequence, written and read in pieces of any size.
struct Direction {
  Stream* from;
  Stream* to;
  size_t size, written = 0, read = 0;

  static uint8_t ByteAt(size_t i) { return static_cast<uint8_t>(i * 131 + (i >> 8)); }
  void Step(base::Random& random) {
    if (written < size && random.Below(3) != 0) {
      std::vector<uint8_t> bytes(
          std::min<size_t>(size - written, 1 + random.Below(random.Below(2) == 0 ? 40 : 70'000)));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteAt(written + i);
      const size_t cut = random.Below(bytes.size() + 1);
      const iovec parts[] = {{bytes.data(), cut}, {bytes.data() + cut, bytes.size() - cut}};
      const IoResult result = from->Write(parts, 2);
      if (result.kind == IoResult::Kind::kOk)
        written += result.bytes;
      else
        ASSERT_EQ(result.kind, IoResult::Kind::kWouldBlock);
    }
    std::vector<uint8_t> into(1 + random.Below(random.Below(2) == 0 ? 20 : 100'000));
    const IoResult result = to->Read(into.data(), into.size());
    if (result.kind == IoResult::Kind::kWouldBlock) return;
    ASSERT_EQ(result.kind, IoResult::Kind::kOk);
    ASSERT_GT(result.bytes, 0u);
    for (size_t i = 0; i < result.bytes; ++i) ASSERT_EQ(into[i], ByteAt(read + i)) << "byte " << read + i;
    read += result.bytes;
  }
};

TEST_F(TlsEdge, BytesArriveWholeAndInOrderHoweverTheyAreCut) {
  const char* given = std::getenv("SLUICE_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  base::Random random(seed);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    listener.version_min = listener.version_max = random.Below(2) == 0 ? TlsVersion::k12 : TlsVersion::k13;
    call_bytes_max = 1 + random.Below(random.Below(2) == 0 ? 30 : 20'000);
    MakeContexts();
    Connect();
    ASSERT_NO_FATAL_FAILURE(ExpectConnected());
    Direction up{at_client.stream.get(), at_server.stream.get(), random.Below(300) * call_bytes_max};
    Direction down{at_server.stream.get(), at_client.stream.get(), random.Below(300) * call_bytes_max};
    for (int step = 0; up.read < up.size || down.read < down.size; ++step) {
      ASSERT_LT(step, 2'000'000) << up.read << " of " << up.size << ", " << down.read << " of " << down.size;
      ASSERT_NO_FATAL_FAILURE(up.Step(random));
      ASSERT_NO_FATAL_FAILURE(down.Step(random));
      time.Run();
    }
  }
}

TEST_F(TlsEdge, TicketsOpenUnderTheFormerKeyAndNotUnderOneBefore) {
  for (TlsVersion version : {TlsVersion::k12, TlsVersion::k13}) {
    SCOPED_TRACE(ToString(version));
    listener.version_min = listener.version_max = version;
    MakeContexts();
    const auto connect = [this] {
      Connect();
      ExpectConnected();
      Read(*at_client.stream);  // tickets of TLS 1.3 come behind the handshake
      return at_client.stream->peer().resumed;
    };
    EXPECT_FALSE(connect());
    EXPECT_TRUE(connect());
    tickets->Rotate();
    EXPECT_TRUE(connect());  // under the former key, and a new ticket is given
    tickets->Rotate();
    // Of TLS 1.2 OpenSSL's client does not hand on a ticket that came with a resumption.
    EXPECT_EQ(connect(), version == TlsVersion::k13);
    tickets->Rotate();
    tickets->Rotate();
    EXPECT_FALSE(connect());
  }
}

TEST_F(TlsEdge, KeysChangeWhenTheirTimeIsOver) {
  const auto first = tickets->current().name;
  const base::TimePoint start = time.worker.now();
  tickets->RotateIfDue(start);
  tickets->RotateIfDue(start + TlsTicketKeys::kLifetime - std::chrono::seconds(1));
  EXPECT_EQ(tickets->current().name, first);
  tickets->RotateIfDue(start + TlsTicketKeys::kLifetime);
  EXPECT_NE(tickets->current().name, first);
  TlsTicketKeys::Key key;
  EXPECT_EQ(tickets->Find(first.data(), &key), TlsTicketKeys::Found::kFormer);
}

// OpenSSL does not verify a session that is resumed. The clock is the system's, so this takes the seconds that it must.
TEST_F(TlsEdge, ASessionIsNotResumedByACertificateThatHasEnded) {
  Trust();
  client = test::MakeCert({.common_name = "c", .names = "URI:spiffe://d/c", .until = 3}, &ca);
  client_has_certificate = true;
  MakeContexts();
  Connect();
  ASSERT_NO_FATAL_FAILURE(ExpectConnected());
  Read(*at_client.stream);
  ASSERT_GT(client_context->sessions().size(), 0u);
  const std::chrono::system_clock::time_point end(std::chrono::seconds(Describe(client.certificate).not_after + 1));
  while (std::chrono::system_clock::now() < end) std::this_thread::yield();
  Connect();
  EXPECT_EQ(at_server.stream, nullptr);
  EXPECT_EQ(at_server.failure, TlsFailure::kCertificate);
  EXPECT_THAT(at_server.detail, HasSubstr("expired"));
}

TEST(TlsWire, RefusesWhatWouldGoBeyondItsBound) {
  TlsWire wire;
  BIO* bio = wire.NewBio();
  const std::vector<char> bytes(TlsWire::kOutBytesMax - 10, 'x');
  size_t done = 0;
  EXPECT_EQ(BIO_write_ex(bio, bytes.data(), bytes.size(), &done), 1);
  EXPECT_EQ(BIO_write_ex(bio, bytes.data(), 11, &done), 0);
  EXPECT_EQ(BIO_write_ex(bio, bytes.data(), 10, &done), 1);
  EXPECT_EQ(wire.out_size(), TlsWire::kOutBytesMax);
  BIO_free(bio);
}

}  // namespace
}  // namespace sluice::net
