// What a gate for JWTs costs a call whose token is known: JwtGate::Ask alone, with a token of 594 bytes (RS256) in a
// request of ten fields, which is how docs/jwt.md counts it.
//
//   jwt_gate_bench                                      time of one Ask: claims forwarded, token forwarded or taken off
//   jwt_gate_bench --asks=N [--claims=N] [--taken-off]  so many and no more: for callgrind with
//       --toggle-collect='sluice::proxy::JwtGate::Ask*'; what 2N cost less what N cost, by N, is the price of one
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "http2/fields/header.h"
#include "metrics/registry.h"
#include "proxy/canonical/request.h"
#include "proxy/identity/jwt_gate.h"
#include "support/jwt_maker.h"

namespace sluice {
namespace {

constexpr size_t kTokenBytes = 594;
constexpr int64_t kWall = 1'700'000'000;

class JwtRig {
 public:
  JwtRig(int claims, bool forward_token) {
    proxy::JwtProviderOptions options;
    options.name = "p";
    options.issuer = "me";
    options.forward_token = forward_token;
    for (int i = 0; i < claims; ++i)
      options.forward_claims.push_back({"c" + std::to_string(i), "x-claim-" + std::to_string(i)});
    auto keys = proxy::KeySet::Parse(test::JwtMaker::Jwks({key_.Jwk()}));
    SLUICE_CHECK(keys.ok());
    gate_ = std::make_unique<proxy::JwtGate>(std::make_shared<proxy::JwtProvider>(
                                                 options, *keys, [] { return kWall; }, 1, registry_),
                                             true);
    std::string pad;
    std::string token = Token(claims, pad);
    while (token.size() < kTokenBytes) token = Token(claims, pad += 'x');
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {":method", "POST"},
             {":scheme", "http"},
             {":path", "/pkg.Service/Method"},
             {":authority", "service.example:50051"},
             {"te", "trailers"},
             {"content-type", "application/grpc"},
             {"user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"},
             {"grpc-accept-encoding", "identity, deflate, gzip"},
             {"x-key", "user-17"},
             {"authorization", "Bearer " + token}}) {
      fields_.Add(name, value);
    }
    Ask();
  }

  void Ask() {
    proxy::CanonicalRequest headers = proxy::Canonicalize(fields_.Clone(), proxy::PathRule::kGrpc);
    bool dropped = false;
    std::unique_ptr<proxy::GateCheck> check;
    const proxy::GateRequest request{headers, client_, base::TimePoint(), base::kNever, 0, {headers, &dropped}};
    const proxy::GateVerdict verdict = gate_->Ask(request, check);
    SLUICE_CHECK(verdict.kind == proxy::GateVerdict::Kind::kGo);
  }

 private:
  std::string Token(int claims, const std::string& pad) const {
    std::string text = "{\"iss\":\"me\",\"exp\":" + std::to_string(kWall + 600) + ",\"pad\":\"" + pad + "\"";
    for (int i = 0; i < claims; ++i) text += ",\"c" + std::to_string(i) + "\":\"value-" + std::to_string(i) + "\"";
    return key_.Token(text + "}");
  }

  const test::JwtMaker key_{test::JwtMaker::Kind::kRsa, "k"};
  metrics::Registry registry_{1};
  proxy::Client client_;
  http2::HeaderList fields_;
  std::unique_ptr<proxy::JwtGate> gate_;
};

void BM_Ask(benchmark::State& state) {
  JwtRig rig(static_cast<int>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) rig.Ask();
}
BENCHMARK(BM_Ask)->ArgNames({"claims", "forwarded"})->Args({0, 1})->Args({0, 0})->Args({2, 0});

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  long asks = 0;
  int claims = 0;
  bool forwarded = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--asks=")) asks = std::strtol(argv[i] + 7, nullptr, 10);
    if (arg.starts_with("--claims=")) claims = std::atoi(argv[i] + 9);
    forwarded &= arg != "--taken-off";
  }
  if (asks > 0) {
    sluice::JwtRig rig(claims, forwarded);
    for (; asks > 0; --asks) rig.Ask();
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
