// The HTTP port: its paths, what it answers to nonsense, and that slow or many clients cost it only a slot.
#include "admin/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "admin/http_routes.h"
#include "base/clock.h"
#include "base/log.h"
#include "fake_backend.h"
#include "http_client.h"
#include "integration/support/wait_until.h"
#include "support/captured_log.h"

namespace sluice::admin {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override { StartWith({}); }

  void StartWith(HttpOptions options) {
    server_.reset();
    base::Result<std::unique_ptr<HttpServer>> server = HttpServer::Start("127.0.0.1:0", backend_, options);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
  }

  // The whole answer to `request`, up to the server's closing.
  std::string Ask(const std::string& request) {
    HttpClient client(server_->port());
    EXPECT_TRUE(client.Send(request));
    return client.ReadAll();
  }
  std::string Get(const std::string& path) {
    return Ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }

  FakeBackend backend_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesMetrics) {
  EXPECT_THAT(Get("/metrics"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                     HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                                     EndsWith("\r\n\r\n" + backend_.RenderMetrics())));
}

TEST_F(HttpServerTest, ServesOpenMetricsWhereThatIsAskedFor) {
  const auto get = [&](const std::string& fields) {
    return Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields + "\r\n");
  };
  const auto open = AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                          HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
                          EndsWith("\r\n\r\n" + backend_.RenderOpenMetrics()));
  EXPECT_THAT(get("Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n"), open);
  EXPECT_THAT(get("Accept: text/plain;q=0.5\r\nAccept: application/openmetrics-text\r\n"), open);
  EXPECT_THAT(get("Accept: */*\r\n"), EndsWith("\r\n\r\n" + backend_.RenderMetrics()));
}

TEST_F(HttpServerTest, ReadinessFollowsTheBackendAndLifeDoesNot) {
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 "));
  backend_.ready_ = false;
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("not ready\n")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, StatusPageEscapesWhatItShows) {
  const std::string page = Get("/");
  EXPECT_THAT(page, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(page, HasSubstr("<h2>users</h2>"));
  EXPECT_THAT(page, HasSubstr("10.0.0.1:50051"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;&quot;odd&#39;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'"));
}

TEST_F(HttpServerTest, TheStatusPageSaysThatAClusterIsBusy) {
  backend_.list_busy_ = true;
  EXPECT_THAT(Get("/"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("held by reload")));
}

// DNS rebinding: a page of another site asks this port under that site's name, and could read the answer.
TEST_F(HttpServerTest, OnALoopbackAddressAPageIsForNamesOfThisMachineOnly) {
  const auto ask = [&](const std::string& path, const std::string& hosts) {
    return Ask("GET " + path + " HTTP/1.1\r\n" + hosts + "Connection: close\r\n\r\n");
  };
  for (const char* path : {"/", "/metrics", "/calls", "/status.json", "/cluster?name=users"}) {
    for (const char* hosts : {"Host: evil.example.com\r\n", "Host: localhost.evil.example.com:80\r\n", "Host: \r\n",
                              "Host: 127.0.0.1.evil.example.com\r\n", "Host: localhost\r\nHost: evil.example.com\r\n",
                              "Host: [::1\r\n", "Host: [evil.example.com]\r\n"}) {
      EXPECT_THAT(ask(path, hosts), StartsWith("HTTP/1.1 421 ")) << path << ' ' << hosts;
    }
    for (const char* hosts : {"Host: localhost\r\n", "Host: LOCALHOST:9902\r\n", "Host: 127.0.0.1:9902\r\n",
                              "Host: [::1]:9902\r\n", "Host: 10.0.0.7\r\n"}) {
      EXPECT_THAT(ask(path, hosts), StartsWith("HTTP/1.1 200 ")) << path << ' ' << hosts;
    }
    EXPECT_THAT(Ask(std::string("GET ") + path + " HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200 ")) << path;
  }
  EXPECT_THAT(ask("/healthz", "Host: pod.example.com\r\n"), StartsWith("HTTP/1.1 200 ")) << "a probe tells nothing";
}

TEST_F(HttpServerTest, OtherPathsAndMethodsAreRefused) {
  EXPECT_THAT(Get("/nothing"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/metrics/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/healthz?verbose=1"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")));
}

TEST_F(HttpServerTest, HeadHasTheHeaderOfGetAndNoBody) {
  HttpClient client(server_->port());
  ASSERT_TRUE(client.Send("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const std::string length = std::to_string(backend_.RenderMetrics().size());
  EXPECT_THAT(client.ReadResponse(true), AllOf(HasSubstr("Content-Length: " + length + "\r\n"), EndsWith("\r\n\r\n")));
  ASSERT_TRUE(client.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));  // nothing of a body lies between
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, KeepsAConnectionAndAnswersPipelinedRequestsInOrder) {
  HttpClient client(server_->port());
  ASSERT_TRUE(
      client.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.ReadResponse(), EndsWith("alive\n"));
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(client.ReadAll(), EndsWith("ready\n"));
}

TEST_F(HttpServerTest, Http10ClosesAfterTheAnswer) {
  EXPECT_THAT(Ask("GET /healthz HTTP/1.0\r\n\r\n"), AllOf(StartsWith("HTTP/1.0 200 "), EndsWith("alive\n")));
}

TEST_F(HttpServerTest, NonsenseIsABadRequest) {
  for (const char* nonsense :
       {"\r\n\r\n\r\nx\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01 TLS\r\n\r\n"}) {
    EXPECT_THAT(Ask(nonsense), StartsWith("HTTP/1.1 400 ")) << nonsense;
  }
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ABodyAndAHugeHeaderAreRefusedWithAnAnswer) {
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), StartsWith("HTTP/1.1 413 "));
  for (const char* coding : {"chunked", "xchunked", "identity", "chunked, identity", "\"chunked\""}) {
    const std::string answer =
        Ask(std::string("GET /healthz HTTP/1.1\r\nTransfer-Encoding: ") + coding + "\r\n\r\n0\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 4")) << coding;
    EXPECT_EQ(answer.find("HTTP/1.1 ", 1), answer.npos) << coding << ": what follows is no request";
  }
  // More than fits: the answer must survive the bytes that are never parsed.
  bool reset = true;
  HttpClient client(server_->port());
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x')));
  EXPECT_THAT(client.ReadAll(&reset), StartsWith("HTTP/1.1 431 "));
  EXPECT_FALSE(reset);
}

TEST_F(HttpServerTest, ASlowClientIsClosedHoweverItDripsAndDelaysNoOther) {
  HttpOptions options;
  options.request_timeout = milliseconds(300);
  StartWith(options);
  HttpClient slow(server_->port()), silent(server_->port());
  ASSERT_TRUE(slow.Send("GET / HTTP/1.1\r\nX: "));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));  // meanwhile
  // One byte whenever nothing is heard for 20 ms: if each byte renewed the deadline, this would go on to the end.
  int bytes = 0;
  while (!slow.Readable(20) && bytes < 500) {
    slow.Send("x");
    ++bytes;
  }
  EXPECT_LT(bytes, 500);
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_EQ(silent.ReadAll(), "");
}

constexpr char kHealthz[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

// For one more the one goes that has waited longest for its client.
TEST_F(HttpServerTest, ConnectionsAreBounded) {
  HttpOptions options;
  options.connections_max = 2;
  StartWith(options);
  HttpClient first(server_->port()), second(server_->port());
  for (HttpClient* client : {&first, &second, &first}) {
    ASSERT_TRUE(client->Send(kHealthz));
    EXPECT_THAT(client->ReadResponse(), StartsWith("HTTP/1.1 200 "));
  }
  HttpClient third(server_->port());
  ASSERT_TRUE(third.Send(kHealthz));
  EXPECT_THAT(third.ReadResponse(), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(second.ReadAll(), "") << "its last request was before the first one's";
  ASSERT_TRUE(first.Send(kHealthz));
  EXPECT_THAT(first.ReadResponse(), StartsWith("HTTP/1.1 200 "));
}

// Strangers that hold all places must not make an orchestrator restart the process.
TEST_F(HttpServerTest, IdleConnectionsDoNotStarveAProbe) {
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 600; ++i) {
    idle.push_back(std::make_unique<HttpClient>(server_->port()));
    if (i % 2 == 0) {
      ASSERT_TRUE(idle.back()->Send("GET /healthz HTTP/1.1\r\n"));  // and no more
    }
    if (i % 20 == 0) {
      EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
    }
  }
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(idle.front()->ReadAll(), "");
}

// Nor do those that ask for much and read nothing.
TEST_F(HttpServerTest, ClientsThatDoNotReadDoNotStarveAProbe) {
  HttpOptions options;
  options.connections_max = 3;
  StartWith(options);
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<std::unique_ptr<HttpClient>> deaf;
  for (int i = 0; i < 3; ++i) {
    deaf.push_back(std::make_unique<HttpClient>(server_->port()));
    deaf.back()->SendSome(many);
  }
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

// A probe that has only just come stays, also where it is the only one that has not asked for anything yet.
TEST_F(HttpServerTest, ClientsThatWaitForPagesDoNotStarveAProbe) {
  HttpOptions options;
  options.connections_max = 4;
  StartWith(options);
  std::vector<std::unique_ptr<HttpClient>> others;
  {
    std::lock_guard no_page_is_made(backend_.mutex_);
    for (int i = 0; i < 4; ++i) {
      others.push_back(std::make_unique<HttpClient>(server_->port()));
      ASSERT_TRUE(others.back()->Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    HttpClient probe(server_->port());
    for (int i = 0; i < 2; ++i) others.push_back(std::make_unique<HttpClient>(server_->port()));
    ASSERT_TRUE(probe.Send(kHealthz));
    EXPECT_THAT(probe.ReadResponse(), StartsWith("HTTP/1.1 200 "));
  }
}

// Strangers that connect again and again do not keep a scrape from its answer.
TEST_F(HttpServerTest, IdleConnectionsDoNotDropOneThatWaitsForItsPage) {
  HttpOptions options;
  options.connections_max = 8;
  StartWith(options);
  HttpClient scrape(server_->port());
  std::vector<std::unique_ptr<HttpClient>> idle;
  {
    std::lock_guard no_page_is_made(backend_.mutex_);
    ASSERT_TRUE(scrape.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    for (int i = 0; i < 100; ++i) {
      EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 ")) << "so the server has seen what came before";
      idle.push_back(std::make_unique<HttpClient>(server_->port()));
    }
  }
  EXPECT_THAT(scrape.ReadResponse(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, EndsWithOpenConnections) {
  HttpClient client(server_->port());
  ASSERT_TRUE(client.Send("GET / HT"));
  server_.reset();
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(HttpServerTest, OutOfDescriptorsItTriesAgainAndSaysSoOnce) {
  server_.reset();
  test::CapturedLog log;
  StartWith({});  // after the log is in place and, at the end, stopped before it goes: the server's thread writes to it
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(server_->port());
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // UBSan looks at an object's type through a pipe, once for each type: let it see those of the log and the clock
  // while there are descriptors for one.
  (void)base::Clock::Steady().Now();
  SLUICE_LOG_WARN("the {}{} that follows is {}", std::string("warning"), std::string(), "expected");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
  std::string said;
  const auto lines = [&] {
    said += log.Take();
    size_t count = 0;
    for (size_t at = 0; (at = said.find(": accepting is paused", at)) != said.npos; ++at) ++count;
    return count;
  };
  EXPECT_TRUE(integration::WaitUntil([&] { return lines() == 1; }));
  EXPECT_FALSE(integration::WaitUntil([&] { return lines() > 1; }, milliseconds(500)));  // it has tried some times more
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
  ::close(client);
  server_.reset();
}

TEST_F(HttpServerTest, TellsWhenThePortIsInUse) {
  base::Result<std::unique_ptr<HttpServer>> second = HttpServer::Start(server_->address(), backend_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, base::ErrorKind::kConflict);
  EXPECT_THAT(second.error().detail, HasSubstr(server_->address()));
  EXPECT_FALSE(HttpServer::Start("unix:/tmp/x", backend_).ok());
  EXPECT_FALSE(HttpServer::Start("nowhere", backend_).ok());
}

}  // namespace
}  // namespace sluice::admin
