#include "handover/message_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::handover {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;

constexpr milliseconds kNow{0}, kLong{30'000};

class MessageSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = MessageSocket::MakePair();
    ASSERT_TRUE(pair.ok());
    ours = std::move(pair->first);
    auto other = MessageSocket::Adopt(pair->second.Release());
    ASSERT_TRUE(other.ok());
    theirs = std::move(*other);
  }
  MessageSocket ours, theirs;
};

TEST_F(MessageSocketTest, MessagesKeepTheirBoundsAndOrder) {
  ASSERT_TRUE(ours.Send("one").ok());
  ASSERT_TRUE(ours.Send("and two").ok());
  EXPECT_EQ((*theirs.Receive(kLong))->message, "one");
  EXPECT_EQ((*theirs.Receive(kLong))->message, "and two");
  auto none = theirs.Receive(kNow);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

TEST_F(MessageSocketTest, DescriptorsGoAlongAndAreNotInherited) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  ASSERT_TRUE(ours.Send("a pipe", {ends, 2}).ok());
  auto received = theirs.Receive(kLong);
  ASSERT_TRUE(received.ok() && received->has_value());
  ASSERT_EQ((*received)->descriptors.size(), 2u);
  for (const Descriptor& each : (*received)->descriptors) EXPECT_NE(::fcntl(each.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write((*received)->descriptors[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(MessageSocketTest, AsManyDescriptorsAsAllowedFit) {
  std::vector<int> many(MessageSocket::kDescriptorsMax, ours.fd());
  ASSERT_TRUE(ours.Send("many", many).ok());
  EXPECT_EQ((*theirs.Receive(kLong))->descriptors.size(), many.size());
  many.push_back(ours.fd());
  EXPECT_EQ(ours.Send("too many", many).error().kind, ErrorKind::kTooLarge);
}

TEST_F(MessageSocketTest, TheLargestMessageFitsAndALargerOneIsRefused) {
  const std::string largest(MessageSocket::kBytesMax, 'x');
  ASSERT_TRUE(ours.Send(largest).ok());
  EXPECT_EQ((*theirs.Receive(kLong))->message, largest);
  EXPECT_EQ(ours.Send(largest + "x").error().kind, ErrorKind::kTooLarge);
  // Of a peer that does not keep to it.
  ASSERT_EQ(::send(ours.fd(), (largest + "yy").data(), largest.size() + 2, 0),
            static_cast<ssize_t>(largest.size() + 2));
  EXPECT_EQ(theirs.Receive(kLong).error().kind, ErrorKind::kInvalidArgument);
}

TEST_F(MessageSocketTest, APeerThatDoesNotReadNeverBlocksTheSender) {
  const std::string message(MessageSocket::kBytesMax, 'x');
  base::Status status = base::Ok();
  for (int i = 0; i < 10'000 && status.ok(); ++i) status = ours.Send(message);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kBusy);
  ASSERT_TRUE(theirs.Receive(kLong).ok());
  EXPECT_TRUE(ours.Send("small").ok());
}

TEST_F(MessageSocketTest, TheEndOfThePeerIsAnError) {
  ASSERT_TRUE(ours.Send("last").ok());
  ours.Close();
  EXPECT_EQ((*theirs.Receive(kLong))->message, "last");
  EXPECT_EQ(theirs.Receive(kLong).error().kind, ErrorKind::kIo);
  EXPECT_EQ(theirs.Send("to a peer that is gone").error().kind, ErrorKind::kIo);
}

TEST(MessageSocketAdoptTest, RefusesWhatIsNoSuchSocket) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor other(ends[1]);
  EXPECT_EQ(MessageSocket::Adopt(ends[0]).error().kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(MessageSocket::Adopt(1'000'000).error().kind, ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::handover
