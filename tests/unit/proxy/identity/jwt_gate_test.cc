// JwtGate in a whole proxy: each way of a call past a token that is not good, and what claims are used for.
#include "proxy/identity/jwt_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/jwt_maker.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using h2::Message;
using std::chrono::milliseconds;
using test::Base64Url;
using test::FramePeer;
using test::JwtMaker;
using test::kLast;
using Fields = std::vector<std::pair<std::string, std::string>>;

class JwtGateTest : public test::ProxyFixture {
 public:
  JwtGateTest() {
    options.name = "p";
    options.issuer = "me";
    options.audiences = {"here"};
    options.forward_claims = {{"sub", "x-user"}, {"tenant", "x-tenant"}};
  }
  // `claims`: members behind the usual ones.
  std::string Token(const std::string& claims = "") const { return Token(ed, claims); }
  std::string Token(const JwtMaker& key, const std::string& claims) const { return key.Token(ClaimsWith(claims)); }
  std::string ClaimsWith(const std::string& more) const {
    return "{\"iss\":\"me\",\"aud\":\"here\",\"exp\":" + std::to_string(wall + 600) + more + "}";
  }
  std::string Of(const std::string& user) const { return Token(",\"sub\":\"" + user + "\""); }
  static Fields With(const std::string& token, Fields more = {}) {
    Fields fields = GrpcRequest();
    if (!token.empty()) fields.emplace_back("authorization", "Bearer " + token);
    for (auto& field : more) fields.push_back(std::move(field));
    return fields;
  }
  static std::string Request(uint32_t id, const Fields& fields) {
    return Headers(id, Block(fields)) + Data(id, Message("question"), h2::kEndStream);
  }
  void StartWith(bool required = true) {
    provider = std::make_shared<JwtProvider>(
        options, *KeySet::Parse(JwtMaker::Jwks({ed.Jwk()})), [this] { return wall; }, workers, registry);
    gates = {std::make_shared<JwtGate>(provider, required)};
    Start({"10.0.0.1:1"});
  }
  uint64_t Count(const std::string& result) {
    return registry
        .AddCounter("sluice_jwt_calls_total", "Calls that met a gate for JWTs, by its result.",
                    {{"provider", "p"}, {"result", result}})
        ->Value();
  }
  void ExpectRefused(FramePeer& client, uint32_t id, const std::string& reason = "jwt_invalid") {
    EXPECT_TRUE(client.streams[id].end) << id;
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "16") << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), reason) << id;
    EXPECT_EQ(client.streams[id].data, "") << id;
  }
  // Values of that name in the request that the backend has got.
  static std::vector<std::string> Values(FramePeer& up, uint32_t id, const std::string& wanted) {
    std::vector<std::string> out;
    if (up.streams[id].headers.empty()) return {"no request"};
    for (const auto& [name, value] : up.streams[id].headers.front()) {
      if (name == wanted) out.push_back(value);
    }
    return out;
  }
  void Answer(uint32_t id, const std::string& text = "answer") {
    Up().Send(Headers(id, Block(h2::GrpcResponse())) + Data(id, Message(text)) +
              Headers(id, Block(h2::GrpcTrailers()), kLast));
    Run();
  }
  static std::string CacheOf(FramePeer& client, uint32_t id) {
    if (client.streams[id].headers.empty()) return "no response";
    for (const auto& [name, value] : client.streams[id].headers.front()) {
      if (name == "sluice-cache") return value;
    }
    return "";
  }
  // Attempts to pass, each the `authorization` fields of a request.
  struct Attempt {
    std::string what;
    std::vector<std::string> credentials;
  };
  std::vector<Attempt> Attempts() const {
    const std::string good = Of("a"), claims = ClaimsWith("");
    const auto bearer = [](const std::string& token) { return std::vector<std::string>{"Bearer " + token}; };
    const auto dated = [&](const std::string& dates) {
      return bearer(ed.Token("{\"iss\":\"me\",\"aud\":\"here\"," + dates + "}"));
    };
    const std::string unsigned_part = Base64Url("{\"alg\":\"none\"}") + "." + Base64Url(claims) + ".";
    const std::string payload = Base64Url(ClaimsWith(",\"sub\":\"root\""));
    std::string tampered = good;
    tampered.replace(good.find('.') + 1, good.rfind('.') - good.find('.') - 1, payload);
    return {
        {"expired", dated("\"exp\":" + std::to_string(wall - 31))},
        {"not yet valid", dated("\"exp\":" + std::to_string(wall + 600) + ",\"nbf\":" + std::to_string(wall + 60))},
        {"of the future", dated("\"exp\":" + std::to_string(wall + 600) + ",\"iat\":" + std::to_string(wall + 60))},
        {"without exp", dated("\"nbf\":1")},
        {"none", bearer(unsigned_part)},
        {"HMAC with the public key",
         bearer(JwtMaker::HmacToken("{\"alg\":\"HS256\",\"kid\":\"ed\"}", claims, ed.PublicPem()))},
        {"another key", bearer(Token(stranger, ""))},
        {"an unknown kid", bearer(ed.Token("{\"alg\":\"EdDSA\",\"kid\":\"x\"}", claims))},
        {"crit", bearer(ed.Token("{\"alg\":\"EdDSA\",\"crit\":[\"x\"]}", claims))},
        {"a member twice", bearer(ed.Token(ClaimsWith(",\"exp\":9999999999")))},
        {"another issuer", bearer(ed.Token("{\"iss\":\"you\",\"aud\":\"here\",\"exp\":9999999999}"))},
        {"another audience", bearer(ed.Token("{\"iss\":\"me\",\"aud\":\"x\",\"exp\":9999999999}"))},
        {"tampered", bearer(tampered)},
        {"truncated", bearer(good.substr(0, good.size() - 4))},
        {"padded", bearer(good + "=")},
        {"white space behind it", bearer(good + " x")},
        {"white space before it", {"Bearer  " + good}},
        {"a tab", {"Bearer\t" + good}},
        {"two fields", {"Bearer " + good, "Bearer " + good}},
        {"another field first", {"Basic YTpi", "Bearer " + good}},
        {"two tokens in one", {"Bearer " + good + ", Bearer " + good}},
        {"no scheme", {good}},
        {"another scheme", {"Basic " + good}},
        {"nothing behind the scheme", {"Bearer ."}},
        {"the scheme alone", {"Bearer"}},
        {"an empty field", {""}},
        {"huge", bearer(Token(",\"pad\":\"" + std::string(9000, 'x') + "\""))},
    };
  }
  static Fields FieldsOf(const Attempt& attempt) {
    Fields fields = GrpcRequest();
    for (const std::string& credential : attempt.credentials) fields.emplace_back("authorization", credential);
    return fields;
  }

  int64_t wall = 1'700'000'000;
  const JwtMaker ed{JwtMaker::Kind::kEd, "ed"}, stranger{JwtMaker::Kind::kEd, "ed"};
  JwtProviderOptions options;
  std::shared_ptr<JwtProvider> provider;
};

TEST_F(JwtGateTest, AGoodTokenPassesAndIsVerifiedOnce) {
  StartWith();
  FramePeer& client = Client();
  const std::string token = Of("a");
  for (uint32_t id = 1; id < 7; id += 2) {
    client.Send(Request(id, With(token)));
    Run();
    EXPECT_EQ(Values(Up(), id, "x-user"), std::vector<std::string>{"a"});
    EXPECT_EQ(Values(Up(), id, "authorization"), std::vector<std::string>{"Bearer " + token});
    Respond(Up(), id, "hello");
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0");
  }
  EXPECT_EQ(Count("verified"), 1u);
  EXPECT_EQ(Count("known"), 2u);
  client.Send(Request(7, With("", {{"authorization", "bEARER " + token}})));
  Run();
  EXPECT_EQ(Count("known"), 3u) << "the scheme is in any case";
  Respond(Up(), 7, "hello");
  Run();
}

TEST_F(JwtGateTest, NothingElsePassesAndNoEndpointHearsOfIt) {
  StartWith();
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const Attempt& attempt : Attempts()) {
    SCOPED_TRACE(attempt.what);
    client.Send(Request(id, FieldsOf(attempt)));
    Run();
    ExpectRefused(client, id);
    const std::string message = client.streams[id].Value("grpc-message");
    EXPECT_FALSE(message.empty());
    for (const std::string& credential : attempt.credentials) {
      const std::string token = credential.substr(credential.rfind('.') + 1);
      EXPECT_TRUE(token.size() < 10 || message.find(token) == message.npos) << message;
    }
    id += 2;
  }
  client.Send(Request(id, GrpcRequest()));
  Run();
  ExpectRefused(client, id, "jwt_missing");
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

TEST_F(JwtGateTest, WhereNoneIsRequiredABadOneIsRefusedStill) {
  StartWith(/*required=*/false);
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const Attempt& attempt : Attempts()) {
    SCOPED_TRACE(attempt.what);
    client.Send(Request(id, FieldsOf(attempt)));
    Run();
    ExpectRefused(client, id);
    id += 2;
  }
  client.Send(Request(id, With("", {{"x-user", "root"}})));
  Run();
  EXPECT_EQ(Values(Up(), 1, "x-user"), std::vector<std::string>{}) << "only the proxy sets it";
  EXPECT_EQ(Count("absent"), 1u);
  Respond(Up(), 1, "hello");
  Run();
}

TEST_F(JwtGateTest, ClaimsReplaceWhatTheClientSays) {
  options.forward_token = false;
  StartWith();
  FramePeer& client = Client();
  client.Send(Request(1, With(Token(",\"sub\":\"a\",\"tenant\":[\"t\",\"u\"]"),
                              {{"x-user", "root"}, {"x-tenant", "all"}, {"x-user", "admin"}, {"x-other", "kept"}})));
  client.Send(Request(3, With(Token(",\"sub\":\"b\\u0000\""), {{"x-user", "root"}, {"x-tenant", "all"}})));
  Run();
  EXPECT_EQ(Values(Up(), 1, "x-user"), std::vector<std::string>{"a"});
  EXPECT_EQ(Values(Up(), 1, "x-tenant"), std::vector<std::string>{"t,u"});
  EXPECT_EQ(Values(Up(), 1, "x-other"), std::vector<std::string>{"kept"});
  EXPECT_EQ(Values(Up(), 1, "authorization"), std::vector<std::string>{});
  EXPECT_EQ(Values(Up(), 3, "x-user"), std::vector<std::string>{}) << "a claim that is left out is not there";
  EXPECT_EQ(Values(Up(), 3, "x-tenant"), std::vector<std::string>{});
  Respond(Up(), 1, "hello");
  Respond(Up(), 3, "hello");
  Run();
}

// A reload between two attempts: the token has been taken off, and the call has no other claims than it had.
TEST_F(JwtGateTest, ACallWhoseTokenWasTakenOffDoesNotGoOnAsOneThatHadNone) {
  options.forward_token = false;
  routes[0].retry.attempts_max = 2;
  StartWith(/*required=*/false);
  FramePeer& client = Client();
  client.Send(Request(1, With(Of("a"))));
  Run();
  EXPECT_EQ(Values(Up(), 1, "x-user"), std::vector<std::string>{"a"});
  gates = {std::make_shared<JwtGate>(provider, false)};
  SetEndpoints({"10.0.0.2:1"});
  Up().Send(h2::RstStream(1, 7));  // REFUSED_STREAM: not processed
  Run();
  ExpectRefused(client, 1, "jwt_missing");
  EXPECT_FALSE(Connected("10.0.0.2:1"));
}

TEST_F(JwtGateTest, AKnownTokenEndsWithItsTime) {
  StartWith();
  FramePeer& client = Client();
  const std::string token = Of("a");
  client.Send(Request(1, With(token)));
  Run();
  Respond(Up(), 1, "hello");
  Run();
  wall += 600 + 29;
  client.Send(Request(3, With(token)));
  Run();
  Respond(Up(), 3, "hello");
  Run();
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
  wall += 1;
  client.Send(Request(5, With(token)));
  Run();
  ExpectRefused(client, 5);
  EXPECT_EQ(client.streams[5].Value("grpc-message"), "the JWT has expired");
  EXPECT_EQ(Count("verified"), 1u);
  EXPECT_EQ(Count("expired"), 1u);
}

TEST_F(JwtGateTest, ATokenWhoseKeyIsGoneIsRefusedThoughItWasKnown) {
  StartWith();
  FramePeer& client = Client();
  const std::string token = Of("a");
  client.Send(Request(1, With(token)));
  Run();
  Respond(Up(), 1, "hello");
  Run();
  provider->PutKeys(*KeySet::Parse("{\"keys\":[]}"));
  client.Send(Request(3, With(token)));
  Run();
  ExpectRefused(client, 3);
  provider->PutKeys(*KeySet::Parse(JwtMaker::Jwks({stranger.Jwk()})));
  client.Send(Request(5, With(token)));
  Run();
  ExpectRefused(client, 5);
  EXPECT_EQ(Count("signature"), 1u);
}

TEST_F(JwtGateTest, EachAttemptOfARetryHasTheClaims) {
  routes[0].retry.attempts_max = 2;
  StartWith();
  SetEndpoints({"10.0.0.1:1", "10.0.0.2:1"});
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 8; id += 2) client.Send(Request(id, With(Of("a"), {{"x-user", "root"}})));
  Run();
  EXPECT_GT(metrics.retries[static_cast<size_t>(base::ErrorKind::kConnectFailed)]->Value(), 0u);
  for (uint32_t id = 1; id < 8; id += 2)
    EXPECT_EQ(Values(Up("10.0.0.2:1"), id, "x-user"), std::vector<std::string>{"a"});
  EXPECT_EQ(Count("verified") + Count("known"), 4u);
}

TEST_F(JwtGateTest, TheClientsRateIsByTheClaim) {
  routes[0].client_rate_limit.metadata = "x-user";
  routes[0].client_rate_limit.rate.rate = 1;
  routes[0].client_rate_limit.rate.burst = 1;
  routes[0].client_rate_limit.rate.queue_max = 0;
  StartWith();
  FramePeer& client = Client();
  client.Send(Request(1, With(Of("a"))));
  client.Send(Request(3, With(Of("a"), {{"x-user", "other"}})));  // says that it is another one
  client.Send(Request(5, With(Of("b"))));
  Run();
  Respond(Up(), 1, "hello");
  Respond(Up(), 3, "hello");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "rate_limited");
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "0");
}

TEST_F(JwtGateTest, TheRingsKeyIsTheClaim) {
  cluster.policy = upstream::Policy::kRingHash;
  routes[0].hash_by.kind = HashBy::Kind::kMetadata;
  routes[0].hash_by.metadata = "x-user";
  StartWith();
  const std::vector<std::string> all = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"};
  SetEndpoints(all);
  FramePeer& client = Client();
  // One user, whatever it says of itself and of other tokens.
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string token = Token(",\"sub\":\"a\",\"n\":" + std::to_string(i));
    client.Send(Request(1 + 2 * i, With(token, {{"x-user", std::to_string(i)}})));
  }
  Run();
  EXPECT_EQ(std::ranges::count_if(all, [&](const std::string& at) { return Connected(at); }), 1);
}

class JwtCacheTest : public JwtGateTest {
 public:
  JwtCacheTest() {
    routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
    options.forward_claims = {{"sub", "x-user"}};
  }
  // As GateSet sets it, which has its own test.
  void ByClaim() {
    options.forward_token = false;
    routes[0].cache.vary = {"x-user"};
    key_has_credential = true;
  }
  // One call to the backend, whose answer is stored if it may be.
  void Fill(FramePeer& client, uint32_t id, const std::string& token, const std::string& answer, uint32_t up_id = 1) {
    client.Send(Request(id, With(token)));
    Run();
    Answer(up_id, answer);
    EXPECT_EQ(client.streams[id].data, Message(answer));
  }
};

TEST_F(JwtCacheTest, AnAnswerIsStoredByClaimAndGivenToThatUserOnly) {
  ByClaim();
  StartWith();
  FramePeer& client = Client();
  Fill(client, 1, Of("a"), "for a");
  EXPECT_EQ(response_cache->stats().entries, 1u);
  client.Send(Request(3, With(Token(",\"sub\":\"a\",\"n\":1"))));  // another token of the same user
  Run();
  EXPECT_EQ(CacheOf(client, 3), "hit");
  EXPECT_EQ(client.streams[3].data, Message("for a"));
  client.Send(Request(5, With(Of("b"), {{"x-user", "a"}})));
  Run();
  EXPECT_FALSE(client.streams[5].end);
  Answer(3, "for b");
  EXPECT_EQ(client.streams[5].data, Message("for b"));
  EXPECT_EQ(response_cache->stats().entries, 2u);
}

TEST_F(JwtCacheTest, NoStoredAnswerIsGivenPastABadToken) {
  ByClaim();
  StartWith(/*required=*/false);
  FramePeer& client = Client();
  Fill(client, 1, Of("a"), "for a");
  uint32_t id = 3;
  for (const Attempt& attempt : Attempts()) {
    SCOPED_TRACE(attempt.what);
    Fields fields = FieldsOf(attempt);
    fields.emplace_back("x-user", "a");
    client.Send(Request(id, fields));
    Run();
    ExpectRefused(client, id);
    id += 2;
  }
  EXPECT_EQ(response_cache->stats().hits, 0u);
  // Without a token: a key of its own.
  client.Send(Request(id, With("", {{"x-user", "a"}})));
  Run();
  EXPECT_FALSE(client.streams[id].end);
  Answer(3, "for all");
  EXPECT_EQ(client.streams[id].data, Message("for all"));
}

TEST_F(JwtCacheTest, NoFetchIsJoinedWithABadToken) {
  ByClaim();
  StartWith();
  FramePeer& client = Client();
  std::string bytes = Request(1, With(Of("a")));
  uint32_t id = 3;
  for (const Attempt& attempt : Attempts()) {
    Fields fields = FieldsOf(attempt);
    fields.emplace_back("x-user", "a");
    bytes += Request(id, fields);
    id += 2;
  }
  bytes += Request(id, With(Of("a")));
  client.Send(bytes);
  Run();
  for (uint32_t bad = 3; bad < id; bad += 2) ExpectRefused(client, bad);
  Answer(1, "for a");
  EXPECT_EQ(client.streams[1].data, Message("for a"));
  EXPECT_EQ(CacheOf(client, id), "coalesced");
}

TEST_F(JwtCacheTest, AnAnswerThatMayDependOnMoreThanTheKeyIsNotStored) {
  options.forward_token = false;
  routes[0].cache.vary = {"authorization"};  // which is dropped before the key is made
  StartWith();
  FramePeer& client = Client();
  Fill(client, 1, Of("a"), "for a", 1);
  Fill(client, 3, Of("b"), "for b", 3);
  EXPECT_EQ(response_cache->stats().entries, 0u);
}

TEST_F(JwtCacheTest, WithTheTokenForwardedTheClaimIsNotEnough) {
  routes[0].cache.vary = {"x-user"};
  StartWith();
  FramePeer& client = Client();
  Fill(client, 1, Of("a"), "for a", 1);
  EXPECT_EQ(response_cache->stats().entries, 0u);
}

TEST_F(JwtCacheTest, AnExpiredTokenGetsNoStoredAnswer) {
  ByClaim();
  StartWith();
  FramePeer& client = Client();
  const std::string token = Of("a");
  Fill(client, 1, token, "for a");
  wall += 631;
  client.Send(Request(3, With(token)));
  Run();
  ExpectRefused(client, 3);
}

// A forged token costs its sender nothing, and a worker as much as a good one.
TEST_F(JwtGateTest, AConnectionsWrongTokensAreCheckedWithinABudget) {
  StartWith();
  FramePeer& bad = Client();
  FramePeer& good = Client();
  good.Send(Request(1, With(Of("known"))));
  Run();
  Answer(1);
  uint32_t id = static_cast<uint32_t>(-1);
  const auto ask = [&](FramePeer& client, const std::string& token) {
    client.Send(Request(id += 2, With(token)));
    Run();
    return client.streams[id].Value("sluice-reason");
  };
  int64_t checked = 0;
  const std::string forged = Of("mallory") + "AAAA";
  for (; checked < 2 * FailedChecks::kPerSecond && ask(bad, forged) == "jwt_invalid"; ++checked) continue;
  EXPECT_EQ(checked, FailedChecks::kPerSecond);
  EXPECT_EQ(bad.streams[id].Value("grpc-status"), "8");
  EXPECT_EQ(bad.streams[id].Value("sluice-reason"), "rate_limited");
  EXPECT_EQ(bad.streams[id].Value("sluice-limit"), "jwt/p/failed_checks");
  EXPECT_EQ(bad.streams[id].Value("grpc-retry-pushback-ms"), "1000");
  EXPECT_EQ(Count("unchecked"), 1u);
  EXPECT_EQ(ask(bad, Of("known")), "<none>") << "a token that is known costs nothing";
  EXPECT_EQ(ask(bad, Of("unknown")), "rate_limited");
  EXPECT_EQ(ask(good, Of("unknown")), "<none>") << "another connection has a budget of its own";
  Advance(milliseconds(100));
  EXPECT_EQ(ask(bad, Of("unknown too")), "<none>");
  for (checked = 0; checked < FailedChecks::kPerSecond && ask(bad, forged) == "jwt_invalid"; ++checked) continue;
  EXPECT_EQ(checked, FailedChecks::kPerSecond / 10);
}

}  // namespace
}  // namespace sluice::proxy
