// Who arrives is handed on, also after a time without descriptors.
#include "admin/rpc_listener.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "captured_log.h"
#include "fake_backend.h"
#include "integration/support/wait_until.h"

namespace sluice::admin {
namespace {

using integration::WaitUntil;

class RpcListenerTest : public testing::Test {
 protected:
  ~RpcListenerTest() override {
    listener_.reset();
    for (int fd : accepted_) ::close(fd);
    for (int fd : clients_) ::close(fd);
  }
  void Start(const std::string& text) {
    auto opened = RpcListener::Open(*ParseListenAddress(text));
    ASSERT_TRUE(opened.ok()) << opened.error().detail;
    listener_ = std::move(*opened);
    listener_->Start([this](int, int fd) {
      std::lock_guard lock(mutex_);
      accepted_.push_back(fd);
    });
  }
  size_t Accepted() {
    std::lock_guard lock(mutex_);
    return accepted_.size();
  }
  int Socket(int family) {
    clients_.push_back(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return clients_.back();
  }
  int ConnectUnix(int fd) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    const std::string& path = listener_->address().path;
    path.copy(where.sun_path, sizeof(where.sun_path) - 1);
    return ::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof(where));
  }
  int ConnectTcp(int fd) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(listener_->address().port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof(where));
  }

  TempDir dir_;
  std::unique_ptr<RpcListener> listener_;
  std::mutex mutex_;
  std::vector<int> accepted_;  // under mutex_
  std::vector<int> clients_;
};

TEST_F(RpcListenerTest, HandsOnSocketsThatDoNotBlock) {
  Start("127.0.0.1:0");
  EXPECT_NE(listener_->address().port, 0);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(ConnectTcp(Socket(AF_INET)), 0);  // more than are accepted in a row
  ASSERT_TRUE(WaitUntil([&] { return Accepted() == 40; }));
  EXPECT_TRUE(::fcntl(accepted_[0], F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(::fcntl(accepted_[0], F_GETFD) & FD_CLOEXEC);
}

TEST_F(RpcListenerTest, ANameIsAllItsAddresses) {
  Start("localhost:0");
  ASSERT_EQ(ConnectTcp(Socket(AF_INET)), 0);
  ASSERT_TRUE(WaitUntil([&] { return Accepted() == 1; }));
}

TEST_F(RpcListenerTest, APortInUseIsAnErrorThatNamesIt) {
  Start("127.0.0.1:0");
  auto second = RpcListener::Open(listener_->address());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, base::ErrorKind::kIo);
  EXPECT_THAT(second.error().detail, testing::HasSubstr(listener_->address().ToString() + ": Address already in use"));
}

TEST_F(RpcListenerTest, ANameThatIsNotThereIsAnError) {
  EXPECT_EQ(RpcListener::Open(*ParseListenAddress("nowhere.invalid:1")).error().kind, base::ErrorKind::kIo);
}

TEST_F(RpcListenerTest, TheSocketsFileGoesWithItUnlessItIsAnothers) {
  const std::string path = dir_ / "s";
  Start("unix:" + path);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  listener_.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  Start("unix:" + path);
  ::unlink(path.c_str());
  std::ofstream(path) << "another's";
  listener_.reset();
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

TEST_F(RpcListenerTest, OutOfDescriptorsItWaitsAndTriesAgain) {
  CapturedLog log;
  Start("unix:" + (dir_ / "s"));
  ASSERT_EQ(ConnectUnix(Socket(AF_UNIX)), 0);
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
  EXPECT_EQ(ConnectUnix(waits), 0);
  EXPECT_TRUE(WaitUntil([&] { return log.Take().find("accepts nothing for now") != std::string::npos; }));
  EXPECT_EQ(Accepted(), 1u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(WaitUntil([&] { return Accepted() == 2; }));
}

}  // namespace
}  // namespace sluice::admin
