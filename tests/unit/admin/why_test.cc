// sluicectl why and top from outside: what they print of what the daemon keeps, and what a terminal looks like after
// top.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>

#include "admin/admin_server.h"
#include "program.h"

namespace sluice::admin {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

FailedCallsView::Call Failed(uint64_t number, std::string cause, proxy::GrpcCode status) {
  proxy::FailedCall call;
  call.id = proxy::CallId::Of(1, number);
  call.peer = "127.0.0.1:4711";
  call.path = "/shop.Cart/Add";
  call.authority = "shop";
  call.route = "carts";
  call.cluster = "shop";
  call.cause = std::move(cause);
  call.status = status;
  call.processed = "maybe";
  call.total = milliseconds(200);
  FailedCallsView::Call out(std::move(call));
  out.ago = milliseconds(1500);
  return out;
}

class WhyAndTop : public testing::Test {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<AdminServer>> server = AdminServer::Start("unix:" + (dir_ / "s"), backend_);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
  }
  ProgramResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), SLUICECTL_PATH);
    return RunProgram(words, {"SLUICE_ADMIN=" + server_->address()});
  }
  void Keep(std::vector<FailedCallsView::Call> calls) {
    FailedCallsView view;
    view.calls = std::move(calls);
    view.kept = 100;
    view.failed = view.calls.size();
    view.process = proxy::CallId::Of(1, 1).ToString().substr(0, 8);
    backend_.set_failed_calls(std::move(view));
  }
  std::string WhyOf(const FailedCallsView::Call& call) {
    Keep({call});
    const ProgramResult result = Ctl({"why", call.id.ToString()});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }

  TempDir dir_;
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(WhyAndTop, ADeadlineSaysWhereTheTimeWent) {
  FailedCallsView::Call call = Failed(5, "deadline", proxy::GrpcCode::kDeadlineExceeded);
  call.detail = "the call's deadline passed";
  EXPECT_THAT(WhyOf(call), HasSubstr("ran out before it was sent to an endpoint"));
  call.limit = "cluster/shop/rate";
  call.waits = "process/concurrency=1.500ms,cluster/shop/rate=198.500ms";
  EXPECT_THAT(WhyOf(call), HasSubstr("ran out in the queue of the limit cluster/shop/rate"));
  EXPECT_THAT(WhyOf(call), HasSubstr("waited      1.500ms for the limit process/concurrency\n"
                                     "  waited      198.500ms for the limit cluster/shop/rate\n"));
  call.limit.clear();
  call.attempts = 1;
  call.endpoint = "e1";
  call.connecting = milliseconds(150);
  EXPECT_THAT(WhyOf(call), HasSubstr("No connection to endpoint e1 was there in time"));
  EXPECT_THAT(WhyOf(call), HasSubstr("connecting  150.000 ms until a connection to e1 was given up"));
  call.to_upstream = milliseconds(151);
  const std::string hung = WhyOf(call);
  EXPECT_THAT(hung, StartsWith("/shop.Cart/Add failed with DEADLINE_EXCEEDED, 1.5 s ago\n"
                               "Endpoint e1 had the request for 49.000 ms and did not answer.\n"));
  EXPECT_THAT(hung, HasSubstr("sent        the request went to e1 151.000 ms after the call's first byte"));
  EXPECT_THAT(hung, HasSubstr("processed   maybe: a backend may have worked on it"));
  call.to_response = milliseconds(160);
  EXPECT_THAT(WhyOf(call), HasSubstr("had begun to answer, and had not finished in time"));
}

TEST_F(WhyAndTop, TriesAreARowEachAndAnEndpointMayHaveColons) {
  FailedCallsView::Call call = Failed(6, "connect_failed", proxy::GrpcCode::kUnavailable);
  call.attempts = 2;
  call.endpoint = "[::1]:50051";
  call.processed = "no";
  call.tries = "10.0.0.1:50051:connect_failed:0.297ms,[::1]:50051:connect_failed:0.113ms";
  const std::string out = WhyOf(call);
  EXPECT_THAT(out, HasSubstr("attempt 1   at 10.0.0.1:50051: connect_failed after 0.297ms\n"
                             "  attempt 2   at [::1]:50051: connect_failed after 0.113ms\n"));
  EXPECT_THAT(out, HasSubstr("no: no backend has worked on it; it may be made again"));
}

TEST_F(WhyAndTop, WhatAClientSentIsPrintedAsAsciiOnly) {
  FailedCallsView::Call call = Failed(7, "", proxy::GrpcCode::kInternal);
  call.endpoint = "e1";
  call.path = "/x\x1b[31m\xff";
  call.request_id = "a\nb";
  const std::string out = WhyOf(call);
  EXPECT_THAT(out, HasSubstr("/x\\x1b[31m\\xff failed with INTERNAL"));
  EXPECT_THAT(out, HasSubstr("request id  a\\x0ab"));
  EXPECT_THAT(out, HasSubstr("Endpoint e1 itself answered so"));
}

TEST_F(WhyAndTop, WithoutAnIdTheLastOnesAreATableAndTheRequestIdFindsOne) {
  FailedCallsView::Call first = Failed(1, "no_route", proxy::GrpcCode::kUnimplemented);
  first.request_id = "req-1";
  Keep({Failed(2, "deadline", proxy::GrpcCode::kDeadlineExceeded), first});
  const ProgramResult table = Ctl({"why"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("CALL ID"));
  EXPECT_LT(table.out.find("DEADLINE_EXCEEDED"), table.out.find("no_route"));
  EXPECT_THAT(Ctl({"why", "req-1"}).out, HasSubstr("No route of the configuration matches"));
  // A client's word never stands for the call of another one.
  FailedCallsView::Call spoof = Failed(3, "deadline", proxy::GrpcCode::kDeadlineExceeded);
  spoof.request_id = first.id.ToString();
  Keep({spoof, first});
  EXPECT_THAT(Ctl({"why", first.id.ToString()}).out, HasSubstr("No route of the configuration matches"));
  const ProgramResult json = Ctl({"--json", "why", first.id.ToString()});
  EXPECT_THAT(json.out, HasSubstr("\"reason\": \"no_route\""));
  EXPECT_THAT(json.out, Not(HasSubstr("DEADLINE")));
}

TEST_F(WhyAndTop, AnIdThatIsNotThereSaysWhereToLook) {
  Keep({});
  EXPECT_EQ(Ctl({"why"}).out, "no call has failed since the start\n");
  const ProgramResult gone = Ctl({"why", proxy::CallId::Of(1, 99).ToString()});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("the last 100 are kept of each worker and kind"));
  EXPECT_THAT(Ctl({"why", "00000000-0-1"}).err, HasSubstr("of another daemon or of one before a restart"));
  backend_.set_failed_calls({});
  EXPECT_THAT(Ctl({"why"}).out, HasSubstr("insight.failed_calls is 0"));
}

TEST_F(WhyAndTop, TopIsOneTableWhereThereIsNoTerminal) {
  HotKeysView keys{"users", false, 100, std::chrono::seconds(60), 0.01, {}};
  keys.keys.push_back({"ann\x1b", true, 0.5, 0.25, "a"});
  backend_.set_hot_keys({keys});
  const ProgramResult result = Ctl({"top", "--interval", "100ms"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("sluice 1.2.3, ready, pid 4242, 2 workers, 5 connections, 6 calls in flight"));
  EXPECT_THAT(result.out, HasSubstr("CLUSTER"));
  EXPECT_THAT(result.out, HasSubstr("process/concurrency"));
  EXPECT_THAT(result.out, HasSubstr("ann\\x1b...  users    50.0%     25.0%  a"));
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(Ctl({"top", "--interval", "1ms"}).code, 2);
  EXPECT_EQ(Ctl({"--json", "top"}).code, 2);
}

// sluicectl with a terminal of its own.
class OnATerminal {
 public:
  explicit OnATerminal(const std::string& address) {
    winsize size{24, 100, 0, 0};
    // Made before the fork: other threads may hold the allocator's locks.
    std::string variable = "SLUICE_ADMIN=" + address, term = "TERM=xterm";
    std::vector<std::string> options = SanitizerOptions();
    std::vector<char*> environment = {variable.data(), term.data()};
    for (std::string& option : options) environment.push_back(option.data());
    environment.push_back(nullptr);
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::execle(SLUICECTL_PATH, SLUICECTL_PATH, "top", "--interval", "100ms", nullptr, environment.data());
      ::_exit(127);
    }
  }
  ~OnATerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }
  // Reads until `text` was seen once more; false: not in 20 s.
  bool ReadUntil(const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      if (const size_t at = seen_.find(text, from_); at != seen_.npos) {
        from_ = at + text.size();
        return true;
      }
      pollfd one{fd_, POLLIN, 0};
      if (std::chrono::steady_clock::now() >= until || ::poll(&one, 1, 1000) < 0) return false;
      char buffer[4096];
      const ssize_t n = one.revents != 0 ? ::read(fd_, buffer, sizeof(buffer)) : 0;
      if (n > 0) seen_.append(buffer, static_cast<size_t>(n));
      if (n < 0) return seen_.find(text, from_) != seen_.npos;
    }
  }
  void Type(const std::string& keys) {
    EXPECT_EQ(::write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  bool Echoes() const {
    termios now{};
    ::tcgetattr(fd_, &now);
    return (now.c_lflag & (ECHO | ICANON)) == (ECHO | ICANON);
  }
  int End() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
  std::string seen_;
  size_t from_ = 0;
};

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?1049l";

TEST_F(WhyAndTop, TopDrawsAgainAndEndsByQ) {
  OnATerminal terminal(server_->address());
  ASSERT_TRUE(terminal.ReadUntil(kEnter));
  ASSERT_TRUE(terminal.ReadUntil("sluice 1.2.3"));
  EXPECT_FALSE(terminal.Echoes());
  ASSERT_TRUE(terminal.ReadUntil("sluice 1.2.3"));
  terminal.Type("xq");
  ASSERT_TRUE(terminal.ReadUntil(kLeave));
  EXPECT_EQ(terminal.End(), 0);
}

TEST_F(WhyAndTop, TopPutsTheTerminalBackOnCtrlC) {
  OnATerminal terminal(server_->address());
  ASSERT_TRUE(terminal.ReadUntil("sluice 1.2.3"));
  EXPECT_FALSE(terminal.Echoes());
  terminal.Type("\x03");
  ASSERT_TRUE(terminal.ReadUntil(kLeave));
  EXPECT_EQ(terminal.End(), 0);
  EXPECT_TRUE(terminal.Echoes());
}

TEST_F(WhyAndTop, TopPutsTheTerminalBackWhenTheDaemonGoes) {
  OnATerminal terminal(server_->address());
  ASSERT_TRUE(terminal.ReadUntil("sluice 1.2.3"));
  server_->Shutdown(milliseconds(100));
  server_.reset();
  ASSERT_TRUE(terminal.ReadUntil(kLeave));
  ASSERT_TRUE(terminal.ReadUntil("no daemon answers"));
  EXPECT_EQ(terminal.End(), 3);
  EXPECT_TRUE(terminal.Echoes());
}

}  // namespace
}  // namespace sluice::admin
