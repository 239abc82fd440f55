// The Client Status Discovery Service on the admin port: one answer, and a stream of them.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

#include "admin/admin_server.h"
#include "admin/csds_service.h"
#include "envoy/service/status/v3/csds.grpc.pb.h"
#include "fake_backend.h"

namespace sluice::admin {
namespace {

namespace csds = envoy::service::status::v3;
using envoy::admin::v3::ClientResourceStatus;

class CsdsTest : public testing::Test {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<AdminServer>> server = AdminServer::Start("unix:" + (dir_ / "s"), backend_);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
    stub_ = csds::ClientStatusDiscoveryService::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  csds::ClientStatusResponse Fetch(bool contents = true) {
    csds::ClientStatusRequest request;
    request.set_exclude_resource_contents(!contents);
    csds::ClientStatusResponse response;
    const grpc::Status status = stub_->FetchClientStatus(&context_, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  TempDir dir_;
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
  std::unique_ptr<csds::ClientStatusDiscoveryService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(CsdsTest, WithoutXdsThereIsNoConfig) { EXPECT_EQ(Fetch().config_size(), 0); }

TEST_F(CsdsTest, EveryResourceHasItsStateAndWhatWasSent) {
  backend_.set_xds(FakeBackend::Xds());
  const int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const csds::ClientStatusResponse response = Fetch();
  ASSERT_EQ(response.config_size(), 1);
  EXPECT_EQ(response.config(0).node().id(), "node-1");
  EXPECT_EQ(response.config(0).node().locality().zone(), "z");
  const auto& all = response.config(0).generic_xds_configs();
  ASSERT_EQ(all.size(), 4);
  EXPECT_EQ(all[0].client_status(), ClientResourceStatus::ACKED);
  EXPECT_EQ(all[0].name() + all[0].version_info(), "users7");
  EXPECT_EQ(all[0].xds_config().type_url(), "type.googleapis.com/envoy.config.cluster.v3.Cluster");
  EXPECT_EQ(all[0].xds_config().value(), "\x0a\x01u");
  EXPECT_NEAR(static_cast<double>(all[0].last_updated().seconds()), static_cast<double>(now - 65), 5);
  EXPECT_FALSE(all[0].has_error_state());
  EXPECT_EQ(all[1].client_status(), ClientResourceStatus::DOES_NOT_EXIST);
  EXPECT_FALSE(all[1].has_xds_config());
  EXPECT_EQ(all[2].client_status(), ClientResourceStatus::REQUESTED);
  EXPECT_EQ(all[3].client_status(), ClientResourceStatus::NACKED);
  EXPECT_EQ(all[3].version_info(), "3");
  EXPECT_EQ(all[3].error_state().version_info(), "4");
  EXPECT_EQ(all[3].error_state().details(), "endpoints[0].priority: 9; allowed: [0, 7]");
}

TEST_F(CsdsTest, ContentsMayBeLeftOut) {
  backend_.set_xds(FakeBackend::Xds());
  EXPECT_FALSE(Fetch(false).config(0).generic_xds_configs(0).has_xds_config());
}

TEST_F(CsdsTest, AStreamAnswersEachRequest) {
  backend_.set_xds(FakeBackend::Xds());
  auto stream = stub_->StreamClientStatus(&context_);
  for (const size_t resources : {size_t{4}, size_t{1}}) {
    csds::ClientStatusResponse response;
    ASSERT_TRUE(stream->Write({}));
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.config_size(), 1);
    EXPECT_EQ(response.config(0).generic_xds_configs_size(), static_cast<int>(resources));
    discovery::XdsView less = FakeBackend::Xds();
    less.resources.resize(1);
    backend_.set_xds(less);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(CsdsAccessTest, WithoutARoleNothingIsTold) {
  FakeBackend backend;
  backend.set_xds(FakeBackend::Xds());
  const Access access(/*certificates=*/true, {});
  const std::unique_ptr<grpc::Service> made = MakeCsdsService(backend, access);
  auto& service = static_cast<csds::ClientStatusDiscoveryService::Service&>(*made);
  grpc::ServerContext context;
  csds::ClientStatusRequest request;
  csds::ClientStatusResponse response;
  EXPECT_EQ(service.FetchClientStatus(&context, &request, &response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(response.config_size(), 0);
}

}  // namespace
}  // namespace sluice::admin
