#include "net/passed_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "integration/support/temp_dir.h"
#include "listening.h"

namespace sluice::net {
namespace {

// A copy of `fd` at a number that is free with those behind it.
int PassAt(int number, int fd) { return ::dup2(fd, number); }
constexpr int kFirst = 200;

base::Result<PassedSockets> Take(const char* fds, const char* names) {
  return PassedSockets::Take("77", fds, names, 77, kFirst);
}

TEST(PassedSockets, AListenerTakesTheOneOfItsAddressOrItsName) {
  auto one = Listen("127.0.0.1:0"), two = Listen("127.0.0.1:0");
  PassAt(kFirst, one->fd());
  PassAt(kFirst + 1, two->fd());
  auto passed = Take("2", "grpc:other");
  ASSERT_TRUE(passed.ok()) << passed.error().detail;
  EXPECT_EQ(passed->Strangers(), "grpc (" + one->address().ToString() + "), other (" + two->address().ToString() + ")");
  EXPECT_NE(::fcntl(kFirst, F_GETFD) & FD_CLOEXEC, 0) << "a child would inherit it";
  auto by_address = passed->Find(two->address(), "grpc", {});
  ASSERT_TRUE(by_address.has_value());
  EXPECT_EQ(by_address->fd(), kFirst + 1);
  auto by_name = passed->Find(Parse("127.0.0.1:1"), "grpc", {});
  ASSERT_TRUE(by_name.has_value());
  EXPECT_EQ(by_name->address(), one->address());
  EXPECT_TRUE(by_name->borrowed());
  EXPECT_FALSE(passed->Find(one->address(), "grpc", {}).has_value()) << "it is taken";
  EXPECT_EQ(passed->Strangers(), "");
}

TEST(PassedSockets, ThoseOfAnotherProcessAreNotTaken) {
  for (const char* pid : {"78", "", "x", "77x", static_cast<const char*>(nullptr)}) {
    auto passed = PassedSockets::Take(pid, "1", nullptr, 77, kFirst);
    ASSERT_TRUE(passed.ok());
    EXPECT_EQ(passed->Strangers(), "");
  }
}

TEST(PassedSockets, WhatIsNoListeningSocketIsAnErrorThatNamesIt) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  PassAt(kFirst, pair[0]);
  auto passed = Take("1", "accepted");
  ASSERT_FALSE(passed.ok());
  EXPECT_EQ(passed.error().detail, "socket 1 that was passed (\"accepted\"): it is no stream socket that listens");
  EXPECT_EQ(::fcntl(kFirst, F_GETFD), -1) << "closed";
  ::close(pair[0]);
  ::close(pair[1]);
  EXPECT_FALSE(Take("1", nullptr).ok()) << "a number without a descriptor";
  for (const char* count : {"-1", "1025", "x", ""}) EXPECT_FALSE(Take(count, nullptr).ok()) << count;
  EXPECT_EQ(Take(nullptr, nullptr)->Strangers(), "");
}

TEST(PassedSockets, KeptOnesThatNoListenerWantsAreGivenUp) {
  auto one = Listen("127.0.0.1:0");
  const std::string name = *PassedSockets::NameOfKept(one->address());
  EXPECT_EQ(name, "sluice-kept-127.0.0.1%3A" + std::to_string(one->address().port()));
  PassAt(kFirst, one->fd());
  auto passed = Take("1", name.c_str());
  ASSERT_TRUE(passed.ok());
  EXPECT_EQ(passed->Strangers(), "") << "it is the daemon's own";
  EXPECT_FALSE(passed->Find(Parse("127.0.0.1:1"), name, {}).has_value());
  EXPECT_EQ(passed->DropKept(), std::vector{name});
  EXPECT_EQ(::fcntl(kFirst, F_GETFD), -1);
  EXPECT_EQ(PassedSockets::NameOfKept(Parse("unix:/" + std::string(100, '%'))), std::nullopt) << "too long";
}

TEST(PassedSockets, OnlyAFileOfOurOwnIsTakenAwayAtTheEnd) {
  integration::TempDir dir;
  for (const bool kept : {false, true}) {
    auto original = Listen("unix:" + dir.File("s"));
    PassAt(kFirst, original->fd());
    const std::string name = kept ? *PassedSockets::NameOfKept(original->address()) : "theirs";
    auto passed = Take("1", name.c_str());
    ASSERT_TRUE(passed.ok());
    { auto taken = passed->Find(original->address(), "", {}); }
    EXPECT_EQ(::access(dir.File("s").c_str(), F_OK) == 0, !kept);
  }
}

// A process that was killed while it drained had told its socket to drop clients.
TEST(PassedSockets, AFilterOfTheProcessBeforeGoesAway) {
  auto one = Listen("127.0.0.1:0");
  one->DropNewConnections();
  PassAt(kFirst, one->fd());
  auto passed = Take("1", nullptr);
  ASSERT_TRUE(passed.ok());
  const int client = Connect(one->address());
  EXPECT_GE(client, 0);
  ::close(client);
}

}  // namespace
}  // namespace sluice::net
