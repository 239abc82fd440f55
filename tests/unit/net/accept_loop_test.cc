#include "net/accept_loop.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "base/log.h"
#include "listening.h"

namespace sluice::net {
namespace {

using Outcome = AcceptLoop::Outcome;

class AcceptLoopTest : public testing::Test {
 protected:
  ~AcceptLoopTest() override {
    for (int fd : fds_) ::close(fd);
  }
  void Connect(int count) {
    for (int i = 0; i < count; ++i) fds_.push_back(net::Connect(socket_.address()));
  }
  Outcome Run(int count = AcceptLoop::kAcceptsMax) { return loop_.Run(socket_.fd(), {}, count); }

  ListenSocket socket_ = std::move(*Listen("127.0.0.1:0"));
  std::vector<int> fds_;  // clients and what was accepted
  std::vector<std::string> peers_;
  int room_ = 1000;  // connections that are admitted
  size_t wanted_ = 1000;
  AcceptLoop loop_{"test", DescriptorReserve::kShare,
                   [this](int fd, const SocketAddress& peer) {
                     fds_.push_back(fd);
                     peers_.push_back(ToString(peer));
                     return peers_.size() < wanted_;
                   },
                   [this] { return --room_ >= 0; }};
};

TEST_F(AcceptLoopTest, AnEmptyQueueIsDrained) {
  EXPECT_EQ(Run(), Outcome::kDrained);
  Connect(3);
  EXPECT_EQ(Run(), Outcome::kDrained);
  EXPECT_EQ(peers_.size(), 3u);
}

TEST_F(AcceptLoopTest, AtTheBoundMoreMayBeLeft) {
  Connect(AcceptLoop::kAcceptsMax + 1);
  EXPECT_EQ(Run(), Outcome::kMore);
  EXPECT_EQ(peers_.size(), static_cast<size_t>(AcceptLoop::kAcceptsMax));
  EXPECT_EQ(Run(), Outcome::kDrained);
  EXPECT_EQ(peers_.size(), static_cast<size_t>(AcceptLoop::kAcceptsMax) + 1);
}

TEST_F(AcceptLoopTest, ConnectionsThatAreNotAdmittedStayInTheQueue) {
  Connect(3);
  room_ = 2;
  EXPECT_EQ(Run(), Outcome::kPause);
  EXPECT_EQ(peers_.size(), 2u);
  room_ = 100;
  EXPECT_EQ(Run(), Outcome::kDrained);
  EXPECT_EQ(peers_.size(), 3u);
}

TEST_F(AcceptLoopTest, TheCallbackMayEndTheRun) {
  Connect(3);
  wanted_ = 1;
  EXPECT_EQ(Run(), Outcome::kDrained);
  EXPECT_EQ(peers_.size(), 1u);
}

TEST_F(AcceptLoopTest, WithoutADescriptorItPausesAndTheConnectionWaits) {
  Connect(1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  // UBSan knows the logger's type from here on: to look at a new one it opens a pipe, for which there is no descriptor.
  SLUICE_LOG_WARN("the {} that follows is {} {}{}", std::string("warning"), "expected", 1, std::string());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(Run(), Outcome::kPause);
  EXPECT_EQ(Run(), Outcome::kPause);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(Run(), Outcome::kDrained);
  EXPECT_EQ(peers_.size(), 1u);
}

// The last eighth of the descriptors is not for clients.
TEST_F(AcceptLoopTest, OfTheReserveItTakesOneAtMost) {
  Connect(20);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(fds_[0]);
  ::close(next);
  const rlim_t limit = static_cast<rlim_t>(next) * 8 / 7 + 8;  // the reserve begins a few above the next descriptor
  const rlimit few{limit, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  AcceptLoop loop("test", DescriptorReserve::kShare, [this](int fd, const SocketAddress&) {
    fds_.push_back(fd);
    return true;
  });
  EXPECT_EQ(loop.Run(socket_.fd(), {}), Outcome::kPause);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(fds_.back(), DescriptorReserve::MarkOf(static_cast<int>(limit), DescriptorReserve::kShare));
}

TEST_F(AcceptLoopTest, AnErrorOfTheSocketEndsTheRun) {
  ASSERT_EQ(::shutdown(socket_.fd(), SHUT_RDWR), 0);  // accept4 says EINVAL from now on
  EXPECT_EQ(Run(1 << 30), Outcome::kMore);
}

}  // namespace
}  // namespace sluice::net
