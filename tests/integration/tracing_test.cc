// Traces through real clients, backends and a collector: one trace through two proxies, attempts as children, and a
// collector that is dead, hangs, or refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/backends.h"
#include "support/collector.h"
#include "support/echo_call.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/temp_dir.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using otlp::trace::v1::Span;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const std::string kTrace("\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c", 16);
const std::string kCaller("\xb7\xad\x6b\x71\x69\x20\x33\x31", 8);

ProxyConfig Traced(const std::string& collector, const std::string& more = "sample: {ratio: 1}") {
  ProxyConfig config;
  config.policy = "round_robin";
  config.hash_by = "random";
  config.top = {"tracing: {endpoint: \"" + collector + "\", " + more + "}"};
  return config;
}

Reply Unary(const std::string& target, const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  const auto stub = echo::v1::Echo::NewStub(Connect(target));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLongWait);
  for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
  return Call(stub.get(), Kind::kUnary, &context, {});
}

std::vector<SeenSpan> Of(const std::vector<SeenSpan>& spans, const std::string& service, Span::SpanKind kind) {
  std::vector<SeenSpan> out;
  for (const SeenSpan& seen : spans) {
    if (seen.service == service && seen.span.kind() == kind) out.push_back(seen);
  }
  std::sort(out.begin(), out.end(), [](const SeenSpan& a, const SeenSpan& b) {
    return a.span.start_time_unix_nano() < b.span.start_time_unix_nano();
  });
  return out;
}

TEST(Tracing, ACallThroughTwoProxiesIsOneTrace) {
  Collector collector;
  Backends backends(1);
  ProxyConfig inner = Traced(collector.address(), "service_name: inner");
  inner.endpoints = backends.endpoints();
  Proxy second(inner);
  ProxyConfig outer = Traced(collector.address(), "service_name: outer, sample: {ratio: 1}");
  outer.endpoints = {{"inner", second.target()}};
  Proxy first(outer);
  ASSERT_TRUE(Unary(first.target(), {{"tracestate", "vendor=1"}, {"traceparent", kSampled}}).status.ok());
  const auto spans = collector.Await(4);
  ASSERT_EQ(spans.size(), 4u);
  const auto outer_call = Of(spans, "outer", Span::SPAN_KIND_SERVER),
             outer_try = Of(spans, "outer", Span::SPAN_KIND_CLIENT);
  const auto inner_call = Of(spans, "inner", Span::SPAN_KIND_SERVER),
             inner_try = Of(spans, "inner", Span::SPAN_KIND_CLIENT);
  ASSERT_EQ(outer_call.size(), 1u);
  ASSERT_EQ(outer_try.size(), 1u);
  ASSERT_EQ(inner_call.size(), 1u);
  ASSERT_EQ(inner_try.size(), 1u);
  for (const SeenSpan& seen : spans) {
    EXPECT_EQ(seen.span.trace_id(), kTrace);
    EXPECT_EQ(seen.span.name(), "sluice.echo.v1.Echo/Unary");
    EXPECT_EQ(seen.span.trace_state(), "vendor=1");
    EXPECT_EQ(seen.span.flags(), 1u);
    EXPECT_LE(seen.span.start_time_unix_nano(), seen.span.end_time_unix_nano());
    EXPECT_EQ(seen.Number("rpc.grpc.status_code"), 0);
    EXPECT_EQ(seen.Text("rpc.service"), "sluice.echo.v1.Echo");
    EXPECT_EQ(seen.Text("rpc.method"), "Unary");
  }
  EXPECT_EQ(outer_call[0].span.parent_span_id(), kCaller);
  EXPECT_EQ(outer_try[0].span.parent_span_id(), outer_call[0].span.span_id());
  EXPECT_EQ(inner_call[0].span.parent_span_id(), outer_try[0].span.span_id());
  EXPECT_EQ(inner_try[0].span.parent_span_id(), inner_call[0].span.span_id());
  EXPECT_EQ(outer_try[0].Text("sluice.endpoint"), "inner");
  EXPECT_EQ(inner_try[0].Text("sluice.endpoint"), "echo-1");
  // A date of today's: the steady clock's times were taken as one.
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto began = std::chrono::nanoseconds(outer_call[0].span.start_time_unix_nano());
  EXPECT_LT(began, wall);
  EXPECT_GT(began, wall - std::chrono::minutes(2));
}

TEST(Tracing, WithoutACallerTheFirstProxyBeginsTheTraceAndTheSecondFollows) {
  Collector collector;
  Backends backends(1);
  ProxyConfig inner = Traced(collector.address(), "service_name: inner");
  inner.endpoints = backends.endpoints();
  Proxy second(inner);
  ProxyConfig outer = Traced(collector.address(), "service_name: outer, sample: {ratio: 1}");
  outer.endpoints = {{"inner", second.target()}};
  Proxy first(outer);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Unary(first.target()).status.ok());
  std::map<std::string, std::vector<SeenSpan>> traces;
  for (const SeenSpan& seen : collector.Await(80)) traces[seen.span.trace_id()].push_back(seen);
  EXPECT_EQ(traces.size(), 20u);
  for (const auto& [id, spans] : traces) {
    EXPECT_EQ(spans.size(), 4u);
    std::set<std::string> ids;
    int roots = 0;
    for (const SeenSpan& seen : spans) ids.insert(seen.span.span_id());
    EXPECT_EQ(ids.size(), 4u);
    for (const SeenSpan& seen : spans) {
      roots += seen.span.parent_span_id().empty();
      EXPECT_TRUE(seen.span.parent_span_id().empty() || ids.contains(seen.span.parent_span_id()));
    }
    EXPECT_EQ(roots, 1);
  }
}

// Two processes of one program must not make the same ids.
TEST(Tracing, ProcessesMakeDifferentIds) {
  Collector collector;
  Backends backends(1);
  ProxyConfig config = Traced(collector.address());
  config.endpoints = backends.endpoints();
  config.top.push_back("workers: 1");
  config.top.push_back("forwarding: {request_id: keep}");
  std::set<std::string> requests;
  for (int i = 0; i < 2; ++i) {
    Proxy proxy(config);
    for (int call = 0; call < 10; ++call) ASSERT_TRUE(Unary(proxy.target()).status.ok());
    (void)collector.Await(static_cast<size_t>(20 * (i + 1)));
  }
  std::set<std::string> traces, spans;
  for (const SeenSpan& seen : collector.Await(40)) {
    traces.insert(seen.span.trace_id());
    EXPECT_TRUE(spans.insert(seen.span.span_id()).second) << seen.span.DebugString();
    if (seen.span.kind() == Span::SPAN_KIND_SERVER) requests.insert(seen.Text("sluice.request_id"));
  }
  EXPECT_EQ(traces.size(), 20u);
  EXPECT_EQ(requests.size(), 20u);
}

// The client's id, or one that is made, is what the backend, the log and the span have; the client is told none.
TEST(Tracing, OneRequestIdIsInAllRecordsOfACall) {
  TempDir files;
  Collector collector;
  Backends backends(1);
  ProxyConfig config = Traced(collector.address());
  config.endpoints = backends.endpoints();
  config.top.push_back("forwarding: {request_id: keep}");
  config.top.push_back("access_log: {format: text, fields: [request_id], path: " + files.File("access.log") + "}");
  Proxy proxy(config);
  const auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  echo::v1::EchoRequest request;
  request.set_return_metadata(true);
  std::vector<std::string> told;
  for (const char* id : {"theirs-1", ""}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    if (*id != '\0') context.AddMetadata("x-request-id", id);
    const Reply reply = Call(stub.get(), Kind::kUnary, &context, request);
    ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
    EXPECT_EQ(reply.headers.count("x-request-id") + reply.trailers.count("x-request-id"), 0u);
    for (const auto& field : reply.messages.at(0).metadata()) {
      if (field.key() == "x-request-id") told.push_back(field.value());
    }
  }
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], "theirs-1");
  EXPECT_EQ(told[1].size(), 36u);
  std::vector<std::string> traced;
  for (const SeenSpan& seen : Of(collector.Await(4), "sluice", Span::SPAN_KIND_SERVER)) {
    traced.push_back(seen.Text("sluice.request_id"));
  }
  EXPECT_EQ(traced, told);
  const std::string log = "request_id=" + told[0] + "\nrequest_id=" + told[1] + "\n";
  EXPECT_TRUE(WaitUntil([&] { return files.Read("access.log") == log; })) << files.Read("access.log");
}

// Answers UNAVAILABLE, or after a while.
class Sick final : public echo::v1::Echo::Service {
 public:
  explicit Sick(milliseconds delay, StatusCode code) : delay_(delay), code_(code) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  grpc::Status Unary(grpc::ServerContext* context, const echo::v1::EchoRequest*, echo::v1::EchoReply*) override {
    const auto end = std::chrono::steady_clock::now() + delay_;
    (void)WaitUntil([&] { return context->IsCancelled() || std::chrono::steady_clock::now() >= end; });
    return {code_, "sick"};
  }
  const milliseconds delay_;
  const StatusCode code_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(Tracing, ARetryAndAHedgeAreChildren) {
  for (const bool hedge : {false, true}) {
    Collector collector;
    Backends backends(1);
    Sick sick(hedge ? milliseconds(5000) : milliseconds(0), StatusCode::UNAVAILABLE);
    ProxyConfig config = Traced(collector.address());
    config.endpoints = {{"sick", sick.address()}, {"well", backends.address(0)}};
    config.cluster = {"retry_budget: {ratio: 1}"};
    config.route = {"retry: {methods: all}"};
    if (hedge) config.route.push_back("hedge: {delay: 10ms}");
    Proxy proxy(config);
    std::vector<SeenSpan> spans, calls;
    const auto twice = [](const SeenSpan& seen) { return seen.Number("sluice.attempts") == 2; };
    // How many calls it takes until one meets the sick one first is a matter of which connection is there first.
    ASSERT_TRUE(WaitUntil([&] {
      EXPECT_TRUE(Unary(proxy.target()).status.ok());
      spans = collector.spans();
      calls = Of(spans, "sluice", Span::SPAN_KIND_SERVER);
      return std::any_of(calls.begin(), calls.end(), twice);
    })) << hedge;
    const auto with_two = std::find_if(calls.begin(), calls.end(), twice);
    const auto tries = Of(spans, "sluice", Span::SPAN_KIND_CLIENT);
    std::vector<SeenSpan> children;
    for (const SeenSpan& seen : tries) {
      if (seen.span.parent_span_id() == with_two->span.span_id()) children.push_back(seen);
    }
    ASSERT_EQ(children.size(), 2u);
    EXPECT_EQ(children[0].Text("sluice.endpoint"), "sick");
    EXPECT_EQ(children[0].Text("sluice.end"), hedge ? "cancelled" : "UNAVAILABLE");
    EXPECT_EQ(children[0].span.status().code(), otlp::trace::v1::Status::STATUS_CODE_ERROR);
    EXPECT_EQ(children[1].Text("sluice.endpoint"), "well");
    EXPECT_EQ(children[1].Text("sluice.end"), "OK");
    const auto& attributes = children[1].span.attributes();
    const bool marked = std::any_of(attributes.begin(), attributes.end(),
                                    [](const auto& a) { return a.key() == "sluice.hedge" && a.value().bool_value(); });
    EXPECT_EQ(marked, hedge);
  }
}

TEST(Tracing, AFailedCallIsExportedWithItsCause) {
  Collector collector;
  ProxyConfig config = Traced(collector.address(), "sample: {errors: true}");
  Proxy proxy(config);
  EXPECT_EQ(Unary(proxy.target()).status.error_code(), StatusCode::UNAVAILABLE);
  const auto spans = collector.Await(1);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].Text("sluice.cause"), "no_endpoint");
  EXPECT_EQ(spans[0].span.status().code(), otlp::trace::v1::Status::STATUS_CODE_ERROR);
  EXPECT_THAT(spans[0].span.status().message(), testing::HasSubstr("no endpoint of cluster echo"));
  EXPECT_EQ(spans[0].span.flags(), 2u) << "not sampled when it began, with a random id";
}

// The process with a collector that is dead or hangs: calls are as before, and SIGTERM ends it within the bound.
class WithDaemon : public testing::Test {
 protected:
  void Start(const std::string& collector, const std::string& more) {
    config_ = Traced(collector, more);
    config_.listen = "unix:" + dir_.File("listen.sock");
    config_.admin = "unix:" + dir_.File("admin.sock");
    config_.endpoints = backends_.endpoints();
    dir_.Write("sluice.yaml", config_.ToYaml());
    daemon_ = std::make_unique<Process>("sluiced", std::vector<std::string>{"-c", dir_.File("sluice.yaml")},
                                        dir_.File("daemon.out"));
    ASSERT_TRUE(WaitUntil([&] { return Unary(config_.listen).status.ok() || !daemon_->Running(); }));
    ASSERT_TRUE(daemon_->Running()) << daemon_->Output();
  }
  // How long the process takes to end.
  milliseconds End() {
    const auto began = std::chrono::steady_clock::now();
    daemon_->Signal(SIGTERM);
    const auto code = daemon_->Wait(kLongWait);
    EXPECT_EQ(code, 0) << daemon_->Output();
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
  }
  TempDir dir_;
  Backends backends_{1};
  ProxyConfig config_;
  std::unique_ptr<Process> daemon_;
};

TEST_F(WithDaemon, SigtermSendsTheLastSpans) {
  Collector collector;
  Start(collector.address(), "sample: {ratio: 1}, batch: 10000");
  int calls = 0;
  for (; calls < 50; ++calls) ASSERT_TRUE(Unary(config_.listen).status.ok());
  EXPECT_LT(End(), seconds(2));
  EXPECT_EQ(Of(collector.spans(), "sluice", Span::SPAN_KIND_SERVER).size(), backends_.calls())
      << "each call that reached the backend is one that was exported";
}

TEST_F(WithDaemon, ADeadCollectorCostsNoCallAndHoldsUpNoEnd) {
  std::string dead;
  {
    Collector collector;
    dead = collector.address();
  }
  Start(dead, "sample: {ratio: 1}, buffer: 64KiB");
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(Unary(config_.listen).status.ok());
  EXPECT_LT(End(), seconds(5));
  EXPECT_THAT(daemon_->Output(), testing::HasSubstr("does not take spans"));
}

TEST_F(WithDaemon, AHangingCollectorCostsNoCallAndHoldsUpNoEnd) {
  Collector collector;
  collector.Hang(true);
  Start(collector.address(), "sample: {ratio: 1}, buffer: 64KiB, batch: 10, export_timeout: 1m");
  ASSERT_TRUE(WaitUntil([&] { return collector.exports() > 0; }));
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(Unary(config_.listen).status.ok());
  const milliseconds took = End();
  EXPECT_GE(took, milliseconds(1500)) << "it waits for an answer";
  EXPECT_LT(took, seconds(6)) << "Exporter::kFlushMax, and the rest of the end";
}

TEST(Tracing, WhatACollectorDoesNotTakeIsCounted) {
  Collector collector;
  collector.AnswerWith({StatusCode::INVALID_ARGUMENT, "no"});
  Backends backends(1);
  ProxyConfig config = Traced(collector.address());
  config.endpoints = backends.endpoints();
  Proxy proxy(config);
  ASSERT_TRUE(Unary(proxy.target()).status.ok());
  EXPECT_TRUE(WaitUntil([&] { return proxy.Metric("sluice_traced_calls_total{result=\"lost\"}") == 1; }));
  EXPECT_EQ(collector.exports(), 1) << "it is not sent again";
  collector.AnswerWith(grpc::Status::OK, 2);
  ASSERT_TRUE(Unary(proxy.target()).status.ok());
  EXPECT_TRUE(WaitUntil([&] { return proxy.Metric("sluice_trace_spans_rejected_total") == 2; }));
  EXPECT_EQ(proxy.Metric("sluice_traced_calls_total{result=\"exported\"}"), 1);
}

TEST(Tracing, ABatchThatMayBeTakenLaterIsSentAgain) {
  Collector collector;
  collector.AnswerWith({StatusCode::UNAVAILABLE, "busy"});
  Backends backends(1);
  ProxyConfig config = Traced(collector.address());
  config.endpoints = backends.endpoints();
  Proxy proxy(config);
  ASSERT_TRUE(Unary(proxy.target()).status.ok());
  ASSERT_TRUE(WaitUntil([&] { return collector.exports() >= 2; }));
  collector.AnswerWith(grpc::Status::OK);
  EXPECT_EQ(collector.Await(2).size(), 2u);
  EXPECT_EQ(proxy.Metric("sluice_traced_calls_total{result=\"lost\"}"), 0);
}

TEST(Tracing, WhileACollectorHangsTheRingsDropAndItIsCounted) {
  Collector collector;
  collector.Hang(true);
  Backends backends(1);
  ProxyConfig config = Traced(collector.address(), "sample: {ratio: 1}, buffer: 64KiB, batch: 10, export_timeout: 1m");
  config.endpoints = backends.endpoints();
  Proxy proxy(config);
  uint64_t calls = 0;
  ASSERT_TRUE(WaitUntil([&] {
    ++calls;
    return Unary(proxy.target()).status.ok() && proxy.Metric("sluice_traced_calls_total{result=\"dropped\"}") > 0;
  }));
  collector.Hang(false);
  EXPECT_TRUE(WaitUntil([&] { return proxy.Metric("sluice_traced_calls_total") == static_cast<double>(calls); }))
      << "each call is exported, dropped or lost";
}

TEST(Tracing, AReloadTakesAnotherCollector) {
  Collector before, after;
  Backends backends(1);
  ProxyConfig config = Traced(before.address());
  config.endpoints = backends.endpoints();
  Proxy proxy(config);
  ASSERT_TRUE(Unary(proxy.target()).status.ok());
  ProxyConfig next = Traced(after.address());
  next.endpoints = backends.endpoints();
  proxy.Rewrite(next);
  ASSERT_TRUE(proxy.server().Reload().errors.empty());
  ASSERT_TRUE(Unary(proxy.target()).status.ok());
  EXPECT_EQ(after.Await(2).size(), 2u);
  EXPECT_EQ(before.Await(2).size(), 2u) << "what the former one had, it sends";
  ProxyConfig off = config;
  off.top.clear();
  proxy.Rewrite(off);
  ASSERT_TRUE(proxy.server().Reload().errors.empty());
  ASSERT_TRUE(Unary(proxy.target(), {{"traceparent", kSampled}}).status.ok());
}

}  // namespace
}  // namespace sluice::integration
