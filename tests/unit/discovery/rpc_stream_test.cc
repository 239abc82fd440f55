// RpcStream against gRPC's own server: every order in which messages, ends and cancellations come.
#include "discovery/rpc/rpc_stream.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "discovery/rpc/backoff.h"
#include "support/socket_worker.h"

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers each message with as many as its text says, ends at "end" with FAILED_PRECONDITION, at the client's end with
// OK, and never where the method is /t.T/Hang.
class Server {
 public:
  Server() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int begun() const { return service_.begun; }
  int cancelled() const { return service_.cancelled; }
  std::string token() {
    std::lock_guard lock(service_.mutex);
    return service_.token;
  }

 private:
  struct Service;
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    Stream(Service& service, grpc::GenericCallbackServerContext& context)
        : service_(service), hang_(context.method() == "/t.T/Hang") {
      StartRead(&in_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) {
        if (!hang_) End(grpc::Status::OK);
        return;
      }
      std::vector<grpc::Slice> slices;
      EXPECT_TRUE(in_.Dump(&slices).ok());
      std::string text;
      for (const auto& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      if (text == "end") return End({grpc::StatusCode::FAILED_PRECONDITION, "as asked"});
      left_ = std::stoi(text);
      WriteOn();
    }
    void OnWriteDone(bool ok) override {
      if (ok) WriteOn();
    }
    void OnCancel() override {
      ++service_.cancelled;
      End(grpc::Status::CANCELLED);
    }
    void OnDone() override { delete this; }

   private:
    // Its end and its cancellation may both be heard.
    void End(const grpc::Status& status) {
      if (!ended_.exchange(true)) Finish(status);
    }
    void WriteOn() {
      if (left_ == 0) return StartRead(&in_);
      const grpc::Slice slice(std::to_string(left_--));
      out_ = grpc::ByteBuffer(&slice, 1);
      StartWrite(&out_);
    }
    Service& service_;
    const bool hang_;
    grpc::ByteBuffer in_, out_;
    int left_ = 0;
    std::atomic<bool> ended_ = false;
  };
  struct Service final : grpc::CallbackGenericService {
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      {
        std::lock_guard lock(mutex);
        if (const auto it = context->client_metadata().find("token"); it != context->client_metadata().end())
          token.assign(it->second.data(), it->second.size());
      }
      ++begun;
      return new Stream(*this, *context);
    }
    std::atomic<int> begun = 0, cancelled = 0;
    std::mutex mutex;
    std::string token;
  };
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class RpcStreamTest : public ::testing::Test {
 protected:
  ~RpcStreamTest() override {
    stream.reset();
    current.reset();
    time.runtime.Shutdown();
  }
  // A stream on the worker, and a task that takes all messages as long as `taking`.
  void Begin(const std::string& address, const std::string& method, milliseconds timeout = {}) {
    channel = std::make_shared<RpcChannel>(RpcTarget{.address = address});
    stream = std::make_unique<RpcStream>(channel, RpcStream::Options{method, {{"token", "t1"}}, timeout}, bell);
    time.runtime.SpawnPinOnStart(Listen(*this));
    time.Run();
  }
  static runtime::Task<void> Listen(RpcStreamTest& test) {
    for (;;) {
      co_await test.bell.Wait(base::kNever);
      test.TakeAll();
    }
  }
  void TakeAll() {
    while (taking && stream != nullptr) {
      std::optional<std::string> message = stream->Take();
      if (!message) break;
      heard.push_back(std::move(*message));
    }
  }
  bool Until(const std::function<bool()>& done) {
    for (const auto until = std::chrono::steady_clock::now() + seconds(10); !done(); std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > until) return false;
      time.Run();
    }
    return true;
  }

  Server server;
  test::SocketWorker time;
  std::optional<runtime::Worker::ScopedCurrentForTest> current{time.worker};
  Bell bell;
  std::shared_ptr<RpcChannel> channel;
  std::unique_ptr<RpcStream> stream;
  bool taking = true;
  std::vector<std::string> heard;
};

TEST_F(RpcStreamTest, MessagesGoBothWaysInOrder) {
  Begin(server.address(), "/t.T/Talk");
  stream->Send("3");
  stream->Send("2");
  ASSERT_TRUE(Until([&] { return heard.size() == 5; }));
  EXPECT_EQ(heard, (std::vector<std::string>{"3", "2", "1", "2", "1"}));
  EXPECT_FALSE(stream->end());
  EXPECT_EQ(server.token(), "t1");
  EXPECT_TRUE(channel->connected());
}

TEST_F(RpcStreamTest, AUnaryCallIsAStreamOfOneMessage) {
  Begin(server.address(), "/t.T/One");
  stream->Send("1");
  stream->SendEnd();
  ASSERT_TRUE(Until([&] { return stream->end().has_value(); }));
  EXPECT_TRUE(stream->end()->ok());
  EXPECT_EQ(heard, (std::vector<std::string>{"1"}));
}

TEST_F(RpcStreamTest, TheServersStatusIsHeardBehindItsMessages) {
  Begin(server.address(), "/t.T/Talk");
  taking = false;
  stream->Send("2");
  stream->Send("end");
  ASSERT_TRUE(Until([&] { return server.begun() == 1; }));
  time.Run();
  EXPECT_FALSE(stream->end()) << "not before what stands before it was taken";
  taking = true;
  ASSERT_TRUE(Until([&] {
    TakeAll();
    return stream->end().has_value();
  }));
  EXPECT_EQ(heard, (std::vector<std::string>{"2", "1"}));
  EXPECT_EQ(stream->end()->ToString(), "FAILED_PRECONDITION: as asked");
}

TEST_F(RpcStreamTest, AServerThatSendsFasterThanIsTakenWaits) {
  Begin(server.address(), "/t.T/Talk");
  taking = false;
  stream->Send("200");
  ASSERT_TRUE(Until([&] { return server.begun() == 1; }));
  for (int i = 0; i < 50; ++i) time.Run();
  taking = true;
  ASSERT_TRUE(Until([&] {
    TakeAll();
    return heard.size() == 200;
  }));
  EXPECT_EQ(heard.front(), "200");
  EXPECT_EQ(heard.back(), "1");
}

TEST_F(RpcStreamTest, AServerThatIsNotThereIsUnavailable) {
  Begin("127.0.0.1:1", "/t.T/Talk");
  stream->Send("1");
  ASSERT_TRUE(Until([&] { return stream->end().has_value(); }));
  EXPECT_THAT(stream->end()->ToString(), ::testing::StartsWith("UNAVAILABLE: "));
  EXPECT_FALSE(channel->connected());
  stream->Send("2");  // for nothing
  stream->SendEnd();
}

TEST_F(RpcStreamTest, ATimeoutEndsIt) {
  Begin(server.address(), "/t.T/Hang", milliseconds(50));
  ASSERT_TRUE(Until([&] { return stream->end().has_value(); }));
  EXPECT_EQ(stream->end()->code, static_cast<int>(grpc::StatusCode::DEADLINE_EXCEEDED));
}

TEST_F(RpcStreamTest, OneThatIsDestroyedIsCancelledAndTellsNothingMore) {
  Begin(server.address(), "/t.T/Talk");
  taking = false;
  stream->Send("200");  // more than the inbox takes: reading has stopped, or will
  ASSERT_TRUE(Until([&] { return server.begun() == 1; }));
  stream.reset();
  ASSERT_TRUE(Until([&] { return server.cancelled() == 1; }));
}

TEST_F(RpcStreamTest, ManyThatAreDestroyedInEachStateLeaveNothing) {
  for (int i = 0; i < 300; ++i) {
    channel = std::make_shared<RpcChannel>(RpcTarget{.address = i % 10 == 9 ? "127.0.0.1:1" : server.address()});
    auto one = std::make_unique<RpcStream>(channel, RpcStream::Options{"/t.T/Talk", {}, {}}, bell);
    if (i % 2 == 0) one->Send(std::to_string(i % 40));
    if (i % 3 == 0) one->Send("end");
    if (i % 5 == 0) one->SendEnd();
    for (int turn = 0; turn < i % 7; ++turn) {
      time.Run();
      std::this_thread::yield();
      if (i % 4 == 0) (void)one->Take();
    }
  }
  EXPECT_TRUE(Until([&] { return time.Run(), true; }));
}

// Without a server here, whose channels would keep the library's threads alive.
TEST(RpcStreamAloneTest, TheLastChannelOfTheProcessMayEndOnAThreadOfTheLibrary) {
  test::SocketWorker time;
  {
    const runtime::Worker::ScopedCurrentForTest current(time.worker);
    Bell bell;
    for (int i = 0; i < 50; ++i) {
      auto channel = std::make_shared<RpcChannel>(RpcTarget{.address = "127.0.0.1:1"});
      const std::weak_ptr<RpcChannel> gone = channel;
      { RpcStream stream(std::move(channel), {"/t.T/Talk", {}, {}}, bell); }
      for (const auto until = std::chrono::steady_clock::now() + seconds(10);
           !gone.expired() && std::chrono::steady_clock::now() < until; std::this_thread::yield())
        time.Run();  // a ring on its way holds it, too
      ASSERT_TRUE(gone.expired());
    }
  }
  time.runtime.Shutdown();
}

TEST(BackoffTest, DoublesWithJitterUpToItsBoundAndBeginsAnew) {
  base::Random random(7);
  Backoff backoff;
  base::Nanos expected = Backoff::kFirst;
  for (int i = 0; i < 12; ++i, expected = std::min(2 * expected, Backoff::kMax)) {
    const base::Nanos wait = backoff.Next(random);
    EXPECT_GE(wait, expected * 8 / 10) << i;
    EXPECT_LE(wait, expected * 12 / 10) << i;
  }
  Backoff often(milliseconds(300));
  for (int i = 0; i < 5; ++i) EXPECT_LE(often.Next(random), milliseconds(360)) << i;
  backoff.Reset();
  EXPECT_LE(backoff.Next(random), Backoff::kFirst * 12 / 10);
}

}  // namespace
}  // namespace sluice::discovery
