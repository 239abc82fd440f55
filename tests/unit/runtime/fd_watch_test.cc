// Sockets in a worker's reactor: edges, what is asked for the next turn, and objects that go while events of theirs are
// on the way.
#include "runtime/fd_watch.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <latch>
#include <memory>
#include <vector>

#include "support/manual_worker.h"

namespace sluice::runtime {
namespace {

// One end of a connected pair, watched; the test holds the other.
struct Socket final : FdWatch {
  explicit Socket(Worker& w, uint32_t events = EPOLLIN) : worker(w) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    fd = fds[0];
    other = fds[1];
    EXPECT_EQ(worker.Watch(fd, events, *this), 0);
  }
  ~Socket() {
    if (watched) worker.Unwatch(fd, *this);
    ::close(fd);
    ::close(other);
  }
  void OnEdge(uint32_t events) override {
    ++edges;
    seen = events;
    turn = worker.stats().turns;
    if (on_edge) on_edge();
  }
  void OnRequeued() override {
    ++told;
    turn = worker.stats().turns;
    if (on_told) on_told();
  }
  void Send() { EXPECT_EQ(::send(other, "x", 1, MSG_NOSIGNAL), 1); }

  Worker& worker;
  int fd = -1, other = -1;
  bool watched = true;
  int edges = 0, told = 0;
  uint32_t seen = 0;
  uint64_t turn = 0;
  std::function<void()> on_edge, on_told;
};

TEST(FdWatch, AnEdgeIsToldOnceAlsoOneFromBeforeItWasWatched) {
  test::ManualWorker time;
  Socket socket(time.worker);
  time.Run();
  EXPECT_EQ(socket.edges, 0);
  socket.Send();
  time.Run();
  EXPECT_EQ(socket.edges, 1);
  EXPECT_EQ(socket.seen, static_cast<uint32_t>(EPOLLIN));
  time.Run();  // nothing was read, and nothing new has come
  EXPECT_EQ(socket.edges, 1);
  socket.Send();
  time.Run();
  EXPECT_EQ(socket.edges, 2);
  time.worker.Rewatch(socket.fd, EPOLLIN | EPOLLOUT, socket);
  time.Run();
  EXPECT_EQ(socket.edges, 3);
  EXPECT_EQ(socket.seen, static_cast<uint32_t>(EPOLLIN | EPOLLOUT));
}

TEST(FdWatch, ADescriptorThatCannotBeWatchedIsAnError) {
  test::ManualWorker time;
  Socket socket(time.worker);
  EXPECT_EQ(time.worker.Watch(socket.fd, EPOLLIN, socket), EEXIST);
  EXPECT_EQ(time.worker.Watch(-1, EPOLLIN, socket), EBADF);
}

TEST(FdWatch, WhatIsAskedForIsToldNextTurnAndOnce) {
  test::ManualWorker time;
  Socket socket(time.worker);
  time.worker.RequeueNextTurn(socket);
  time.worker.RequeueNextTurn(socket);
  EXPECT_EQ(socket.told, 0);
  uint64_t first = 0;
  socket.on_told = [&] {
    if (socket.told > 1) return;
    first = socket.turn;
    time.worker.RequeueNextTurn(socket);
  };
  time.Run();
  EXPECT_EQ(socket.told, 2);
  EXPECT_EQ(socket.turn, first + 1);
}

TEST(FdWatch, AskedForByAnEdgeItIsToldATurnLater) {
  test::ManualWorker time;
  Socket socket(time.worker);
  uint64_t edge = 0;
  socket.on_edge = [&] {
    edge = socket.turn;
    time.worker.RequeueNextTurn(socket);
  };
  socket.Send();
  time.Run();
  EXPECT_EQ(socket.told, 1);
  EXPECT_EQ(socket.turn, edge + 1);
}

TEST(FdWatch, UnwatchedItIsNotToldWhatItAskedFor) {
  test::ManualWorker time;
  Socket socket(time.worker);
  time.worker.RequeueNextTurn(socket);
  time.worker.Unwatch(socket.fd, socket);
  socket.watched = false;
  time.Run();
  EXPECT_EQ(socket.told, 0);
}

// One that always asks again leaves room for all others: each gets one turn of each round.
TEST(FdWatch, OneThatAsksForEveryTurnDoesNotHoldUpTheOthers) {
  test::ManualWorker time;
  Socket busy(time.worker), other(time.worker);
  int posted = 0;
  busy.on_told = [&] {
    if (busy.told == 3) other.Send();
    if (busy.told == 5) time.worker.Post([&] { posted = busy.told; });
    if (busy.told < 50) time.worker.RequeueNextTurn(busy);
  };
  other.on_edge = [&] { EXPECT_LE(busy.told, 4); };
  time.worker.RequeueNextTurn(busy);
  time.Run();
  EXPECT_EQ(busy.told, 50);
  EXPECT_EQ(other.edges, 1);
  EXPECT_LE(posted, 6);
  EXPECT_GT(posted, 0);
}

// Both events come with one epoll_wait; whichever is told first destroys the other.
TEST(FdWatch, AnObjectDestroyedByAnEarlierEventOfItsBatchHearsNothing) {
  test::ManualWorker time;
  auto a = std::make_unique<Socket>(time.worker);
  auto b = std::make_unique<Socket>(time.worker);
  int heard = 0;
  a->on_edge = [&] { ++heard, b.reset(); };
  b->on_edge = [&] { ++heard, a.reset(); };
  a->Send();
  b->Send();
  time.Run();
  EXPECT_EQ(heard, 1);
  EXPECT_TRUE((a == nullptr) != (b == nullptr));
}

TEST(FdWatch, AnObjectDestroyedBeforeItsTurnHearsNothing) {
  test::ManualWorker time;
  auto a = std::make_unique<Socket>(time.worker);
  auto b = std::make_unique<Socket>(time.worker);
  Socket edge(time.worker);
  a->on_told = [&] { b.reset(); };
  edge.on_edge = [&] { time.worker.RequeueNextTurn(edge); };
  edge.Send();
  time.worker.RequeueNextTurn(*a);
  time.worker.RequeueNextTurn(*b);
  time.Run();
  EXPECT_EQ(a->told, 1);
  EXPECT_EQ(b, nullptr);
  EXPECT_EQ(edge.told, 1);
}

TEST(FdWatch, ItMayDestroyItself) {
  test::ManualWorker time;
  auto a = std::make_unique<Socket>(time.worker);
  auto b = std::make_unique<Socket>(time.worker);
  a->on_edge = [&] { a.reset(); };
  b->on_told = [&] { b.reset(); };
  a->Send();
  time.worker.RequeueNextTurn(*b);
  time.Run();
  EXPECT_EQ(a, nullptr);
  EXPECT_EQ(b, nullptr);
}

// As a child between fork and exec has: the socket lives on when we close ours.
TEST(FdWatch, UnwatchedItHearsNothingAlsoWhileAnotherDescriptorKeepsTheSocketOpen) {
  test::ManualWorker time;
  Socket socket(time.worker);
  int copy = ::dup(socket.fd);
  time.worker.Unwatch(socket.fd, socket);
  socket.watched = false;
  socket.Send();
  time.Run();
  EXPECT_EQ(socket.edges, 0);
  ::close(copy);
}

// From the last thing that happens in a turn, on a worker that has nothing else to do: the next turn must not wait.
TEST(FdWatch, ARequeueWithoutAnEventIsToldWithoutAWait) {
  Runtime runtime(test::OneWorker());
  std::latch told(1);
  std::unique_ptr<Socket> socket;
  runtime.Start();
  runtime.worker(0).Post([&] {
    socket = std::make_unique<Socket>(runtime.worker(0));
    socket->on_told = [&] { told.count_down(); };
    runtime.worker(0).RequeueNextTurn(*socket);
  });
  told.wait();
  runtime.Shutdown();
}

TEST(FdWatch, MoreEventsThanOneWaitTakesAllArrive) {
  test::ManualWorker time;
  std::vector<std::unique_ptr<Socket>> sockets;
  for (int i = 0; i < 400; ++i) sockets.push_back(std::make_unique<Socket>(time.worker));
  for (auto& socket : sockets) socket->Send();
  time.Run();
  for (auto& socket : sockets) EXPECT_EQ(socket->edges, 1);
}

}  // namespace
}  // namespace sluice::runtime
