// The response cache with real gRPC clients and servers: what a client sees of it, what the upstream is spared, and
// what an operator can do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "support/cache_fixture.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using testing::HasSubstr;

TEST_F(Cache, AnswersTheSecondCall) {
  Start();
  const Reply miss = Call("x"), hit = Call("x"), other = Call("y");
  EXPECT_TRUE(hit.status.ok()) << Describe(hit.status);
  EXPECT_EQ(How(miss), "");
  EXPECT_EQ(miss.headers.count("age"), 0u);
  EXPECT_EQ(How(hit), "hit");
  EXPECT_THAT(hit.Header("age"), testing::MatchesRegex("[0-9]+"));
  EXPECT_EQ(hit.messages[0].SerializeAsString(), miss.messages[0].SerializeAsString());
  EXPECT_EQ(other.messages[0].payload(), "y");
  EXPECT_EQ(backend_.arrived(), 2u);
  const auto cache = person().Cache();
  EXPECT_TRUE(cache.enabled());
  EXPECT_EQ(cache.hits(), 1u);
  EXPECT_EQ(cache.misses(), 2u);
  EXPECT_EQ(cache.entries(), 2u);
}

TEST_F(Cache, SparesTheLimits) {
  config_.cluster = {"rate_limit: {rate: 0.001, burst: 1, queue: 0}", "concurrency: {max: 1, queue: 0}"};
  Start();
  EXPECT_TRUE(Call("x").status.ok());
  for (int i = 0; i < 50; ++i) ASSERT_EQ(How(Call("x")), "hit");
  EXPECT_EQ(Call("y").status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(Cache, MakesOneCallOfAThousandEqualOnes) {
  config_.listener = {"http2: {concurrent_streams_max: 4000}"};
  Start();
  backend_.Close();
  std::vector<std::unique_ptr<AsyncCalls>> clients;
  std::vector<AsyncCallPtr> made;
  constexpr size_t kClients = 10, kEach = 100;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<AsyncCalls>(proxy_->target()));
    for (AsyncCallPtr& call : clients.back()->Start(Spec("x"), kEach)) made.push_back(std::move(call));
  }
  ASSERT_TRUE(WaitUntil([&] { return person().CallsInFlight() == kClients * kEach && backend_.held() == 1; }));
  EXPECT_EQ(person().Cache().fetches(), 1u);
  backend_.Open();
  Await(made);
  size_t coalesced = 0;
  for (const AsyncCallPtr& call : made) {
    ASSERT_TRUE(call->status().ok()) << Describe(call->status());
    EXPECT_EQ(call->reply().messages[0].payload(), "x");
    coalesced += How(call->reply()) == "coalesced";
  }
  EXPECT_EQ(backend_.arrived(), 1u);
  const auto cache = person().Cache();
  EXPECT_EQ(cache.coalesced(), coalesced);
  EXPECT_EQ(cache.coalesced() + cache.hits(), kClients * kEach - 1);
  std::cout << "[  figures ] of 1000 equal calls " << coalesced << " joined the one under way, " << cache.hits()
            << " were hits\n";
}

TEST_F(Cache, SharedFetchOutlivesTheCallThatBeganIt) {
  Start();
  backend_.Close();
  AsyncCalls another(proxy_->target());
  const AsyncCallPtr leader = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  const auto others = another.Start(Spec("x"), 5);
  ASSERT_TRUE(WaitUntil([&] { return person().Cache().misses() == 6; }));
  leader->Cancel();
  ASSERT_TRUE(WaitUntil([&] { return person().CallsInFlight() == 5; }));
  EXPECT_EQ(backend_.held(), 1u);
  backend_.Open();
  Await(others);
  EXPECT_EQ(Ended(others, StatusCode::OK), 5u);
  EXPECT_EQ(backend_.arrived(), 1u);
}

TEST_F(Cache, SharedFetchEndsWhenAllItsCallsAreCancelled) {
  Start();
  backend_.Close();
  const auto made = calls_->Start(Spec("x"), 5);
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1 && person().Cache().misses() == 5; }));
  for (const AsyncCallPtr& call : made) call->Cancel();
  EXPECT_TRUE(WaitUntil([&] { return backend_.cancelled() == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return person().Cache().fetches() == 0; }));
  backend_.Open();
  EXPECT_EQ(How(Call("x")), "") << "nothing was kept of it";
  EXPECT_EQ(backend_.arrived(), 2u);
}

// No call waits for a response that cannot be shared: when it turns out too large, the others make calls of their own.
TEST_F(Cache, SharedFetchOfATooLargeAnswerServesTheCallThatBeganIt) {
  config_.top.push_back("cache: {entry_max: 64KiB}");
  Start();
  backend_.Close();
  CallSpec spec = Spec("x");
  spec.request.set_reply_bytes(3 << 20);
  const auto made = calls_->Start(spec, 10);
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1 && person().Cache().misses() == 10; }));
  backend_.Open();
  Await(made);
  const std::string whole(3 << 20, 'r');
  for (const AsyncCallPtr& call : made) {
    ASSERT_TRUE(call->status().ok()) << Describe(call->status());
    EXPECT_TRUE(call->reply().messages[0].payload() == whole);
  }
  EXPECT_EQ(backend_.arrived(), 10u);
  EXPECT_EQ(person().Cache().entries(), 0u);
}

TEST_F(Cache, SharedFetchEndsWellForAllWhenTheProxyStops) {
  Start();
  backend_.Close();
  AsyncCalls another(proxy_->target());
  auto made = calls_->Start(Spec("x"), 10);
  for (AsyncCallPtr& call : another.Start(Spec("x"), 10)) made.push_back(std::move(call));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1 && person().Cache().misses() == 20; }));
  proxy_->server().Stop();
  ASSERT_TRUE(proxy_->server().WaitStopped(kLongWait));
  Await(made);
  EXPECT_EQ(Ended(made, StatusCode::UNAVAILABLE), 20u);
}

TEST_F(Cache, EachCallThatSharesAFetchKeepsItsOwnDeadline) {
  Start();
  backend_.Close();
  const AsyncCallPtr patient = calls_->Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  CallSpec hurried = Spec("x");
  hurried.timeout = milliseconds(100);
  const AsyncCallPtr call = calls_->Run(hurried);
  EXPECT_EQ(call->status().error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_GE(call->took(), milliseconds(90));
  EXPECT_FALSE(patient->done());
  EXPECT_EQ(backend_.held(), 1u);
  backend_.Open();
  Await({patient});
  EXPECT_TRUE(patient->status().ok());
  EXPECT_EQ(backend_.arrived(), 1u);
}

TEST_F(Cache, ACallWithMoreTimeThanTheFetchJoinsIt) {
  Start("fetch_timeout: 1s");
  backend_.Close();
  CallSpec hurried = Spec("x"), patient = Spec("x");
  hurried.timeout = std::chrono::seconds(20);
  const AsyncCallPtr first = calls_->Start(hurried);
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  const AsyncCallPtr second = calls_->Start(patient);
  EXPECT_TRUE(WaitUntil([&] { return person().Cache().coalesced() == 1; }));
  backend_.Open();
  Await({first, second});
  EXPECT_TRUE(first->status().ok() && second->status().ok());
  EXPECT_EQ(backend_.arrived(), 1u);
}

// Responses to calls with authorization are cached only if the configuration says so, and then apart.
TEST_F(Cache, LeavesCallsWithAuthorizationAlone) {
  Start();
  CallSpec spec = Spec("x");
  spec.metadata = {{"authorization", "Bearer a"}};
  EXPECT_EQ(How(Call(spec)), "");
  EXPECT_EQ(How(Call(spec)), "");
  EXPECT_EQ(How(Call("x")), "");
  EXPECT_EQ(How(Call("x")), "hit");
  EXPECT_EQ(backend_.arrived(), 3u);
  EXPECT_EQ(person().NotCached("authorization"), 2u);
}

TEST_F(Cache, KeepsCallersWithAuthorizationApart) {
  Start("vary: [authorization]");
  std::vector<std::string> answers;
  for (const char* token : {"Bearer a", "Bearer b", "Bearer a", "Bearer b", ""}) {
    CallSpec spec = Spec("x");
    if (*token) spec.metadata = {{"authorization", token}};
    const Reply reply = Call(spec);
    answers.push_back(std::to_string(reply.messages[0].index()) + How(reply));
  }
  EXPECT_THAT(answers, testing::ElementsAre("0", "1", "0hit", "1hit", "2"));
}

TEST_F(Cache, SharesAmongCallersWhereTheOperatorSaysSo) {
  Start("shared: true");
  CallSpec a = Spec("x"), b = Spec("x");
  a.metadata = {{"authorization", "Bearer a"}};
  b.metadata = {{"authorization", "Bearer b"}};
  EXPECT_EQ(How(Call(a)), "");
  EXPECT_EQ(How(Call(b)), "hit");
}

TEST_F(Cache, HeedsTheClientsCacheControl) {
  Start();
  Call("x");
  CallSpec spec = Spec("x");
  spec.metadata = {{"cache-control", "no-cache"}};
  EXPECT_EQ(Call(spec).messages[0].index(), 1u);
  EXPECT_EQ(Call("x").messages[0].index(), 1u) << "the newer one took the older one's place";
  spec.metadata = {{"cache-control", "no-store"}};
  EXPECT_EQ(Call(spec).messages[0].index(), 2u);
  EXPECT_EQ(Call("x").messages[0].index(), 1u);
}

TEST_F(Cache, ServesAStaleAnswerWhenTheBackendIsGone) {
  Start("stale_if_unavailable: 1h", "1ms");
  const Reply fresh = Call("x");
  ASSERT_TRUE(fresh.status.ok());
  backend_.Kill();
  Reply stale;
  ASSERT_TRUE(WaitUntil([&] {
    stale = Call("x");
    return How(stale) == "stale";
  })) << Describe(stale.status);
  EXPECT_TRUE(stale.status.ok());
  EXPECT_EQ(stale.messages[0].SerializeAsString(), fresh.messages[0].SerializeAsString());
  EXPECT_EQ(Call("never asked for").status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_GT(person().Cache().stale(), 0u);
}

TEST_F(Cache, ServesAStaleAnswerWhileOneCallFetchesAnew) {
  Start("stale_while_revalidate: 1h", "1ms");
  Call("x");
  backend_.Close();
  Reply stale;
  ASSERT_TRUE(WaitUntil([&] {
    stale = Call("x");
    return How(stale) == "stale" && backend_.held() == 1;
  }));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(How(Call("x")), "stale");
  EXPECT_EQ(backend_.held(), 1u) << "one fetch for all";
  EXPECT_EQ(stale.messages[0].index(), 0u);
  backend_.Open();
  EXPECT_TRUE(WaitUntil([&] { return Call("x").messages[0].index() >= 1; })) << "what was fetched has taken its place";
}

TEST_F(Cache, IsDroppedByTheOperatorAsAWholeOrInPart) {
  Start();
  for (const std::string payload : {"a", "b", "c"}) Call(payload);
  const std::string a = Spec("a").request.SerializeAsString();
  proxy_->dir().Write("key", a);
  Finished purge = person().Ctl(
      {"cache", "purge", "--service", kService, "--method", "Unary", "--key-file", proxy_->dir().File("key")});
  EXPECT_EQ(purge.code, 0) << purge.output;
  EXPECT_EQ(How(Call("b")), "hit");
  EXPECT_EQ(How(Call("a")), "");
  EXPECT_EQ(person().Purge("other.Service"), 0u);
  EXPECT_EQ(person().Purge(kService, "Unary"), 3u);
  EXPECT_EQ(How(Call("b")), "");
  purge = person().Ctl({"cache", "purge"});
  EXPECT_EQ(purge.code, 0) << purge.output;
  EXPECT_EQ(How(Call("b")), "");
  const Finished stats = person().Ctl({"cache", "stats"});
  EXPECT_EQ(stats.code, 0) << stats.output;
  EXPECT_THAT(stats.output, HasSubstr("Misses"));
  EXPECT_EQ(person().Cache().purged(), 5u);
}

TEST_F(Cache, AReloadTurnsItOnAndOff) {
  config_.route = {"name: main"};
  proxy_ = std::make_unique<Proxy>(config_);
  calls_ = std::make_unique<AsyncCalls>(proxy_->target());
  ProxyConfig with = config_;
  with.route.push_back(Rule());
  Call("x");
  EXPECT_EQ(How(Call("x")), "");
  person().ReloadWith(with);
  EXPECT_EQ(How(Call("x")), "");
  EXPECT_EQ(How(Call("x")), "hit");
  person().ReloadWith(config_);
  EXPECT_EQ(How(Call("x")), "");
}

TEST_F(Cache, StandsInTheAccessLog) {
  TempDir dir;
  config_.top.push_back("access_log: {format: text, path: \"" + dir.File("access.log") + "\"}");
  Start();
  for (const char* how : {"miss", "hit"}) {
    Call("x");
    EXPECT_TRUE(WaitUntil([&] {
      return dir.Read("access.log").find(" cache=" + std::string(how)) != std::string::npos;
    })) << dir.Read("access.log");
  }
}

// Answers differ in size; memory has a bound, and every answer is right.
TEST_F(Cache, StaysInItsMemory) {
  constexpr size_t kCapacity = 1 << 20;
  config_.top.push_back("cache: {capacity: 1MiB, entry_max: 64KiB, strict: true}");
  Start();
  size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string payload = std::to_string(i % 700) + std::string(i % 700 * 37 % 8000, 'p');
    const Reply reply = Call(payload);
    ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
    ASSERT_EQ(reply.messages[0].payload(), payload);
    if (i % 20 == 0) most = std::max<size_t>(most, person().Cache().usage_bytes());
  }
  const auto cache = person().Cache();
  EXPECT_LE(most, kCapacity);
  EXPECT_GT(most, kCapacity / 4) << "it was used";
  EXPECT_GT(cache.evicted(), 0u);
  EXPECT_EQ(cache.capacity_bytes(), kCapacity);
  // Too large a response, too large a request: passed on, not stored.
  CallSpec large = Spec("x");
  large.request.set_reply_bytes(100000);
  for (const CallSpec& spec : {large, Spec(std::string(100000, 'q'))}) {
    for (int i = 0; i < 2; ++i) {
      const Reply reply = Call(spec);
      ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
      EXPECT_EQ(reply.messages[0].payload().size(), 100000u);
      EXPECT_EQ(How(reply), "");
    }
  }
  EXPECT_EQ(person().NotCached("response_too_large"), 2u);
  EXPECT_EQ(person().NotCached("request_too_large"), 2u);
  std::cout << "[  figures ] most of the capacity in use: " << 100.0 * static_cast<double>(most) / kCapacity << "%, "
            << cache.entries() << " entries, " << cache.evicted() << " evicted\n";
}

}  // namespace
}  // namespace sluice::integration
