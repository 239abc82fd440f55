// Connections are handed on, also after a time without descriptors.
#include "admin/control_acceptor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <vector>

#include "admin/control_loop.h"
#include "base/clock.h"
#include "base/log.h"
#include "fake_backend.h"
#include "integration/support/wait_until.h"
#include "net/descriptor_reserve.h"
#include "net/socket_address.h"
#include "support/captured_log.h"

namespace sluice::admin {
namespace {

using integration::WaitUntil;

class ControlAcceptorTest : public testing::Test {
 protected:
  ~ControlAcceptorTest() override {
    Stop();
    for (int fd : accepted_) ::close(fd);
    for (int fd : clients_) ::close(fd);
  }
  void Start(const std::string& text) {
    auto socket = net::ListenSocket::Open(*net::Address::Parse(text), {});
    ASSERT_TRUE(socket.ok()) << socket.error().detail;
    loop_.emplace();
    acceptor_.emplace(loop_->context(), std::move(*socket), "admin RPC", net::DescriptorReserve::kOperatorsShare,
                      [this](int fd) {
                        std::lock_guard lock(mutex_);
                        accepted_.push_back(fd);
                      });
    loop_->Start();
  }
  void Stop() {
    if (loop_) loop_->Stop();
    acceptor_.reset();
    loop_.reset();
  }
  size_t Accepted() {
    std::lock_guard lock(mutex_);
    return accepted_.size();
  }
  int Socket(int family) {
    clients_.push_back(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return clients_.back();
  }
  int Connect(int fd) {
    const net::SocketAddress to = *net::ToSocketAddress(acceptor_->address());
    return ::connect(fd, to.get(), to.length);
  }

  TempDir dir_;
  std::optional<ControlLoop> loop_;
  std::optional<ControlAcceptor> acceptor_;
  std::mutex mutex_;
  std::vector<int> accepted_;  // under mutex_
  std::vector<int> clients_;
};

TEST_F(ControlAcceptorTest, HandsOnSocketsThatDoNotBlock) {
  Start("127.0.0.1:0");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Connect(Socket(AF_INET)), 0);  // more than are accepted in a row
  ASSERT_TRUE(WaitUntil([&] { return Accepted() == 100; }));
  EXPECT_TRUE(::fcntl(accepted_[0], F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(::fcntl(accepted_[0], F_GETFD) & FD_CLOEXEC);
}

TEST_F(ControlAcceptorTest, TheSocketsFileGoesWithIt) {
  const std::string path = dir_ / "s";
  Start("unix:" + path);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  Stop();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST_F(ControlAcceptorTest, OutOfDescriptorsItWaitsAndTriesAgain) {
  test::CapturedLog log;
  Start("unix:" + (dir_ / "s"));
  ASSERT_EQ(Connect(Socket(AF_UNIX)), 0);
  ASSERT_TRUE(WaitUntil([&] { return Accepted() == 1; }));
  const int waits = Socket(AF_UNIX);
  // UBSan looks at an object's type through a pipe, once for each type: let it see those of the log and the clock
  // while there are descriptors for one.
  (void)base::Clock::Steady().Now();
  SLUICE_LOG_WARN("the {} that follows is {} {}", std::string("warning"), "expected", 1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(Connect(waits), 0);
  EXPECT_TRUE(WaitUntil([&] { return log.Take().find("accepting is paused") != std::string::npos; }));
  EXPECT_EQ(Accepted(), 1u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(WaitUntil([&] { return Accepted() == 2; }));
  Stop();  // it may log until then
}

}  // namespace
}  // namespace sluice::admin
