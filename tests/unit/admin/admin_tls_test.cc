// The admin RPC over TLS: which certificates are accepted, what each role may call, what the audit says; and sluicectl
// through it.
#include <gmock/gmock.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include "program.h"
#include "sluice/admin/v1/admin.grpc.pb.h"
#include "support/captured_log.h"
#include "tls_fixture.h"

namespace sluice::admin {
namespace {

using grpc::StatusCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AdminTls : public TlsFixture {
 protected:
  void SetUp() override {
    auto server = AdminServer::Start("127.0.0.1:0", backend_, Security());
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
  }

  // Any method with an empty request.
  grpc::Status Call(grpc::Channel& channel, const std::string& method) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::Slice nothing("");
    grpc::ByteBuffer request(&nothing, 1), response;
    const grpc::internal::RpcMethod rpc(method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(&channel, rpc, &context,
                                                                                                request, &response);
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto reason = trailers.find("sluice-reason");
    reason_ = reason == trailers.end() ? "" : std::string(reason->second.data(), reason->second.size());
    return status;
  }
  static std::vector<std::string> Methods() {
    std::vector<std::string> out;
    const auto* service = v1::GetServerRequest::descriptor()->file()->FindServiceByName("Admin");
    for (int i = 0; i < service->method_count(); ++i) out.push_back(service->method(i)->name());
    return out;
  }

  ProgramResult Ctl(std::vector<std::string> words, const test::TlsCert& identity) {
    const std::vector<std::string> tls = {
        SLUICECTL_PATH, "--tls-ca=" + Write("daemon_ca.pem", daemon_ca_.certificate_pem),
        "--tls-cert=" + Write("me.pem", identity.certificate_pem), "--tls-key=" + Write("me.key", identity.key_pem)};
    words.insert(words.begin(), tls.begin(), tls.end());
    return RunProgram(words, {"SLUICE_ADMIN=" + server_->address()});
  }

  test::CapturedLog log_;  // outlives the server, which writes to it
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
  std::string reason_;  // of the last status
};

TEST_F(AdminTls, EveryMethodAsksForARole) {
  const auto stranger = Connect(server_->address(), &stranger_);
  for (const std::string& method : Methods()) {
    const grpc::Status status = Call(*stranger, "/sluice.admin.v1.Admin/" + method);
    EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("spiffe://corp/other has no role here and " + method)) << method;
    EXPECT_EQ(reason_, "permission_denied");
    EXPECT_THAT(log_.Take(), HasSubstr("method=" + method + " "));
  }
  EXPECT_EQ(backend_.stops_ + backend_.drains_, 0);
}

TEST_F(AdminTls, TheRoleReadMayLookAndNotChange) {
  const auto watcher = Connect(server_->address(), &watcher_);
  for (const std::string& method : Methods()) {
    const grpc::Status status = Call(*watcher, "/sluice.admin.v1.Admin/" + method);
    const bool read = RoleOf(method) == Role::kRead;
    EXPECT_EQ(status.error_code(), read ? StatusCode::OK : StatusCode::PERMISSION_DENIED) << method;
    const std::string line = log_.Take();
    if (read) {
      EXPECT_EQ(line, "") << method;
      continue;
    }
    EXPECT_EQ(status.error_message(),
              "CN=watcher has the role read and " + method + " needs write (admin.roles.write)");
    EXPECT_THAT(line, AllOf(HasSubstr("warning audit: who=\"CN=watcher\" peer=\"ipv4:127.0.0.1:"),
                            HasSubstr("method=" + method), HasSubstr("result=\"refused: ")));
  }
  EXPECT_EQ(backend_.stops_ + backend_.drains_, 0);
  EXPECT_EQ(backend_.change_count(), 0u);
}

TEST_F(AdminTls, TheRoleWriteMayDoAllAndItsChangesAreInTheAudit) {
  const auto ops = Connect(server_->address(), &ops_);
  for (const std::string& method : Methods()) {
    EXPECT_NE(Call(*ops, "/sluice.admin.v1.Admin/" + method).error_code(), StatusCode::PERMISSION_DENIED) << method;
    const std::string line = log_.Take();
    if (RoleOf(method) == Role::kRead) {
      EXPECT_EQ(line, "") << method;
    } else {
      EXPECT_THAT(line, AllOf(HasSubstr("info audit: who=\"spiffe://corp/ops\""), HasSubstr("method=" + method + " ")));
    }
  }
  EXPECT_EQ(backend_.stops_, 1);
}

TEST_F(AdminTls, TheAuditSaysTheResult) {
  const auto ExpectCode = [this](int code, const std::vector<std::string>& words) {
    const ProgramResult result = Ctl(words, ops_);
    EXPECT_EQ(result.code, code) << words[0] << ": " << result.out << result.err;
  };
  ExpectCode(0, {"remove", "users", "a\nb"});
  EXPECT_THAT(log_.Take(), HasSubstr("method=ChangeEndpoints what=\"users KIND_REMOVE a?b\" result=\"version 8\""));
  ExpectCode(1, {"remove", "none", "a"});
  EXPECT_THAT(log_.Take(), HasSubstr("result=\"no cluster none\""));
  ExpectCode(0, {"cache", "purge"});
  EXPECT_THAT(log_.Take(), HasSubstr("method=PurgeCache what=\"all\" result=\"3 dropped\""));
  backend_.set_reload({{"f:1:1: bad"}, {}});
  ExpectCode(1, {"reload"});
  EXPECT_THAT(log_.Take(), HasSubstr("method=Reload what=\"\" result=\"1 errors, nothing changed\""));
  ExpectCode(0, {"log-level", "debug"});
  EXPECT_THAT(log_.Take(),
              AllOf(HasSubstr("what=\"debug\" result=\"asked\""), HasSubstr("what=\"debug\" result=\"ok\"")));
}

TEST_F(AdminTls, HealthNeedsACertificateAndNoRole) {
  EXPECT_TRUE(Call(*Connect(server_->address(), &stranger_), "/grpc.health.v1.Health/Check").ok());
  EXPECT_EQ(Call(*Connect(server_->address(), nullptr), "/grpc.health.v1.Health/Check").error_code(),
            StatusCode::UNAVAILABLE);
}

TEST_F(AdminTls, RolesChangeUnderAConnection) {
  const auto ops = Connect(server_->address(), &ops_);
  EXPECT_TRUE(Call(*ops, "/sluice.admin.v1.Admin/Reload").ok());
  server_->SetRoles({{"spiffe://corp/ops"}, {"CN=watcher"}});
  EXPECT_EQ(Call(*ops, "/sluice.admin.v1.Admin/Reload").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Call(*ops, "/sluice.admin.v1.Admin/GetServer").ok());
}

TEST_F(AdminTls, WithoutItOnlyThisHostIsServed) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "10.0.0.1:0", "example.com:0"}) {
    const auto server = AdminServer::Start(address, backend_);
    ASSERT_FALSE(server.ok()) << address;
    EXPECT_EQ(server.error().kind, base::ErrorKind::kInvalidArgument);
    EXPECT_THAT(server.error().detail, HasSubstr("allowed without TLS: unix:/path, 127.0.0.1:port, [::1]:port"));
  }
  EXPECT_TRUE(AdminServer::Start("127.0.0.1:0", backend_).ok());
  EXPECT_TRUE(AdminServer::Start("0.0.0.0:0", backend_, Security()).ok());
}

TEST_F(AdminTls, SluicectlShowsItsCertificate) {
  ProgramResult result = Ctl({"status"}, watcher_);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Version          1.2.3\n"));
  result = Ctl({"stop"}, watcher_);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "sluicectl: CN=watcher has the role read and Stop needs write (admin.roles.write)\n");
  EXPECT_EQ(Ctl({"--tls-server-name", "admin.test", "status"}, ops_).code, 0);
  result = Ctl({"--tls-server-name", "other.test", "status"}, ops_);
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("--tls-server-name"));
  const test::TlsCert forged = test::MakeCert({"", "URI:spiffe://corp/ops"}, &strange_ca_);
  result = Ctl({"status"}, forged);
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("does its client_ca know --tls-cert"));
  result = RunProgram({SLUICECTL_PATH, "status"}, {"SLUICE_ADMIN=" + server_->address()});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("if it has admin.tls: --tls-ca"));
}

TEST_F(AdminTls, SluicectlNamesTheFileThatIsWrong) {
  const std::string none = dir_ / "none", text = Write("text", "no PEM");
  ProgramResult result =
      RunProgram({SLUICECTL_PATH, "--address=127.0.0.1:1", "--tls-ca", none, "--tls-cert=a", "--tls-key=b", "status"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err, "sluicectl: --tls-ca: cannot read " + none + "\n");
  result =
      RunProgram({SLUICECTL_PATH, "--address=127.0.0.1:1", "--tls-ca", text, "--tls-cert=a", "--tls-key=b", "status"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err, "sluicectl: --tls-ca: " + text + " is no PEM file\n");
}

}  // namespace
}  // namespace sluice::admin
