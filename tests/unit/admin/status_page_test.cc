// The pages of the HTTP port: what they show, that they escape it, and that they stay small.
#include "admin/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/endpoint_table.h"
#include "admin/html.h"
#include "admin/http_routes.h"
#include "fake_backend.h"

namespace sluice::admin {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using upstream::EndpointLink;
using upstream::EndpointState;
using upstream::HealthState;

upstream::HealthView Health(HealthState state, std::string why) {
  upstream::HealthView health;
  health.state = state;
  health.in_state = seconds(75);
  health.why = std::move(why);
  return health;
}

ClusterView Cluster(const std::string& name, size_t endpoints) {
  ClusterView cluster;
  cluster.name = name;
  cluster.policy = "ring_hash";
  for (size_t i = 0; i < endpoints; ++i) {
    EndpointView endpoint;
    endpoint.name = "endpoint-" + std::to_string(i);
    endpoint.address = "10.0.0." + std::to_string(i) + ":50051";
    endpoint.calls = 10;
    endpoint.share = 1.0 / static_cast<double>(endpoints);
    endpoint.connection = EndpointLink::kConnected;
    endpoint.health = Health(HealthState::kUp, "");
    cluster.endpoints.push_back(std::move(endpoint));
  }
  return cluster;
}

class StatusPageTest : public testing::Test {
 protected:
  std::string Overview(const std::vector<ClusterView>& clusters, size_t page = 1) {
    return RenderStatusPage(parts, clusters, history, page);
  }
  HttpReply Get(std::string_view target) { return HandleHttp(backend, history, "GET", target); }

  FakeBackend backend;
  StatusParts parts;
  TrafficHistory history;
};

TEST_F(StatusPageTest, AnEndpointThatIsNotWellIsShownFirstAndWithItsReason) {
  ClusterView cluster = Cluster("users", 3);
  cluster.endpoints[2].health = Health(HealthState::kEjected, "5 of 5 calls failed: UNAVAILABLE <script>");
  cluster.endpoints[2].health->last_error = "connection refused";
  cluster.endpoints[2].health->last_error_ago = std::chrono::milliseconds(12'400);
  const std::string overview = Overview({cluster});
  EXPECT_THAT(overview,
              AllOf(HasSubstr("5 of 5 calls failed: UNAVAILABLE &lt;script&gt;"), HasSubstr("connection refused"),
                    HasSubstr("1 min 15 s"), HasSubstr("▲ ejected"), HasSubstr("▲ 1 endpoint is not well")));
  EXPECT_LT(overview.find("endpoint-2"), overview.find("endpoint-0"));
  const std::string page = RenderClusterPage(cluster, history, 1);
  EXPECT_LT(page.find("endpoint-2"), page.find("endpoint-0"));
  EXPECT_THAT(page,
              AllOf(HasSubstr("ejected"), HasSubstr("last error: connection refused, 12 s ago"), HasSubstr("33.3%")));
}

TEST_F(StatusPageTest, ADrainedOrWarmingEndpointIsWell) {
  ClusterView cluster = Cluster("users", 2);
  cluster.endpoints[0].state = EndpointState::kDraining;
  cluster.endpoints[0].health = Health(HealthState::kDraining, "");
  cluster.endpoints[1].health = Health(HealthState::kWarming, "");
  EXPECT_THAT(Overview({cluster}), HasSubstr("All endpoints are well"));
  cluster.endpoints[1].connection = EndpointLink::kBackoff;
  EXPECT_THAT(Overview({cluster}), HasSubstr("1 endpoint is not well"));
}

TEST_F(StatusPageTest, TheLastChangesAreShownNewestFirst) {
  ClusterView cluster = Cluster("users", 1);
  cluster.health_changes = {{seconds(60), "a", HealthState::kUp, HealthState::kEjected, "older"},
                            {seconds(5), "a", HealthState::kEjected, HealthState::kWarming, "newer"}};
  const std::string page = RenderClusterPage(cluster, history, 1);
  EXPECT_LT(page.find("newer"), page.find("older"));
  EXPECT_NE(page.find("older"), std::string::npos);
}

TEST_F(StatusPageTest, TrafficIsShownAsRatesAndAsAPicture) {
  ClusterTraffic sum;
  sum.cluster = "users";
  history.Add({sum}, {}, base::TimePoint(seconds(1)));
  EXPECT_THAT(Overview({Cluster("users", 1)}), Not(HasSubstr("class=\"axis\"")));
  sum.statuses[0] = 900;
  sum.statuses[14] = 100;
  history.Add({sum}, {}, base::TimePoint(seconds(11)));
  EXPECT_THAT(Overview({Cluster("users", 1)}), AllOf(HasSubstr("class=\"axis\""), HasSubstr(">100</td>"),
                                                     HasSubstr(">10.0<span"), HasSubstr("UNAVAILABLE 10.0/s")));
  EXPECT_THAT(RenderClusterPage(Cluster("users", 1), history, 1), HasSubstr("UNAVAILABLE 10.0/s"));
}

// A page is read over slow links, in an incident.
TEST_F(StatusPageTest, PagesOfLongListsStaySmall) {
  ClusterView cluster = Cluster("users", 1'000);
  const std::string why(500, '&');
  for (EndpointView& endpoint : cluster.endpoints) endpoint.health = Health(HealthState::kSuspect, "slow");
  for (int i = 0; i < 64; ++i)
    cluster.health_changes.push_back({seconds(i), "e", HealthState::kUp, HealthState::kSuspect, "slow"});
  EXPECT_LT(RenderClusterPage(cluster, history, 1).size(), 100'000u);
  std::vector<ClusterView> clusters;
  for (int i = 0; i < 1'000; ++i) clusters.push_back(Cluster("cluster-" + std::to_string(i), 2));
  EXPECT_LT(Overview(clusters).size(), 100'000u);
  cluster.endpoints[0].health = Health(HealthState::kSuspect, why);
  EXPECT_THAT(RenderClusterPage(cluster, history, 1), Not(HasSubstr(EscapeHtml(why)))) << "long text is cut";
}

TEST_F(StatusPageTest, EachEndpointAndClusterIsOnOnePage) {
  const ClusterView cluster = Cluster("users", 2 * kEndpointsPerPage + 1);
  std::string all;
  for (size_t page = 1; page <= 3; ++page) all += RenderClusterPage(cluster, history, page);
  for (const EndpointView& endpoint : cluster.endpoints) {
    const size_t at = all.find("<td>" + endpoint.name + "<");
    ASSERT_NE(at, std::string::npos) << endpoint.name;
    EXPECT_EQ(all.find("<td>" + endpoint.name + "<", at + 1), std::string::npos) << endpoint.name;
  }
  EXPECT_EQ(RenderClusterPage(cluster, history, 99), RenderClusterPage(cluster, history, 3));
  EXPECT_EQ(RenderClusterPage(cluster, history, 0), RenderClusterPage(cluster, history, 1));
}

TEST_F(StatusPageTest, LimitsWithWaitersComeFirstAndThoseWithoutABoundAreLeftOut) {
  LimitView none, full, other;
  none.name = "route/a/rate";
  other.name = "cluster/b/rate";
  other.rate = 5;
  full.name = "process/concurrency";
  full.max = 7;
  full.waiting = 3;
  parts.limits = {none, other, full};
  const std::string page = Overview({});
  EXPECT_THAT(page, AllOf(HasSubstr("7 at once"), HasSubstr("5.00 a second, burst 0"), Not(HasSubstr("route/a/rate"))));
  EXPECT_LT(page.find("process/concurrency"), page.find("cluster/b/rate"));
}

TEST_F(StatusPageTest, ACertificateIsShownWhenItIsToBeLookedAfter) {
  CertificateView good, late, broken;
  good.file = "good.pem";
  good.days_left = 300;
  late.file = "late.pem";
  late.days_left = -2;
  broken.file = "broken.pem";
  broken.days_left = 300;
  broken.error = "the key is another's";
  parts.certificates = {good, late, broken};
  EXPECT_THAT(Overview({}), AllOf(HasSubstr("late.pem"), HasSubstr(">-2<"), HasSubstr("the key is another&#39;s"),
                                  Not(HasSubstr("good.pem"))));
}

TEST_F(StatusPageTest, AClusterIsFoundByItsNameHoweverOddThatIs) {
  const std::string name = "<b>&\"odd'";
  const std::string link = "/cluster?name=" + EscapeQuery(name);
  EXPECT_THAT(Get("/").body, HasSubstr("href=\"" + link + "\""));
  EXPECT_EQ(Get(link).status, 200);
  EXPECT_THAT(Get(link).body, AllOf(HasSubstr("<h1>&lt;b&gt;"), Not(HasSubstr("<b>"))));
  EXPECT_EQ(Get("/cluster?name=nothing").status, 404);
  EXPECT_EQ(Get("/cluster").status, 400);
  EXPECT_EQ(Get("/cluster?name=%zz").status, 400);
}

TEST_F(StatusPageTest, JsonHasAllAndTheEndpointsOfTheClusterThatIsAskedFor) {
  const HttpReply all = Get("/status.json");
  EXPECT_EQ(all.content_type, "application/json");
  EXPECT_THAT(all.body, AllOf(HasSubstr("\"version\":\"1.2.3\""), HasSubstr("\"name\":\"users\""),
                              HasSubstr("process/concurrency"), Not(HasSubstr("10.0.0.1:50051"))));
  EXPECT_THAT(all.body, AllOf(HasSubstr("\"users\":{\"endpoints\":3,\"unwell\":0"), HasSubstr("\"reload\":null"),
                              HasSubstr("{\"reason\":\"upstream_unavailable\",\"per_second\":0,\"count\":\"12\"}")));
  EXPECT_THAT(Get("/status.json?cluster=users").body,
              AllOf(HasSubstr("10.0.0.1:50051"), HasSubstr("\"shares_of_calls\":[")));
  EXPECT_EQ(Get("/status.json?cluster=x").status, 404);
}

TEST_F(StatusPageTest, WithManyClustersAllThatAreNotWellAreNamedWhateverThePage) {
  std::vector<ClusterView> clusters;
  for (int i = 0; i < 200; ++i) clusters.push_back(Cluster("cluster-" + std::to_string(i), 1));
  clusters[180].endpoints[0].connection = EndpointLink::kBackoff;
  EXPECT_THAT(Overview(clusters),
              AllOf(HasSubstr("name=cluster-180\""), HasSubstr("No endpoint is well of: cluster-180"),
                    Not(HasSubstr("name=cluster-181\""))));
  for (ClusterView& each : clusters) each.endpoints[0].connection = EndpointLink::kBackoff;
  EXPECT_THAT(Overview(clusters), HasSubstr("170 more: in the clusters"));
}

TEST_F(StatusPageTest, AWellProcessSaysSo) {
  EXPECT_THAT(Overview({Cluster("users", 1)}), HasSubstr("● All endpoints are well"));
  parts.server.draining = true;
  EXPECT_THAT(Overview({Cluster("users", 1)}),
              AllOf(HasSubstr("◆ draining"), Not(HasSubstr("All endpoints are well"))));
}

TEST_F(StatusPageTest, ExpectedAndActualSharesAreShown) {
  ClusterView cluster = Cluster("users", 2);
  ClusterTraffic sum;
  sum.cluster = "users";
  sum.endpoints = {{"endpoint-0", 10}, {"endpoint-1", 10}};
  history.Add({sum}, {}, base::TimePoint(seconds(1)));
  cluster.endpoints[0].calls = 40;
  cluster.endpoints[1].calls = 20;
  EXPECT_THAT(RenderClusterPage(cluster, history, 1),
              AllOf(HasSubstr(">50.0%<"), HasSubstr(">75.0%<"), HasSubstr(">25.0%<")));
}

TEST_F(StatusPageTest, SourcesSayWhenTheyWereHeardAndWhatIsWrong) {
  ClusterView fresh = Cluster("fresh", 1), late = Cluster("late", 1);
  fresh.discovery = {"file a.yaml", discovery::KeeperState::kCurrent, true, seconds(3), seconds(90), ""};
  late.discovery = {"dns:///x", discovery::KeeperState::kWaiting, false, std::nullopt, std::nullopt, "SERVFAIL <b>"};
  const std::string page = Overview({fresh, late});
  EXPECT_THAT(page, AllOf(HasSubstr("3 s ago"), HasSubstr("1 min 30 s ago"), HasSubstr("SERVFAIL &lt;b&gt;"),
                          HasSubstr("not yet"), HasSubstr("1 list is not what the source says")));
  EXPECT_LT(page.rfind("dns:///x</td>"), page.rfind("file a.yaml</td>"));
  EXPECT_THAT(Overview({Cluster("users", 1)}), Not(HasSubstr("Sources of lists")));
  parts.xds = FakeBackend::Xds();
  EXPECT_THAT(Overview({}), AllOf(HasSubstr("b:2, stream connected, 4 resources, 1 refused")));
}

TEST_F(StatusPageTest, TheLastReloadSaysWhatItHasChangedOrWhyNot) {
  EXPECT_THAT(Overview({}), Not(HasSubstr("Last reload")));
  parts.reload = ReloadView{seconds(61), {}, {"cluster users: changed"}};
  EXPECT_THAT(Overview({}),
              AllOf(HasSubstr("in force"), HasSubstr("cluster users: changed"), HasSubstr("1 min 1 s ago")));
  parts.reload->changes.assign(kLinesShown + 7, "x");
  EXPECT_THAT(Overview({}), HasSubstr("and 7 more"));
  parts.reload = ReloadView{seconds(1), {{"a.yaml:3:1: <x>"}, {}}, {}};
  EXPECT_THAT(Overview({}), AllOf(HasSubstr("nothing has changed"), HasSubstr("a.yaml:3:1: &lt;x&gt;"),
                                  HasSubstr("▲ The last reload")));
}

TEST_F(StatusPageTest, ReasonsAreShownTheFrequentFirst) {
  history.Add({}, {{"queue_full", 5}, {"no_route", 9}}, base::TimePoint(seconds(1)));
  parts.reasons = {{"no_route", 9}, {"queue_full", 25}};
  history.Add({}, parts.reasons, base::TimePoint(seconds(11)));
  const std::string page = Overview({});
  EXPECT_THAT(page, HasSubstr(">2.00<"));
  EXPECT_LT(page.find("queue_full"), page.find("no_route"));
}

FailedCallsView FailedCalls(size_t count) {
  FailedCallsView view;
  for (size_t i = 0; i < count; ++i) {
    proxy::FailedCall call;
    call.path = "/a.B/Get<" + std::to_string(i) + ">";
    call.cluster = "users";
    call.endpoint = "users-1";
    call.status = proxy::GrpcCode::kUnavailable;
    call.cause = "connection_lost";
    call.detail = "gone & lost";
    call.to_upstream = std::chrono::microseconds(250);
    call.total = std::chrono::milliseconds(3);
    call.waits = "cluster/users/rate=1.500ms";
    view.calls.emplace_back(std::move(call));
    view.calls.back().ago = seconds(4);
  }
  view.failed = count;
  return view;
}

TEST_F(StatusPageTest, FailedCallsHaveTheirPhasesAndAPageOfTheirOwn) {
  EXPECT_THAT(Overview({}), Not(HasSubstr("Calls that failed last")));
  parts.failed = FailedCalls(kFailedCallsShown + 20);
  const std::string overview = Overview({});
  EXPECT_THAT(overview, AllOf(HasSubstr("Get&lt;0&gt;"), HasSubstr("users: users-1"), HasSubstr("connection_lost"),
                              HasSubstr("gone &amp; lost"), HasSubstr("sent after 0.25 ms, end after 3.00 ms"),
                              HasSubstr("waited: cluster/users/rate=1.500ms"), Not(HasSubstr("response after")),
                              HasSubstr("<a href=\"/calls\">100 calls</a>"), Not(HasSubstr("Get&lt;8&gt;"))));
  const std::string page = RenderCallsPage(parts.failed);
  EXPECT_THAT(page, AllOf(HasSubstr("Get&lt;99&gt;"), Not(HasSubstr("Get&lt;100&gt;"))));
  EXPECT_LT(page.size(), 100'000u);
  EXPECT_THAT(RenderCallsPage({}), HasSubstr("None is kept: insight.failed_calls is 0"));
  EXPECT_EQ(Get("/calls").status, 200);
}

TEST_F(StatusPageTest, OnlyKeysThatAreCertainlyHotAreShown) {
  parts.hot_keys = {{"users", false, 1'000, seconds(60), 0.001, {}}};
  parts.hot_keys[0].keys = {{"user-<7>", true, 0.31, 0.01, "users-2"}, {"chance", false, 0.03, 0.02, "users-1"}};
  EXPECT_THAT(Overview({}), AllOf(HasSubstr("user-&lt;7&gt;..."), HasSubstr("30.0% to 31.0%"), HasSubstr("users-2"),
                                  Not(HasSubstr("chance"))));
}

// Nothing inline: the policy of the answer would keep it from running.
TEST_F(StatusPageTest, NothingIsInlineAndNothingFromElsewhere) {
  for (const char* target : {"/", "/cluster?name=users"}) {
    const std::string page = Get(target).body;
    EXPECT_THAT(page, AllOf(Not(HasSubstr("<style")), Not(HasSubstr("style=\"")), Not(HasSubstr("http:")),
                            Not(HasSubstr("https:")), HasSubstr("<script src=\"/refresh.js\" defer=\"\"></script>")))
        << target;
  }
  EXPECT_EQ(Get("/refresh.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(Get("/style.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(Get("/icon.svg").content_type, "image/svg+xml");
}

TEST(QueryValueTest, TakesTheFirstValueAndDecodesIt) {
  EXPECT_EQ(QueryValue("/a?name=x&page=2", "page"), "2");
  EXPECT_EQ(QueryValue("/a?name=a%2Fb+c&name=d", "name"), "a/b c");
  EXPECT_EQ(QueryValue("/a?name", "name"), "");
  EXPECT_EQ(QueryValue("/a?rename=x", "name"), std::nullopt);
  EXPECT_EQ(QueryValue("/a", "name"), std::nullopt);
  EXPECT_EQ(QueryValue("/a?name=%4", "name"), std::nullopt);
  EXPECT_EQ(QueryValue("/a?name=%g0", "name"), std::nullopt);
  EXPECT_EQ(QueryValue("/a?", "name"), std::nullopt);
}

}  // namespace
}  // namespace sluice::admin
