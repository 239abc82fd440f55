#include "net/notify_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "integration/support/temp_dir.h"

namespace sluice::net {
namespace {

// A supervisor's end, at a path or, with '@', at an abstract name.
class Ear {
 public:
  explicit Ear(std::string address) {
    if (address[0] == '@') address[0] = '\0';
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.data(), address.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&name), length), 0) << std::strerror(errno);
  }
  ~Ear() { ::close(fd_); }
  // One message; `passed`: the descriptor that came along, or -1.
  std::string Hear(int* passed) const {
    char text[512], control[CMSG_SPACE(sizeof(int))];
    iovec part{text, sizeof(text)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *passed = -1;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) std::memcpy(passed, CMSG_DATA(header), sizeof(int));
    return got < 0 ? "" : std::string(text, static_cast<size_t>(got));
  }

 private:
  int fd_;
};

TEST(NotifySocket, SpeaksToAPathAndToAnAbstractName) {
  integration::TempDir dir;
  for (const std::string& address : {dir.File("notify"), "@sluice-notify-test-" + std::to_string(::getpid())}) {
    Ear ear(address);
    auto notify = NotifySocket::Open(address);
    ASSERT_TRUE(notify.ok()) << notify.error().detail;
    EXPECT_TRUE(notify->Send("READY=1\nSTATUS=x").ok());
    int passed = -1;
    EXPECT_EQ(ear.Hear(&passed), "READY=1\nSTATUS=x");
    EXPECT_EQ(passed, -1);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    EXPECT_TRUE(notify->Send("FDSTORE=1", {&ends[1], 1}).ok());
    EXPECT_EQ(ear.Hear(&passed), "FDSTORE=1");
    ASSERT_GE(passed, 0);
    EXPECT_EQ(::write(passed, "y", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "another pipe was passed";
    for (const int fd : {ends[0], ends[1], passed}) ::close(fd);
  }
}

TEST(NotifySocket, WithoutASupervisorNothingHappens) {
  EXPECT_TRUE(NotifySocket().Send("READY=1").ok());
  EXPECT_FALSE(NotifySocket().open());
}

TEST(NotifySocket, WhatCannotBeSentIsAnError) {
  integration::TempDir dir;
  auto gone = NotifySocket::Open(dir.File("none"));
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->Send("READY=1").error().kind, base::ErrorKind::kIo);
  for (const std::string& address : {std::string(), std::string("/"), std::string("vsock:2:1"), std::string(108, '/')})
    EXPECT_EQ(NotifySocket::Open(address).error().kind, base::ErrorKind::kInvalidArgument) << address;
}

}  // namespace
}  // namespace sluice::net
