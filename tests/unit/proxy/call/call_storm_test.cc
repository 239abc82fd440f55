// Random calls, answers, resets, deadlines, lists and purges against limits and the cache: every call ends exactly
// once, and nothing that it held stays behind.
#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "support/proxy_fixture.h"
#include "support/web_frames.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

const std::vector<std::string> kHosts = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};
constexpr int kSteps = 2'500;

class CallStormTest : public test::ProxyFixture, public ::testing::WithParamInterface<uint64_t> {
 public:
  struct Sent {
    bool ended = false;  // the request
    bool reset = false;  // by the client
    bool web = false;    // gRPC-Web ...
    bool text = false;   // ... as text
    std::string rest;    // of the message
  };
  struct Peer {
    FramePeer* frames;
    uint32_t next = 1;
    std::map<uint32_t, Sent> calls;
    bool open = true;
  };

  // One of the peer's calls that has not been ended.
  std::map<uint32_t, Sent>::iterator Any(Peer& peer) {
    std::vector<uint32_t> live;
    for (auto& [id, sent] : peer.calls) {
      if (!sent.reset && !peer.frames->streams[id].end && !peer.frames->streams[id].reset) live.push_back(id);
    }
    return live.empty() ? peer.calls.end() : peer.calls.find(live[random.Below(live.size())]);
  }
  void Begin(Peer& peer) {
    const uint32_t id = peer.next;
    peer.next += 2;
    Sent& sent = peer.calls[id];
    Fields more = {{"x-user", std::to_string(random.Below(3))}};
    if (random.Below(2) == 0) more.push_back({"grpc-timeout", std::to_string(1 + random.Below(300)) + "m"});
    if (random.Below(8) == 0) more.push_back({"cache-control", "no-cache"});
    const std::string path = random.Below(4) == 0 ? "/pkg.Service/Other" : "/pkg.Service/Method";
    std::string message = Message(std::string(1, static_cast<char>('a' + random.Below(4))));
    Fields request = GrpcRequest(path);
    if (listener.grpc_web.enabled && random.Below(3) != 0) {
      sent.web = true;
      sent.text = random.Below(2) == 0;
      request = test::WebRequest(sent.text ? "application/grpc-web-text" : "application/grpc-web+proto");
      request[2].second = path;
      if (sent.text) message = test::ToText(message);
      if (sent.text && random.Below(16) == 0) message[random.Below(message.size())] = '!';
    }
    const size_t now = random.Below(3) == 0 ? random.Below(message.size()) : message.size();
    sent.ended = now == message.size();
    sent.rest = message.substr(now);
    peer.frames->Send(Headers(id, Block(With(request, more))) +
                      Data(id, message.substr(0, now), sent.ended ? h2::kEndStream : 0));
  }
  void More(Peer& peer) {
    auto it = Any(peer);
    if (it == peer.calls.end() || it->second.ended) return;
    if (random.Below(4) == 0) {  // not unary after all
      const std::string more = it->second.text ? test::ToText(Message("z")) : Message("z");
      peer.frames->Send(Data(it->first, it->second.rest + more, h2::kEndStream));
    } else {
      peer.frames->Send(Data(it->first, it->second.rest, h2::kEndStream));
    }
    it->second.ended = true;
  }
  struct Upstream {
    FramePeer* up;
    uint32_t id;
  };
  // Upstream streams that have not been ended, also of connections to endpoints that have left the list.
  std::vector<Upstream> Open() {
    std::vector<Upstream> out;
    for (const std::string& host : kHosts) {
      for (const auto& up : net.host(host).connections) {
        if (up->end) continue;
        for (auto& [id, stream] : up->streams) {
          if (!stream.headers.empty() && !stream.reset && !done[up.get()].contains(id)) out.push_back({up.get(), id});
        }
      }
    }
    return out;
  }
  void Answer(const Upstream& to) {
    FramePeer& up = *to.up;
    const uint32_t id = to.id;
    switch (random.Below(9)) {
      case 0:
        up.Send(h2::RstStream(id, random.Below(2) == 0 ? 7 : 2));
        break;
      case 1:
        up.Send(Headers(id, Block(With(GrpcResponse(), {{"grpc-status", "14"}})), kLast));
        break;
      case 2:  // too large to share
        if (begun[&up].insert(id).second) {
          up.Send(Headers(id, Block(GrpcResponse())) + Data(id, std::string(3'000, 'x')));
          return;
        }
        [[fallthrough]];
      case 3:
        if (begun[&up].insert(id).second) {
          up.Send(Headers(id, Block(GrpcResponse())));
          return;
        }
        [[fallthrough]];
      default:
        if (begun[&up].insert(id).second) up.Send(Headers(id, Block(GrpcResponse())));
        up.Send(Data(id, Message("answer")) + Headers(id, Block(GrpcTrailers()), kLast));
    }
    done[&up].insert(id);
  }
  void AnswerAll() {
    for (std::vector<Upstream> open = Open(); !open.empty(); open = Open()) {
      for (const Upstream& stream : open) Answer(stream);
      Run();
    }
  }
  void Step() {
    Peer& peer = peers[random.Below(peers.size())];
    switch (random.Below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        Begin(peer);
        break;
      case 5:
      case 6:
        More(peer);
        break;
      case 7:
        if (auto it = Any(peer); it != peer.calls.end()) {
          peer.frames->Send(h2::RstStream(it->first, 8));
          it->second.reset = true;
        }
        break;
      case 8:
      case 9:
      case 10:
      case 11: {
        const std::vector<Upstream> open = Open();
        if (!open.empty()) Answer(open[random.Below(open.size())]);
        break;
      }
      case 12:
        if (random.Below(8) == 0) response_cache->Purge({});
        break;
      case 13: {
        if (random.Below(6) != 0) break;
        std::vector<std::string> list;
        for (const std::string& host : kHosts) {
          if (random.Below(2) == 0) list.push_back(host);
        }
        if (list.empty()) list.push_back(kHosts[0]);
        SetEndpoints(list);
        break;
      }
      case 14: {
        const std::string& host = kHosts[random.Below(kHosts.size())];
        if (random.Below(10) == 0 && Connected(host)) Up(host).wire().Close();
        break;
      }
      case 15:
        time.clock.Advance(milliseconds(random.Below(60)));
        break;
    }
    if (random.Below(3) != 0) Run();
  }

  base::Random random{GetParam()};
  std::vector<Peer> peers;
  std::map<FramePeer*, std::set<uint32_t>> done, begun;  // streams that the backend has ended, or answered in part
};

TEST_P(CallStormTest, EveryCallEndsOnceAndNothingStaysBehind) {
  CacheRule& rule = routes[0].cache;
  rule.methods = {{"/pkg.Service/Method", milliseconds(20)}};
  rule.stale_while_revalidate = milliseconds(40);
  rule.stale_if_unavailable = milliseconds(200);
  rule.fetch_timeout = milliseconds(250);
  cache.entry_bytes_max = 1024;
  cluster.policy = upstream::Policy::kRingHash;
  cluster.endpoint_concurrency = {.max = 3, .queue_max = 4};
  cluster.concurrency = {.max = 6, .queue_max = 8};
  cluster.rate_limit = {.rate = 500, .burst = 8, .capped = GetParam() % 2 == 0, .queue_max = 10};
  cluster.bounded_load = GetParam() % 3 == 0 ? 1.25 : 0;
  routes[0].rate_limit = {.rate = 1000, .burst = 10, .queue_max = 5};
  routes[0].client_rate_limit.rate = {.rate = 300, .burst = 10, .capped = GetParam() % 2 == 1, .queue_max = 5};
  routes[0].client_rate_limit.metadata = "x-user";
  process = {.max = 10, .queue_max = 6};
  listener.grpc_web.enabled = GetParam() % 2 == 0;
  Start(kHosts);
  for (int i = 0; i < 3; ++i) peers.push_back({&Client(), 1, {}, true});
  for (int i = 0; i < kSteps; ++i) Step();

  for (Peer& peer : peers) {
    for (auto& [id, sent] : peer.calls) {
      if (sent.ended || sent.reset || peer.frames->streams[id].end) continue;
      peer.frames->Send(Data(id, sent.rest, h2::kEndStream));
    }
  }
  Run();
  for (int i = 0; i < 200; ++i) {
    AnswerAll();
    Advance(milliseconds(10));
  }
  size_t calls = 0;
  for (Peer& peer : peers) {
    for (auto& [id, sent] : peer.calls) {
      ++calls;
      const test::Heard& heard = peer.frames->streams[id];
      if (!sent.reset) {
        // In gRPC-Web a response that ends inside of a message is reset.
        EXPECT_TRUE(heard.end || (sent.web && heard.reset == 2u)) << "seed " << GetParam() << " stream " << id;
      }
      EXPECT_LE(heard.headers.size(), 2u) << "seed " << GetParam() << " stream " << id;
      size_t ends = 0;
      for (const h2::Frame& frame : peer.frames->frames) {
        ends += frame.stream == id && frame.type <= h2::kHeaders && frame.has(h2::kEndStream);
      }
      EXPECT_LE(ends, 1u) << "seed " << GetParam() << " stream " << id;
    }
  }
  EXPECT_GT(calls, 200u);
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_EQ(response_cache->stats().fetches, 0u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().limits->concurrency->waiting(), 0u);
  EXPECT_EQ(state().limits->rate->outstanding(), 0u);
  EXPECT_EQ(state().limits->rate->waiting(), 0u);
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
  EXPECT_EQ(process_limits->concurrency->waiting(), 0u);
  EXPECT_EQ(route_limits["r"]->rate->waiting(), 0u);
  for (const auto& entry : state().endpoints) {
    EXPECT_EQ(entry.endpoint->concurrency()->in_use(), 0u);
    EXPECT_EQ(entry.endpoint->concurrency()->waiting(), 0u);
  }
  EXPECT_EQ(state().load->of(0), 0u);
  RecordProperty("calls", static_cast<int>(calls));
  const CacheStats stats = response_cache->stats();
  std::printf("seed %llu: %zu calls, %llu hits, %llu misses, %llu stale, %llu coalesced\n",
              static_cast<unsigned long long>(GetParam()), calls, static_cast<unsigned long long>(stats.hits),
              static_cast<unsigned long long>(stats.misses), static_cast<unsigned long long>(stats.stale),
              static_cast<unsigned long long>(stats.coalesced));
}

// In the middle of everything the proxy stops: TearDown looks at what is left.
TEST_P(CallStormTest, AStopInTheMiddleLeavesNothingBehind) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(20)}};
  cache.entry_bytes_max = 1024;
  cluster.endpoint_concurrency = {.max = 2, .queue_max = 4};
  cluster.concurrency = {.max = 4, .queue_max = 8};
  cluster.rate_limit = {.rate = 500, .burst = 8, .capped = GetParam() % 2 == 0, .queue_max = 10};
  listener.grpc_web.enabled = GetParam() % 2 == 0;
  Start(kHosts);
  for (int i = 0; i < 3; ++i) peers.push_back({&Client(), 1, {}, true});
  for (uint64_t i = 0; i < 100 + GetParam() * 7; ++i) Step();
  Run();
  worker->EndCalls();
  Run();
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_EQ(response_cache->stats().fetches, 0u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().limits->rate->outstanding(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CallStormTest, ::testing::Range<uint64_t>(1, 13));

}  // namespace
}  // namespace sluice::proxy
