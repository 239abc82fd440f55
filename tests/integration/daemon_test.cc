// The daemon as its users meet it: a process with flags, signals, files and exit codes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "sluice/admin/v1/admin.grpc.pb.h"
#include "support/backends.h"
#include "support/echo_call.h"
#include "support/process.h"
#include "support/proxy_config.h"
#include "support/temp_dir.h"
#include "support/tls_certificates.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using testing::HasSubstr;

class Daemon : public testing::Test {
 protected:
  Daemon() {
    config_.listen = "unix:" + dir_.File("listen.sock");
    config_.admin = "unix:" + dir_.File("admin.sock");
    config_.endpoints = backends_.endpoints();
  }

  void Start() {
    dir_.Write("sluice.yaml", config_.ToYaml());
    daemon_ = std::make_unique<Process>("sluiced", std::vector<std::string>{"-c", dir_.File("sluice.yaml")},
                                        dir_.File("daemon.out"));
    admin_ = admin::v1::Admin::NewStub(Connect(config_.admin));
    ASSERT_TRUE(WaitUntil([&] { return Server().ready() || !daemon_->Running(); }));
    ASSERT_TRUE(daemon_->Running()) << daemon_->Output();
    stub_ = echo::v1::Echo::NewStub(Connect(config_.listen));
  }

  admin::v1::GetServerResponse Server() {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    admin::v1::GetServerResponse response;
    return admin_->GetServer(&context, {}, &response).ok() ? response : admin::v1::GetServerResponse();
  }
  std::vector<std::string> Names() {
    grpc::ClientContext context;
    admin::v1::ListClustersResponse response;
    EXPECT_TRUE(admin_->ListClusters(&context, {}, &response).ok());
    std::vector<std::string> names;
    for (const auto& endpoint : response.clusters(0).endpoints()) {
      if (endpoint.state() != admin::v1::Endpoint::STATE_REMOVED) names.push_back(endpoint.name());
    }
    return names;
  }
  uint64_t Version() {
    grpc::ClientContext context;
    admin::v1::ListClustersResponse response;
    EXPECT_TRUE(admin_->ListClusters(&context, {}, &response).ok());
    return response.clusters(0).version();
  }
  void Change(admin::v1::ChangeEndpointsRequest::Kind kind, const std::string& name) {
    admin::v1::ChangeEndpointsRequest request;
    request.set_cluster("echo");
    request.set_kind(kind);
    request.add_endpoints()->set_name(name);
    grpc::ClientContext context;
    admin::v1::ChangeEndpointsResponse response;
    const grpc::Status status = admin_->ChangeEndpoints(&context, request, &response);
    ASSERT_TRUE(status.ok()) << Describe(status);
  }
  Finished Check(const std::string& yaml) {
    return RunProgram("sluiced", {"--check", "-c", dir_.Write("check.yaml", yaml)}, dir_.File("check.out"));
  }
  grpc::Status Unary() {
    grpc::ClientContext context;
    return Call(stub_.get(), Kind::kUnary, &context, {}).status;
  }

  // A call that is open until Finish().
  struct OpenCall {
    explicit OpenCall(echo::v1::Echo::Stub* stub) : stream(stub->BidiStream(&context)) { EXPECT_TRUE(Exchange()); }
    bool Exchange() { return stream->Write(echo::v1::EchoRequest()) && stream->Read(&reply); }
    grpc::ClientContext context;
    echo::v1::EchoReply reply;
    std::unique_ptr<grpc::ClientReaderWriter<echo::v1::EchoRequest, echo::v1::EchoReply>> stream;
  };

  TempDir dir_;
  Backends backends_{2};
  ProxyConfig config_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<admin::v1::Admin::Stub> admin_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
};

TEST_F(Daemon, ServesCallsOfAllKinds) {
  Start();
  for (const Kind kind : kKinds) {
    grpc::ClientContext context;
    echo::v1::EchoRequest request;
    request.set_reply_count(1);
    const Reply reply = Call(stub_.get(), kind, &context, request);
    EXPECT_TRUE(reply.status.ok()) << Describe(reply.status);
  }
}

TEST_F(Daemon, StopsAtOnceOnSigtermWhenNothingRuns) {
  Start();
  ASSERT_TRUE(Unary().ok());
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
}

TEST_F(Daemon, DrainsOnSigterm) {
  Start();
  OpenCall call(stub_.get());
  daemon_->Signal(SIGTERM);
  ASSERT_TRUE(WaitUntil([&] { return Server().draining(); }));
  EXPECT_FALSE(Server().ready());
  EXPECT_TRUE(call.Exchange()) << "a call in flight goes on";
  EXPECT_TRUE(daemon_->Running());
  call.stream->WritesDone();
  EXPECT_TRUE(call.stream->Finish().ok());
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
}

TEST_F(Daemon, DrainsOnSigintToo) {
  Start();
  daemon_->Signal(SIGINT);
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
}

TEST_F(Daemon, ASecondSigtermStopsNow) {
  Start();
  OpenCall call(stub_.get());
  daemon_->Signal(SIGTERM);
  ASSERT_TRUE(WaitUntil([&] { return Server().draining(); }));
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
  EXPECT_FALSE(call.Exchange());
  EXPECT_EQ(call.stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Daemon, TheDrainEndsAfterItsTimeout) {
  config_.top = {"drain_timeout: 100ms"};
  Start();
  OpenCall call(stub_.get());
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
  EXPECT_FALSE(call.stream->Finish().ok());
}

// A load balancer in front goes by /readyz, which it asks now and then: until it has, clients must be served.
TEST_F(Daemon, WhileADrainIsDelayedItIsNotReadyAndAcceptsAndASecondSigtermStops) {
  config_.top = {"drain: {delay: 30m}", "drain_timeout: 1h"};
  Start();
  daemon_->Signal(SIGTERM);
  ASSERT_TRUE(WaitUntil([&] { return Server().draining(); }));
  EXPECT_FALSE(Server().ready());
  const auto later = echo::v1::Echo::NewStub(Connect(config_.listen));
  grpc::ClientContext context;
  EXPECT_TRUE(Call(later.get(), Kind::kUnary, &context, {}).status.ok()) << "a new connection";
  OpenCall call(stub_.get());  // on the old one: it has seen no GOAWAY
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
  EXPECT_EQ(call.stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Daemon, WhenTheDelayIsOverItDrains) {
  config_.top = {"drain: {delay: 200ms}", "drain_timeout: 1h"};
  Start();
  OpenCall call(stub_.get());
  daemon_->Signal(SIGTERM);
  // A connection is refused when the listener is gone; the call that runs goes on.
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(dir_.File("listen.sock")); }));
  EXPECT_TRUE(call.Exchange());
  EXPECT_TRUE(daemon_->Running());
  call.stream->WritesDone();
  EXPECT_TRUE(call.stream->Finish().ok());
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
}

// The delay is a part of the timeout: what a supervisor waits for is one number. One that takes all of it would leave
// no time in which clients are told to go.
TEST_F(Daemon, ADelayThatTakesTheWholeDrainIsRefused) {
  Start();
  OpenCall call(stub_.get());
  const auto drain = [&](uint64_t delay_ms) {
    admin::v1::DrainRequest request;
    request.set_delay_ms(delay_ms);
    request.set_timeout_ms(100);
    grpc::ClientContext context;
    admin::v1::DrainResponse response;
    return admin_->Drain(&context, request, &response);
  };
  const grpc::Status refused = drain(100);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(), "the delay of 100 ms is not below the drain's 100 ms, of which it is a part");
  EXPECT_TRUE(Server().ready());
  ASSERT_TRUE(drain(99).ok());
  EXPECT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
  EXPECT_FALSE(call.stream->Finish().ok());
}

TEST_F(Daemon, ReloadsOnSighup) {
  Start();
  ASSERT_EQ(Names().size(), 2u);
  config_.endpoints.pop_back();
  dir_.Write("sluice.yaml", config_.ToYaml());
  daemon_->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Names() == std::vector<std::string>{"echo-1"}; }));
  EXPECT_TRUE(Unary().ok());
}

// A tool that has read before a restart must not overwrite what it has not seen.
TEST_F(Daemon, AVersionFromBeforeARestartIsNotThatOfAnotherList) {
  Start();
  const uint64_t before = Version();
  daemon_->Signal(SIGTERM);
  ASSERT_EQ(daemon_->Wait(kLongWait), 0) << daemon_->Output();
  config_.endpoints.pop_back();
  Start();
  EXPECT_GT(Version(), before);
  admin::v1::ChangeEndpointsRequest request;
  request.set_cluster("echo");
  request.set_kind(admin::v1::ChangeEndpointsRequest::KIND_DRAIN);
  request.set_expected_version(before);
  request.add_endpoints()->set_name("echo-1");
  grpc::ClientContext context;
  admin::v1::ChangeEndpointsResponse response;
  EXPECT_EQ(admin_->ChangeEndpoints(&context, request, &response).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(Daemon, AnAddressThatAReloadGaveUpIsFreeForTheNext) {
  Start();
  const std::string first = config_.listen, second = "unix:" + dir_.File("second.sock");
  for (int i = 0; i < 40; ++i) {
    const std::string former = std::exchange(config_.listen, i % 2 == 0 ? second : first);
    dir_.Write("sluice.yaml", config_.ToYaml());
    grpc::ClientContext context;
    admin::v1::ReloadResponse response;
    const grpc::Status status = admin_->Reload(&context, {}, &response);
    ASSERT_TRUE(status.ok()) << Describe(status);
    ASSERT_EQ(response.errors_size(), 0) << response.DebugString();
    EXPECT_FALSE(std::filesystem::exists(former.substr(std::strlen("unix:"))));
  }
  EXPECT_TRUE(Unary().ok());
}

TEST_F(Daemon, ABadFileAtSighupChangesNothingAndIsLogged) {
  Start();
  dir_.Write("sluice.yaml", "listeners: 7\nno_such_key: 1\n");
  daemon_->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return daemon_->Output().find("no_such_key") != std::string::npos; }))
      << daemon_->Output();
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_TRUE(Unary().ok());
}

// systemd considers the daemon started as soon as it is executed, and may reload it then.
TEST_F(Daemon, SignalsThatComeBeforeItServesAreKept) {
  const std::string path = dir_.File("slow.yaml");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // opening it blocks until the test writes
  Process daemon("sluiced", {"-c", path}, dir_.File("slow.out"));
  int end = -1;  // open(2) succeeds when the daemon reads
  ASSERT_TRUE(WaitUntil([&] { return (end = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0; }));
  daemon.Signal(SIGHUP);
  daemon.Signal(SIGUSR1);
  ::unlink(path.c_str());
  dir_.Write("slow.yaml", "no_such_key: 1\n");  // what the reload will read
  const std::string yaml = config_.ToYaml();
  EXPECT_EQ(::write(end, yaml.data(), yaml.size()), static_cast<ssize_t>(yaml.size()));
  ::close(end);
  EXPECT_TRUE(WaitUntil([&] { return daemon.Output().find("no_such_key") != std::string::npos || !daemon.Running(); }));
  EXPECT_TRUE(daemon.Running()) << daemon.Output();
}

TEST_F(Daemon, ReopensItsLogsOnSigusr1) {
  config_.top = {"log: {path: " + dir_.File("sluice.log") + "}",
                 "access_log: {format: text, path: " + dir_.File("access.log") + "}"};
  Start();
  ASSERT_TRUE(Unary().ok());
  ASSERT_TRUE(WaitUntil([&] { return dir_.Read("access.log").find("Unary") != std::string::npos; }));
  std::filesystem::rename(dir_.File("sluice.log"), dir_.File("sluice.log.1"));
  std::filesystem::rename(dir_.File("access.log"), dir_.File("access.log.1"));
  daemon_->Signal(SIGUSR1);
  ASSERT_TRUE(WaitUntil([&] {
    return std::filesystem::exists(dir_.File("sluice.log")) && std::filesystem::exists(dir_.File("access.log"));
  }));
  const std::string old = dir_.Read("access.log.1");
  ASSERT_TRUE(Unary().ok());
  EXPECT_TRUE(WaitUntil([&] { return dir_.Read("access.log").find("Unary") != std::string::npos; }));
  EXPECT_EQ(dir_.Read("access.log.1"), old);
}

TEST_F(Daemon, KeepsAChangedListOverARestart) {
  config_.top = {"state_file: " + dir_.File("state.yaml")};
  Start();
  Change(admin::v1::ChangeEndpointsRequest::KIND_REMOVE, "echo-1");
  ASSERT_EQ(Names(), std::vector<std::string>{"echo-2"});
  daemon_->Signal(SIGKILL);
  ASSERT_EQ(daemon_->Wait(kLongWait), 128 + SIGKILL);
  Start();
  EXPECT_EQ(Names(), std::vector<std::string>{"echo-2"});
}

TEST_F(Daemon, TheAdminSocketIsForItsOwnerOnly) {
  Start();
  struct stat info;
  ASSERT_EQ(stat(dir_.File("admin.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Daemon, SluicectlTalksToIt) {
  Start();
  const auto ctl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--address", config_.admin});
    return RunProgram("sluicectl", arguments, dir_.File("ctl.out"));
  };
  EXPECT_EQ(ctl({"status"}).code, 0);
  EXPECT_THAT(ctl({"endpoints", "echo"}).output, HasSubstr("echo-2"));
  EXPECT_EQ(ctl({"remove", "echo", "echo-2"}).code, 0);
  EXPECT_EQ(Names(), std::vector<std::string>{"echo-1"});
  EXPECT_EQ(ctl({"add", "echo", "echo-2=" + backends_.address(1)}).code, 0);
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_NE(ctl({"remove", "echo", "no-such-endpoint"}).code, 0);
  EXPECT_NE(ctl({"remove", "no-such-cluster", "echo-1"}).code, 0);
  EXPECT_EQ(ctl({"reload"}).code, 0);
  EXPECT_EQ(ctl({"drain"}).code, 0);
  EXPECT_EQ(daemon_->Wait(kLongWait), 0);
}

TEST_F(Daemon, CheckSaysOkForAGoodFile) {
  const Finished check = Check(config_.ToYaml());
  EXPECT_EQ(check.code, 0);
  EXPECT_EQ(check.output, "OK\n");
}

std::string ReadSource(const std::string& name) {
  std::ifstream file(std::string(SLUICE_SOURCE_DIR) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(Daemon, IsWaitedForFromBeforeItsStart) {
  Process waiting("sluicectl", {"--address", config_.admin, "wait-ready", "--for", "endpoints"}, dir_.File("wait.out"));
  Start();
  EXPECT_EQ(waiting.Wait(std::chrono::seconds(30)), 0) << waiting.Output();
  EXPECT_EQ(waiting.Output(), "");
}

TEST_F(Daemon, CheckAcceptsTheFileForProduction) {
  const test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
  const test::TlsCert own = test::MakeCert({.common_name = "sluice", .until = 90 * 86400}, &ca);
  std::string yaml = ReadSource("config/production.yaml");
  const std::string state = "/var/lib/sluice/endpoints.state";
  ASSERT_NE(yaml.find(state), yaml.npos);
  EXPECT_THAT(Check(std::string(yaml)).output, HasSubstr("tls/sluice.crt")) << "it reads the files";
  std::filesystem::create_directory(dir_.File("tls"));
  dir_.Write("tls/ca.crt", ca.certificate_pem);
  dir_.Write("tls/sluice.crt", own.certificate_pem);
  dir_.Write("tls/sluice.key", own.key_pem);
  EXPECT_THAT(Check(std::string(yaml)).output, HasSubstr("state_file " + state)) << "its folder is made by the unit";
  yaml.replace(yaml.find(state), state.size(), dir_.File("endpoints.state"));
  const std::string log = "/var/log/sluice/access.log";
  ASSERT_NE(yaml.find(log), yaml.npos);
  EXPECT_THAT(Check(std::string(yaml)).output, HasSubstr("access_log " + log)) << "and that of its log";
  yaml.replace(yaml.find(log), log.size(), dir_.File("access.log"));
  EXPECT_EQ(Check(yaml).output, "OK\n");
  EXPECT_FALSE(std::filesystem::exists(dir_.File("access.log")));
}

TEST_F(Daemon, CheckAcceptsTheTenLinesOfThePages) {
  for (const char* page : {"README.md", "docs/production.md"}) {
    const std::string text = ReadSource(page), begin = "```yaml\n";
    const size_t at = text.find(begin);
    ASSERT_NE(at, text.npos) << page;
    const std::string yaml = text.substr(at + begin.size(), text.find("```", at + 3) - at - begin.size());
    EXPECT_THAT(yaml, HasSubstr("hash_by")) << page;
    EXPECT_EQ(Check(yaml).output, "OK\n") << page;
  }
}

TEST_F(Daemon, CheckMakesNoFile) {
  config_.top = {"log: {path: " + dir_.File("process.log") + "}",
                 "access_log: {format: text, path: " + dir_.File("access.log") + "}",
                 "state_file: " + dir_.File("state")};
  EXPECT_EQ(Check(config_.ToYaml()).output, "OK\n");
  for (const char* file : {"process.log", "access.log", "state"}) {
    EXPECT_FALSE(std::filesystem::exists(dir_.File(file)))
        << file << ": would belong to the user that ran the check, not to the daemon";
  }
}

// Whether other processes of its user may read its memory shows only for a user that is not root: sandbox_test.py.
TEST_F(Daemon, GainsNoRightsFromAFile) {
  Start();
  std::ifstream file("/proc/" + std::to_string(daemon_->pid()) + "/status");
  const std::string status{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
}

TEST_F(Daemon, CheckReportsEveryErrorWithItsPlace) {
  config_.top = {"no_such_key: 1", "drain_timeout: never"};
  config_.cluster = {"ring_points: 0"};
  const Finished check = Check(config_.ToYaml());
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.output, HasSubstr("check.yaml:"));
  EXPECT_THAT(check.output, HasSubstr("no_such_key"));
  EXPECT_THAT(check.output, HasSubstr("drain_timeout"));
  EXPECT_THAT(check.output, HasSubstr("clusters[0].ring_points"));
}

TEST_F(Daemon, DoesNotStartWithABadFile) {
  const Finished start = RunProgram("sluiced", {"-c", dir_.Write("bad.yaml", "clusters: 1\n")}, dir_.File("bad.out"));
  EXPECT_EQ(start.code, 1);
  EXPECT_THAT(start.output, HasSubstr("bad.yaml:1"));
}

TEST_F(Daemon, DoesNotStartWithoutAFileOrWithWrongFlags) {
  const Finished gone = RunProgram("sluiced", {"-c", dir_.File("gone.yaml")}, dir_.File("gone.out"));
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.output, HasSubstr("gone.yaml"));
  EXPECT_EQ(RunProgram("sluiced", {}, dir_.File("none.out")).code, 2);
  EXPECT_EQ(RunProgram("sluiced", {"--no-such-flag"}, dir_.File("flag.out")).code, 2);
}

TEST_F(Daemon, DoesNotStartOnAnAddressThatIsTaken) {
  config_.listen = backends_.address(0);
  dir_.Write("taken.yaml", config_.ToYaml());
  const Finished start = RunProgram("sluiced", {"-c", dir_.File("taken.yaml")}, dir_.File("taken.out"));
  EXPECT_EQ(start.code, 1);
  EXPECT_THAT(start.output, HasSubstr(backends_.address(0)));
}

}  // namespace
}  // namespace sluice::integration
