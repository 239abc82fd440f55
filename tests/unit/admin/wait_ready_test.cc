// sluicectl wait-ready from outside: a daemon that is there, comes later, is not ready, or has nothing to give calls
// to.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

#include "admin/admin_server.h"
#include "program.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

// Long enough for a daemon's answer on a busy machine.
constexpr const char* kOneAnswer = "1s";

class WaitReady : public testing::Test {
 protected:
  void Start() {
    base::Result<std::unique_ptr<AdminServer>> server = AdminServer::Start(address_, backend_);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
  }
  ProgramResult Wait(std::vector<std::string> words) {
    const std::vector<std::string> first = {SLUICECTL_PATH, "wait-ready"};
    words.insert(words.begin(), first.begin(), first.end());
    return RunProgram(words, {"SLUICE_ADMIN=" + address_});
  }

  TempDir dir_;
  const std::string address_ = "unix:" + (dir_ / "s");
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(WaitReady, ADaemonThatIsReadyIsEnough) {
  Start();
  const ProgramResult result = Wait({});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
}

TEST_F(WaitReady, ItIsThereBeforeTheDaemon) {
  auto waiting = std::async(std::launch::async, [this] { return Wait({"--timeout", "60s"}); });
  Start();
  const ProgramResult result = waiting.get();
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(WaitReady, ItWaitsUntilTheDaemonIsReady) {
  backend_.ready_ = false;
  Start();
  const ProgramResult early = Wait({"--timeout", kOneAnswer});
  EXPECT_EQ(early.code, 1);
  EXPECT_EQ(early.out, "");
  EXPECT_THAT(early.err, HasSubstr("not ready within --timeout: it is not ready"));
  auto waiting = std::async(std::launch::async, [this] { return Wait({"--timeout", "60s"}); });
  backend_.ready_ = true;
  EXPECT_EQ(waiting.get().code, 0);
}

TEST_F(WaitReady, WithoutADaemonItSaysSo) {
  const ProgramResult result = Wait({"--timeout", "300ms"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("no daemon answers at unix:"));
}

// The second cluster has one endpoint, and that one drains.
TEST_F(WaitReady, ForEndpointsEachClusterNeedsOneThatTakesCalls) {
  Start();
  const ProgramResult result = Wait({"--for", "endpoints", "--timeout", kOneAnswer});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("no endpoint of cluster <b>&\"odd' takes calls"));
  backend_.DropLastCluster();
  EXPECT_EQ(Wait({"--for", "endpoints"}).code, 0);
}

}  // namespace
}  // namespace sluice::admin
