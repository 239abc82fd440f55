// The admin RPCs over a real socket: every function of the backend, every error, health, reflection, and the
// socket itself.
#include "admin/admin_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "admin/status_code.h"
#include "fake_backend.h"
#include "sluice/admin/v1/admin.grpc.pb.h"
#include "support/captured_log.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;
using Request = v1::ChangeEndpointsRequest;

class AdminServerTest : public testing::Test {
 protected:
  void SetUp() override { StartAt("unix:" + (dir_ / "s")); }

  void StartAt(const std::string& address) {
    server_.reset();
    base::Result<std::unique_ptr<AdminServer>> server = AdminServer::Start(address, backend_);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Admin::NewStub(channel_);
  }

  // The answer; `code` is what the status must be.
  template <typename Q, typename R>
  R Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Q&, R*), const Q& request,
         grpc::StatusCode code = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    R response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto reason = trailers.find("sluice-reason");
    reason_ = reason == trailers.end() ? "" : std::string(reason->second.data(), reason->second.size());
    message_ = status.error_message();
    return response;
  }

  // grpc.health.v1.Health/Check by hand: field 1 of the request is the service, of the response the status (1
  // = SERVING).
  int Health(const std::string& service) {
    const grpc::Slice slice("\x0a" + std::string(1, static_cast<char>(service.size())) + service);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check", grpc::internal::RpcMethod::NORMAL_RPC);
    const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
        channel_.get(), method, &context, request, &response);
    if (!status.ok()) return -static_cast<int>(status.error_code());
    const std::string bytes = Bytes(response);
    return bytes.size() == 2 && bytes[0] == 0x08 ? bytes[1] : 0;
  }

  static std::string Bytes(const grpc::ByteBuffer& buffer) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(buffer.Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }

  TempDir dir_;
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Admin::Stub> stub_;
  std::string message_, reason_;  // of the last status
};

Request Change(Request::Kind kind, const std::string& name, const std::string& address = "") {
  Request request;
  request.set_cluster("users");
  request.set_kind(kind);
  v1::EndpointSpec& spec = *request.add_endpoints();
  spec.set_name(name);
  spec.set_address(address);
  return request;
}

TEST_F(AdminServerTest, DescribesTheServer) {
  const v1::GetServerResponse response = Call(&v1::Admin::Stub::GetServer, v1::GetServerRequest());
  EXPECT_EQ(response.version(), "1.2.3");
  EXPECT_EQ(response.config_file(), "/etc/sluice.yaml");
  EXPECT_EQ(response.pid(), 4242u);
  EXPECT_EQ(response.uptime_seconds(), 3725u);
  EXPECT_EQ(response.workers(), 2u);
  EXPECT_TRUE(response.ready());
  EXPECT_FALSE(response.draining());
  EXPECT_EQ(response.downstream_connections(), 5u);
  EXPECT_EQ(response.calls_in_flight(), 6u);
}

TEST_F(AdminServerTest, ListsClusters) {
  EXPECT_EQ(Call(&v1::Admin::Stub::ListClusters, v1::ListClustersRequest()).clusters_size(), 2);
  v1::ListClustersRequest request;
  request.set_name("users");
  const v1::ListClustersResponse response = Call(&v1::Admin::Stub::ListClusters, request);
  ASSERT_EQ(response.clusters_size(), 1);
  const v1::Cluster& users = response.clusters(0);
  EXPECT_EQ(users.policy(), "ring_hash");
  EXPECT_EQ(users.version(), 7u);
  EXPECT_EQ(users.digest(), 0xabcdefu);
  ASSERT_EQ(users.endpoints_size(), 3);
  const v1::Endpoint& a = users.endpoints(0);
  EXPECT_EQ(a.name() + " " + a.address() + " " + a.connection(), "a 10.0.0.1:50051 connected");
  EXPECT_EQ(a.state(), v1::Endpoint::STATE_ACTIVE);
  EXPECT_EQ(users.endpoints(2).state(), v1::Endpoint::STATE_REMOVED);
  EXPECT_EQ(a.share(), 0.25);
  EXPECT_EQ(users.endpoints(1).weight(), 3);
  EXPECT_EQ(std::vector<uint64_t>({a.in_flight(), a.calls(), a.failures(), a.connections()}),
            (std::vector<uint64_t>{3, 100, 2, 4}));
  request.set_name("none");
  Call(&v1::Admin::Stub::ListClusters, request, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(message_, "no cluster none");
  EXPECT_EQ(reason_, "not_found");
}

TEST_F(AdminServerTest, ChangesEndpoints) {
  Request request = Change(Request::KIND_ADD, "c", "h:1");
  request.mutable_endpoints(0)->set_weight(2.5);
  request.set_expected_version(7);
  const v1::ChangeEndpointsResponse response = Call(&v1::Admin::Stub::ChangeEndpoints, request);
  EXPECT_EQ(response.version(), 8u);
  EXPECT_EQ(response.digest(), 0x1234u);
  EXPECT_EQ(response.moved_share(), 0.125);
  const upstream::EndpointChange change = backend_.last_change();
  EXPECT_EQ(change.kind, upstream::EndpointChange::Kind::kAdd);
  EXPECT_EQ(change.endpoints.at(0).weight, 2.5);
  EXPECT_EQ(change.expected_version, 7u);
  EXPECT_FALSE(change.preview);
  EXPECT_EQ(change.over.count(), 0);

  request.set_preview(true);
  Call(&v1::Admin::Stub::ChangeEndpoints, request, grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(message_, "the list is at version 8");
  request.clear_expected_version();
  EXPECT_EQ(Call(&v1::Admin::Stub::ChangeEndpoints, request).version(), 9u);
  EXPECT_TRUE(backend_.last_change().preview);
  EXPECT_EQ(backend_.last_change().expected_version, std::nullopt);  // not "version 0"
  request.set_cluster("broken");
  Call(&v1::Admin::Stub::ChangeEndpoints, request, grpc::StatusCode::INTERNAL);
}

TEST_F(AdminServerTest, ADrainMayTakeTimeAndANewEndpointHasItsStanding) {
  Request request = Change(Request::KIND_DRAIN, "c");
  request.set_over_ms(60'000);
  Call(&v1::Admin::Stub::ChangeEndpoints, request);
  EXPECT_EQ(backend_.last_change().over, std::chrono::minutes(1));
  request = Change(Request::KIND_ADD, "c", "h:1");
  request.mutable_endpoints(0)->set_priority(3);
  request.mutable_endpoints(0)->set_locality("eu");
  Call(&v1::Admin::Stub::ChangeEndpoints, request);
  EXPECT_EQ(backend_.last_change().endpoints.at(0).priority, 3u);
  EXPECT_EQ(backend_.last_change().endpoints.at(0).locality, "eu");
}

TEST_F(AdminServerTest, RefusesImpossibleChangesBeforeTheBackendSeesThem) {
  const auto refused = [&](const Request& request, const std::string& why) {
    Call(&v1::Admin::Stub::ChangeEndpoints, request, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(message_, HasSubstr(why));
  };
  Request request = Change(Request::KIND_ADD, "c", "h:1");
  request.clear_cluster();
  refused(request, "cluster");
  refused(Change(Request::KIND_UNSPECIFIED, "c", "h:1"), "kind");
  refused(Change(static_cast<Request::Kind>(99), "c", "h:1"), "kind");  // a client newer than we are
  refused(Change(Request::KIND_ADD, "c"), "endpoints[0].address");
  refused(Change(Request::KIND_REMOVE, "", "h:1"), "endpoints[0].name");
  for (const std::string& name :
       {std::string("a b"), std::string("a\tb"), std::string("\xc3\xa4"), std::string(257, 'a')}) {
    refused(Change(Request::KIND_ADD, name, "h:1"), "endpoints[0].name: must be at most 256 visible ASCII characters");
    refused(Change(Request::KIND_REPLACE, name, "h:1"), "endpoints[0].name");
  }
  refused(Change(Request::KIND_REWEIGHT, "c"), "endpoints[0].weight");
  for (double weight : {0.0, -1.0, double(NAN), double(INFINITY)}) {
    request = Change(Request::KIND_REWEIGHT, "c");
    request.mutable_endpoints(0)->set_weight(weight);
    refused(request, "endpoints[0].weight");
  }
  request = Change(Request::KIND_ADD, "c", "h:1");
  request.set_over_ms(1);
  refused(request, "over_ms: goes with KIND_DRAIN only");
  request = Change(Request::KIND_DRAIN, "c");
  request.set_over_ms(86'400'001);
  refused(request, "over_ms: must be at most a day");
  request = Change(Request::KIND_REWEIGHT, "c");
  request.mutable_endpoints(0)->set_weight(1);
  request.mutable_endpoints(0)->set_priority(1);
  refused(request, "priority and locality go with KIND_ADD and KIND_REPLACE only");
  request = Change(Request::KIND_REPLACE, "c", "h:1");
  request.clear_endpoints();
  refused(request, "at least one");
  for (int i = 0; i < 4097; ++i) request.add_endpoints()->set_address("h:1");
  refused(request, "4097");
  EXPECT_EQ(backend_.change_count(), 0u);
}

TEST_F(AdminServerTest, ListsLimits) {
  const v1::ListLimitsResponse response = Call(&v1::Admin::Stub::ListLimits, v1::ListLimitsRequest());
  ASSERT_EQ(response.limits_size(), 3);
  const v1::Limit &process = response.limits(0), &rate = response.limits(1), &clients = response.limits(2);
  EXPECT_EQ(process.name(), "process/concurrency");
  EXPECT_TRUE(process.has_concurrency());
  EXPECT_EQ(process.concurrency().max(), 100u);
  EXPECT_EQ(process.queue_max(), 1024u);
  EXPECT_EQ(process.waiting(), 2u);
  EXPECT_EQ(process.in_use(), 100u);
  EXPECT_TRUE(rate.has_rate());
  EXPECT_EQ(rate.rate().rate(), 0.5);
  EXPECT_EQ(rate.rate().burst(), 10u);
  EXPECT_FALSE(rate.rate().capped());
  EXPECT_TRUE(clients.rate().capped());
  EXPECT_EQ(clients.clients(), 7u);
}

TEST_F(AdminServerTest, ChangesALimit) {
  v1::ChangeLimitRequest request;
  request.set_name("process/concurrency");
  request.set_max(0);
  const v1::ChangeLimitResponse response = Call(&v1::Admin::Stub::ChangeLimit, request);
  EXPECT_EQ(response.limit().concurrency().max(), 0u);
  EXPECT_TRUE(response.limit().overridden());
  const std::optional<LimitChange> change = backend_.last_limit_change();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->max, 0u);  // given, and not absent
  EXPECT_EQ(change->queue_max, std::nullopt);
  EXPECT_FALSE(change->reset);
  request.set_name("nothing");
  Call(&v1::Admin::Stub::ChangeLimit, request, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(reason_, "not_found");
}

TEST_F(AdminServerTest, RefusesImpossibleLimitChangesBeforeTheBackendSeesThem) {
  const auto refused = [&](const v1::ChangeLimitRequest& request, const std::string& why) {
    Call(&v1::Admin::Stub::ChangeLimit, request, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(message_, HasSubstr(why));
    EXPECT_EQ(reason_, "invalid_argument");
  };
  v1::ChangeLimitRequest request;
  refused(request, "name");
  request.set_name("cluster/users/rate");
  refused(request, "nothing to change");
  request.set_reset(true);
  request.set_rate(1);
  refused(request, "reset");
  EXPECT_EQ(backend_.last_limit_change(), std::nullopt);
}

TEST_F(AdminServerTest, ListsCertificates) {
  const auto response = Call(&v1::Admin::Stub::ListCertificates, v1::ListCertificatesRequest());
  ASSERT_EQ(response.certificates_size(), 3);
  const v1::Certificate& own = response.certificates(0);
  EXPECT_EQ(own.used_by(), "listener/in");
  EXPECT_EQ(own.purpose(), v1::Certificate::PURPOSE_OWN);
  EXPECT_EQ(own.file(), "/tls/a.crt");
  EXPECT_EQ(own.subject() + " " + own.issuer(), "CN=a CN=ca");
  EXPECT_EQ(own.names_size(), 2);
  EXPECT_EQ(own.not_after(), 1'800'000'000);
  EXPECT_EQ(own.days_left(), 55);
  EXPECT_EQ(own.error(), "no key");
  EXPECT_EQ(response.certificates(1).days_left(), -1);
  EXPECT_EQ(response.certificates(2).purpose(), v1::Certificate::PURPOSE_TRUSTED);
}

TEST_F(AdminServerTest, DescribesTheCache) {
  const v1::GetCacheResponse response = Call(&v1::Admin::Stub::GetCache, v1::GetCacheRequest());
  EXPECT_TRUE(response.enabled());
  EXPECT_EQ(response.capacity_bytes(), 64u << 20);
  EXPECT_EQ(std::vector<uint64_t>({response.usage_bytes(), response.entries(), response.fetches()}),
            (std::vector<uint64_t>{3 << 20, 12, 1}));
  EXPECT_EQ(std::vector<uint64_t>({response.hits(), response.misses(), response.stale(), response.coalesced()}),
            (std::vector<uint64_t>{60, 20, 15, 5}));
  EXPECT_EQ(std::vector<uint64_t>({response.evicted(), response.expired(), response.purged()}),
            (std::vector<uint64_t>{9, 8, 7}));
  ASSERT_EQ(response.not_cached_size(), static_cast<int>(proxy::kNotCachedReasons));
  EXPECT_EQ(response.not_cached(4).reason(), "no_store");
  EXPECT_EQ(response.not_cached(4).count(), 4u);
  EXPECT_EQ(response.not_cached(8).reason(), "full");
  EXPECT_EQ(response.not_cached(8).count(), 1u);
}

TEST_F(AdminServerTest, PurgesTheCache) {
  v1::PurgeCacheRequest request;
  EXPECT_EQ(Call(&v1::Admin::Stub::PurgeCache, request).dropped(), 3u);
  EXPECT_EQ(backend_.last_purge()->key, std::nullopt);
  request.set_service("p.S");
  request.set_method("M");
  request.set_key("");
  Call(&v1::Admin::Stub::PurgeCache, request);
  EXPECT_EQ(backend_.last_purge()->key, "");  // the empty message, and not every one
  EXPECT_EQ(backend_.last_purge()->service + "/" + backend_.last_purge()->method, "p.S/M");
}

TEST_F(AdminServerTest, RefusesImpossiblePurges) {
  const auto refused = [&](const std::string& service, const std::string& method, bool key, const std::string& why) {
    v1::PurgeCacheRequest request;
    request.set_service(service);
    request.set_method(method);
    if (key) request.set_key("k");
    Call(&v1::Admin::Stub::PurgeCache, request, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(message_, HasSubstr(why));
  };
  refused("", "M", false, "service");
  refused("p.S", "", true, "are needed with key");
  refused("", "", true, "are needed with key");
  refused("p.S/M", "", false, "without a /");
  refused("p.S", "/M", false, "without a /");
  EXPECT_EQ(backend_.last_purge(), std::nullopt);
}

TEST_F(AdminServerTest, ReloadsAndReportsErrorsInTheAnswer) {
  backend_.set_reload({{"e1", "e2"}, {"w"}});
  const v1::ReloadResponse response = Call(&v1::Admin::Stub::Reload, v1::ReloadRequest());
  EXPECT_THAT(response.errors(), testing::ElementsAre("e1", "e2"));
  EXPECT_THAT(response.warnings(), testing::ElementsAre("w"));
}

TEST_F(AdminServerTest, RendersMetricsAndSetsTheLogLevel) {
  EXPECT_EQ(Call(&v1::Admin::Stub::GetMetrics, v1::GetMetricsRequest()).text(), backend_.RenderMetrics());
  v1::SetLogLevelRequest request;
  request.set_level("debug");
  Call(&v1::Admin::Stub::SetLogLevel, request);
  EXPECT_EQ(Call(&v1::Admin::Stub::GetLogLevel, v1::GetLogLevelRequest()).level(), "debug");
  request.set_level("loud");
  Call(&v1::Admin::Stub::SetLogLevel, request, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(message_, "level must be debug or info");
}

// Every client of the socket would be "unix:" otherwise.
TEST_F(AdminServerTest, TheAuditTellsTheProcessBehindAUnixSocket) {
  test::CapturedLog log;
  v1::SetLogLevelRequest request;
  request.set_level("debug");
  Call(&v1::Admin::Stub::SetLogLevel, request);
  const std::string self = "unix: uid=" + std::to_string(::getuid()) + " pid=" + std::to_string(::getpid());
  EXPECT_THAT(log.Take(), HasSubstr("audit: who=\"" + self + "\" peer=\"" + self + "\" method=SetLogLevel"));
  // Another connection is told apart, also where it has the number of one that has gone.
  server_.reset();
  StartAt("127.0.0.1:0");
  Call(&v1::Admin::Stub::SetLogLevel, request);
  EXPECT_THAT(log.Take(), HasSubstr("audit: who=\"ipv4:127.0.0.1:"));
  server_.reset();
}

TEST_F(AdminServerTest, DrainsAndStops) {
  v1::DrainRequest request;
  Call(&v1::Admin::Stub::Drain, request);
  EXPECT_EQ(backend_.drain_timeout(), std::nullopt);
  request.set_timeout_ms(0);
  Call(&v1::Admin::Stub::Drain, request);
  EXPECT_EQ(backend_.drain_timeout(), std::chrono::milliseconds(0));
  EXPECT_EQ(backend_.drain_delay(), std::nullopt);
  request.set_delay_ms(5);
  Call(&v1::Admin::Stub::Drain, request, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(message_, "the delay is too long");
  request.set_timeout_ms(10);
  Call(&v1::Admin::Stub::Drain, request);
  EXPECT_EQ(backend_.drain_delay(), std::chrono::milliseconds(5));
  request.set_delay_ms(UINT64_MAX);
  Call(&v1::Admin::Stub::Drain, request, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(message_, "delay_ms: must be at most a day (86400000)");
  request.set_timeout_ms(UINT64_MAX);
  Call(&v1::Admin::Stub::Drain, request, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(message_, "timeout_ms: must be at most a day (86400000)");
  EXPECT_EQ(backend_.drains_, 3);
  Call(&v1::Admin::Stub::Stop, v1::StopRequest());
  EXPECT_EQ(backend_.stops_, 1);
}

TEST_F(AdminServerTest, RefusesARequestAboveItsLimit) {
  v1::SetLogLevelRequest request;
  request.set_level(std::string(AdminServer::kRequestBytesMax, 'x'));
  Call(&v1::Admin::Stub::SetLogLevel, request, grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(AdminServerTest, ServesManyClientsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        grpc::ClientContext context;
        v1::ListClustersResponse response;
        good += stub_->ListClusters(&context, {}, &response).ok();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 120);
}

TEST_F(AdminServerTest, HealthFollowsReadiness) {
  EXPECT_EQ(Health(""), 1);
  EXPECT_EQ(Health("sluice.admin.v1.Admin"), 1);
  EXPECT_EQ(Health("none"), -static_cast<int>(grpc::StatusCode::NOT_FOUND));
  backend_.ready_ = false;
  while (Health("") == 1 || Health("sluice.admin.v1.Admin") == 1) std::this_thread::yield();  // within kHealthPeriod
  backend_.ready_ = true;
  while (Health("") != 1) std::this_thread::yield();
}

TEST_F(AdminServerTest, HealthOfAServerThatStartsUnreadyIsNotServing) {
  backend_.ready_ = false;
  StartAt("127.0.0.1:0");
  EXPECT_EQ(Health(""), 2);
}

TEST_F(AdminServerTest, ReflectionListsTheServices) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const grpc::internal::RpcMethod method("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                         grpc::internal::RpcMethod::BIDI_STREAMING);
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel_.get(), method,
                                                                                            &context));
  const grpc::Slice list_services("\x3a\x01*");  // field 7, a string
  ASSERT_TRUE(stream->Write(grpc::ByteBuffer(&list_services, 1)));
  stream->WritesDone();
  grpc::ByteBuffer answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(Bytes(answer), HasSubstr("sluice.admin.v1.Admin"));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(AdminServerTest, TheSocketIsTheOwnersOnly) {
  struct stat info;
  ASSERT_EQ(stat((dir_ / "s").c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  server_->Shutdown(base::Nanos::zero());
  EXPECT_NE(stat((dir_ / "s").c_str(), &info), 0);  // and it goes with the server
}

TEST_F(AdminServerTest, ASecondServerIsRefusedAndTheFirstGoesOn) {
  base::Result<std::unique_ptr<AdminServer>> second = AdminServer::Start(server_->address(), backend_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, base::ErrorKind::kConflict);
  Call(&v1::Admin::Stub::GetServer, v1::GetServerRequest());
}

TEST_F(AdminServerTest, ATcpPortIsNotShared) {
  StartAt("127.0.0.1:0");
  EXPECT_FALSE(server_->address().ends_with(":0")) << server_->address();
  Call(&v1::Admin::Stub::GetServer, v1::GetServerRequest());
  base::Result<std::unique_ptr<AdminServer>> second = AdminServer::Start(server_->address(), backend_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, base::ErrorKind::kConflict);
}

TEST_F(AdminServerTest, RefusesAnAddressItDoesNotUnderstand) {
  EXPECT_FALSE(AdminServer::Start("somewhere", backend_).ok());
}

TEST_F(AdminServerTest, ShutdownDoesNotWaitForAWatcher) {
  grpc::ClientContext context;
  const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Watch", grpc::internal::RpcMethod::SERVER_STREAMING);
  const grpc::Slice slice("\x0a", 0);
  std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> watch(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel_.get(), method, &context,
                                                                    grpc::ByteBuffer(&slice, 1)));
  grpc::ByteBuffer update;
  ASSERT_TRUE(watch->Read(&update));
  EXPECT_EQ(Bytes(update), "\x08\x01");
  server_->Shutdown(std::chrono::milliseconds(100));
  ASSERT_TRUE(watch->Read(&update));
  EXPECT_EQ(Bytes(update), "\x08\x02");
  EXPECT_FALSE(watch->Read(&update));
  EXPECT_FALSE(watch->Finish().ok());
}

TEST(StatusCode, NeverSaysUnavailable) {
  using base::ErrorKind;
  const auto code = [](ErrorKind kind) { return static_cast<grpc::StatusCode>(StatusCode(kind)); };
  EXPECT_EQ(code(ErrorKind::kConflict), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(code(ErrorKind::kIo), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(code(ErrorKind::kBusy), grpc::StatusCode::ABORTED);
  EXPECT_EQ(code(ErrorKind::kRemoved), grpc::StatusCode::NOT_FOUND);
  for (size_t i = 0; i < base::kErrorKinds; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    EXPECT_NE(code(kind), grpc::StatusCode::OK) << base::Reason(kind);
    EXPECT_NE(code(kind), grpc::StatusCode::UNAVAILABLE) << base::Reason(kind);
  }
}

}  // namespace
}  // namespace sluice::admin
