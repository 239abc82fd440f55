// The daemon's own process with admin.tls, and real gRPC clients and sluicectl at the other end: which certificates
// are accepted, what each role may do, and both under a reload of roles and of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <regex>

#include "sluice/admin/v1/admin.grpc.pb.h"
#include "support/echo_call.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/tls_certificates.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using admin::v1::Admin;
using grpc::StatusCode;
using test::MakeCert;
using test::TlsCert;
using testing::HasSubstr;

class AdminTls : public testing::Test {
 protected:
  AdminTls() {
    KeepDaemon();
    Keep("ca.pem", ca_.certificate_pem);
    WriteConfig("{read: [CN=watcher], write: [\"spiffe://corp/ops\"]}");
  }

  // As a careful operator does: a whole file, renamed into its place.
  void Keep(const std::string& name, const std::string& text) {
    dir_.Write("new", text);
    std::filesystem::rename(dir_.File("new"), dir_.File(name));
  }
  void KeepDaemon() {
    const TlsCert cert = MakeCert({"daemon", "IP:127.0.0.1"}, &ca_);
    Keep("daemon.key", cert.key_pem);
    Keep("daemon.pem", cert.certificate_pem);
  }
  void WriteConfig(const std::string& roles) {
    // Reached through loopback here, but at the address for all interfaces.
    Keep("sluice.yaml",
         "listeners: [{address: 127.0.0.1:0}]\n"
         "clusters: [{name: users, endpoints: [127.0.0.1:1]}]\n"
         "admin:\n"
         "  grpc: 0.0.0.0:0\n"
         "  tls: {certificate: daemon.pem, key: daemon.key, client_ca: ca.pem}\n"
         "  roles: " +
             roles + "\n");
  }

  void Start() {
    daemon_ = std::make_unique<Process>("sluiced", std::vector<std::string>{"-c", dir_.File("sluice.yaml")},
                                        dir_.File("daemon.out"));
    ASSERT_TRUE(WaitUntil([&] { return Said("is ready") || !daemon_->Running(); }));
    ASSERT_TRUE(daemon_->Running()) << daemon_->Output();
    std::smatch found;
    const std::string output = daemon_->Output();
    ASSERT_TRUE(std::regex_search(output, found, std::regex("admin RPC on 0\\.0\\.0\\.0:([0-9]+) with TLS"))) << output;
    target_ = "127.0.0.1:" + found[1].str();
  }
  bool Said(const std::string& words) const { return daemon_->Output().find(words) != std::string::npos; }

  // A client with a connection of its own. Null `own`: it has no certificate.
  std::unique_ptr<Admin::Stub> Client(const TlsCert* own, const TlsCert* trusted = nullptr) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = (trusted != nullptr ? trusted : &ca_)->certificate_pem;
    if (own != nullptr) {
      options.pem_cert_chain = own->certificate_pem;
      options.pem_private_key = own->key_pem;
    }
    return Admin::NewStub(Connect(target_, grpc::SslCredentials(options)));
  }
  static grpc::Status Look(Admin::Stub& client) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    admin::v1::GetServerResponse response;
    return client.GetServer(&context, {}, &response);
  }
  static grpc::Status Add(Admin::Stub& client, const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    admin::v1::ChangeEndpointsRequest request;
    request.set_cluster("users");
    request.set_kind(admin::v1::ChangeEndpointsRequest::KIND_ADD);
    request.add_endpoints()->set_name(name);
    request.mutable_endpoints(0)->set_address("127.0.0.1:2");
    admin::v1::ChangeEndpointsResponse response;
    return client.ChangeEndpoints(&context, request, &response);
  }
  Finished Check() {
    return RunProgram("sluiced", {"--check", "-c", dir_.File("sluice.yaml")}, dir_.File("check.out"));
  }

  TempDir dir_;
  TlsCert ca_ = MakeCert({"ca", "", true});
  TlsCert other_ca_ = MakeCert({"ca", "", true});  // the same name, another key
  TlsCert ops_ = MakeCert({"", "URI:spiffe://corp/ops"}, &ca_);
  TlsCert watcher_ = MakeCert({"watcher", ""}, &ca_);
  std::unique_ptr<Process> daemon_;
  std::string target_;
};

TEST_F(AdminTls, RolesDecideAndAReloadChangesThemUnderAConnection) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const auto ops = Client(&ops_), watcher = Client(&watcher_);
  EXPECT_TRUE(Look(*watcher).ok()) << Describe(Look(*watcher));
  const grpc::Status refused = Add(*watcher, "a");
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("CN=watcher has the role read and ChangeEndpoints needs write"));
  EXPECT_TRUE(Add(*ops, "b").ok());
  WriteConfig("{read: [\"spiffe://corp/ops\"], write: [CN=watcher]}");
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil([&] { return Add(*watcher, "c").ok(); })) << daemon_->Output();
  EXPECT_EQ(Add(*ops, "d").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Look(*ops).ok());
  for (const char* line : {"who=\"CN=watcher\"", "who=\"spiffe://corp/ops\"", "method=ChangeEndpoints"}) {
    EXPECT_TRUE(Said(line)) << line << '\n' << daemon_->Output();
  }
}

TEST_F(AdminTls, CertificatesOfOtherAuthoritiesAndWithoutARoleAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const TlsCert forged = MakeCert({"", "URI:spiffe://corp/ops"}, &other_ca_);
  const TlsCert self_signed = MakeCert({"", "URI:spiffe://corp/ops"});
  const TlsCert over = MakeCert({.names = "URI:spiffe://corp/ops", .from = -7200, .until = -3600}, &ca_);
  const TlsCert without_role = MakeCert({"", "URI:spiffe://corp/none"}, &ca_);
  EXPECT_EQ(Look(*Client(&forged)).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Look(*Client(&self_signed)).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Look(*Client(&over)).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Look(*Client(nullptr)).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Look(*Admin::NewStub(Connect(target_))).error_code(), StatusCode::UNAVAILABLE) << "plain text";
  EXPECT_EQ(Look(*Client(&without_role)).error_code(), StatusCode::PERMISSION_DENIED);
  // A client sends no call to a daemon whose authority it does not trust.
  EXPECT_EQ(Look(*Client(&ops_, &other_ca_)).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Look(*Client(&ops_)).ok()) << "a client with a role is still served";
}

TEST_F(AdminTls, SluicectlShowsItsCertificate) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Keep("ops.pem", ops_.certificate_pem);
  Keep("ops.key", ops_.key_pem);
  const std::vector<std::string> plain = {"--address", target_, "status"};
  std::vector<std::string> words = {"--tls-ca",           dir_.File("ca.pem"), "--tls-cert",
                                    dir_.File("ops.pem"), "--tls-key",         dir_.File("ops.key")};
  words.insert(words.end(), plain.begin(), plain.end());
  const Finished served = RunProgram("sluicectl", words, dir_.File("ctl.out"));
  EXPECT_EQ(served.code, 0) << served.output;
  EXPECT_EQ(RunProgram("sluicectl", plain, dir_.File("ctl.out")).code, 3);
  // And the daemon's, where operators look for what ends soon.
  words.back() = "certs";
  EXPECT_THAT(RunProgram("sluicectl", words, dir_.File("ctl.out")).output,
              testing::ContainsRegex("admin +own .*daemon\\.pem"));
  words.back() = "metrics";
  EXPECT_THAT(RunProgram("sluicectl", words, dir_.File("ctl.out")).output,
              testing::ContainsRegex("sluice_tls_certificate_not_after_seconds.*daemon\\.pem.*used_by=\"admin\""));
}

TEST_F(AdminTls, NewFilesAreUsedWithoutARestart) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const auto before = Client(&ops_);
  ASSERT_TRUE(Look(*before).ok());
  // Daemon and clients move to another authority.
  const TlsCert next_ops = MakeCert({"", "URI:spiffe://corp/ops"}, &other_ca_);
  std::swap(ca_, other_ca_);
  KeepDaemon();
  Keep("ca.pem", ca_.certificate_pem);
  ASSERT_TRUE(WaitUntil([&] { return Look(*Client(&next_ops)).ok(); })) << daemon_->Output();
  EXPECT_EQ(Look(*Client(&ops_)).error_code(), StatusCode::UNAVAILABLE) << "a new connection of the former authority";
  EXPECT_TRUE(Look(*before).ok()) << "a connection that is up stays";
}

TEST_F(AdminTls, FilesThatDoNotFitChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Keep("daemon.key", watcher_.key_pem);
  ASSERT_TRUE(WaitUntil([&] { return Said("admin: new TLS files cannot be used, the former ones stay in force"); }))
      << daemon_->Output();
  EXPECT_TRUE(Look(*Client(&ops_)).ok());
  KeepDaemon();
  ASSERT_TRUE(WaitUntil([&] { return Said("admin: new TLS files are in force"); })) << daemon_->Output();
  EXPECT_TRUE(Look(*Client(&ops_)).ok());
}

TEST_F(AdminTls, CheckFindsFilesThatDoNotFit) {
  EXPECT_EQ(Check().code, 0) << Check().output;
  Keep("daemon.key", watcher_.key_pem);
  const Finished check = Check();
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.output, HasSubstr("daemon.key: is not the key of the first certificate in "));
  Keep("daemon.pem", "nothing");
  EXPECT_THAT(Check().output, HasSubstr("daemon.pem"));
}

}  // namespace
}  // namespace sluice::integration
