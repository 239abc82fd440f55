// A whole proxy between clients and backends in memory, on a manual clock: frames right and wrong from both sides, cut
// anywhere, connections that stall, close and break, hosts that refuse and hang, lists that change, limits, retries and
// the cache. support/wire_model.h checks what each peer hears; at the end every call has ended, every connection has
// gone, and nothing that a call held (permits, tokens, fetches, tasks, streams) is left.
//
// The input: four bytes of options, then steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/support/peer_frames.h"
#include "fuzz/support/program.h"
#include "fuzz/support/wire_model.h"
#include "support/proxy_fixture.h"

namespace sluice::fuzz {
namespace {

using std::chrono::milliseconds;
using test::FakeHost;
using test::FramePeer;

const std::vector<std::string> kHosts = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};

// What a fixture's expectation finds wrong ends the process, as a CHECK does.
class AbortOnFailure final : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "%s:%d: %s\n", result.file_name(), result.line_number(), result.message());
    std::abort();
  }
};

// One peer: what it has said and not sent, and what the proxy may say to it.
struct Peer {
  Peer(FramePeer& f, Program& program, bool client, const http2::SessionOptions& options)
      : frames(f),
        maker(program, client ? FrameMaker::Peer::kClient : FrameMaker::Peer::kServer),
        model(client, options) {
    frames.acknowledge = frames.credit = false;
    if (!client) model.Hear(h2::Preface());  // taken off by FramePeer
  }

  void Say(const std::string& bytes) { unsent += bytes; }
  void Send(size_t n) {
    n = std::min(n, unsent.size());
    if (n == 0) return;
    const std::string bytes = unsent.substr(0, n);
    unsent.erase(0, n);
    model.Tell(bytes);
    frames.Send(bytes);
  }
  // True if there was anything.
  bool Hear() {
    if (heard == frames.frames.size()) return false;
    for (; heard < frames.frames.size(); ++heard) {
      const h2::Frame& frame = frames.frames[heard];
      joined += h2::RawFrame(frame.type, frame.flags, frame.stream, frame.payload);
      const bool in_block =
          (frame.type == h2::kHeaders || frame.type == h2::kContinuation) && !frame.has(h2::kEndHeaders);
      if (in_block) continue;
      model.Hear(std::exchange(joined, {}));
      if (polite) Answer(frame);
    }
    return true;
  }
  void Answer(const h2::Frame& frame) {
    std::string answer;
    if (frame.type == h2::kSettings && !frame.has(h2::kAck)) answer = h2::SettingsAck();
    if (frame.type == h2::kPing && !frame.has(h2::kAck)) answer = h2::RawFrame(h2::kPing, h2::kAck, 0, frame.payload);
    if (frame.type == h2::kData && !frame.payload.empty()) {
      const uint32_t n = static_cast<uint32_t>(frame.payload.size());
      answer = h2::WindowUpdate(0, n) + (frame.has(h2::kEndStream) ? "" : h2::WindowUpdate(frame.stream, n));
    }
    if (answer.empty() || !unsent.empty()) return;  // not into the middle of a frame
    Say(answer);
    Send(answer.size());
  }

  FramePeer& frames;
  FrameMaker maker;
  WireModel model;
  std::string unsent, joined;
  size_t heard = 0, told_requests = 0;
  bool polite = true;  // acknowledges and credits
};

class World final : public test::ProxyFixture {
 public:
  World(uint32_t worker_count, Program& program) : test::ProxyFixture(worker_count), program_(program) {}
  void TestBody() override {}

  void Run() {
    Configure();
    Start(kHosts);
    AddClient();
    for (int steps = 0; steps < 400 && !program_.done() && said_ < 1 << 19; ++steps) Step();
    Quiesce();
    TearDown();
  }

 private:
  void Configure() {
    const uint8_t a = program_.U8(), b = program_.U8(), c = program_.U8();
    cluster.policy = a & 1   ? upstream::Policy::kRingHash
                     : a & 2 ? upstream::Policy::kLeastRequest
                             : upstream::Policy::kRoundRobin;
    cluster.ring_points = 8;
    cluster.connect_timeout = milliseconds(50);
    cluster.drain_timeout = milliseconds(500);
    cluster.connections_max = a & 4 ? 1 : 4;
    cluster.pending_calls_max = a & 8 ? 2 : 1024;
    if (a & 16) cluster.life.idle_timeout = milliseconds(20);
    if (a & 32) cluster.endpoint_concurrency = {.max = 2, .queue_max = 2};
    if (a & 64) cluster.rate_limit = {.rate = 200, .burst = 3, .capped = (b & 1) != 0, .queue_max = 3};
    if (a & 128) listener.keepalive = cluster.keepalive = {milliseconds(30), milliseconds(20)};
    proxy::RouteOptions& route = routes[0];
    route.service = b & 2 ? "pkg.Service" : "";
    route.timeout = milliseconds(1000);
    route.retry.attempts_max = 1 + (b >> 2 & 3);
    if (b & 1) route.retry.methods = proxy::RetryOptions::Methods::kAll;
    if (c & 1) route.retry.on = UINT32_MAX & ~1u;
    if (c & 2) route.retry.per_try_timeout = milliseconds(15);
    if (c & 4) route.hedge = {milliseconds(a & 1 ? 5 : 0), 1};
    if (b & 16) route.hash_by = {.kind = proxy::HashBy::Kind::kMetadata, .metadata = "x-key"};
    if (b & 32)
      route.hash_by = {
          .kind = proxy::HashBy::Kind::kField, .metadata = {}, .fields = {{"", {1}}}, .field_bytes_max = 64};
    if (b & 64) {
      route.cache.methods = {{"/pkg.Service/Method", milliseconds(30)}};
      route.cache.stale_while_revalidate = milliseconds(40);
      route.cache.stale_if_unavailable = milliseconds(100);
      route.cache.fetch_timeout = milliseconds(300);
      cache.entry_bytes_max = 1024;
    }
    if (b & 128) forwarding = {true, true};
    if (c & 1) listener.http2.concurrent_streams_max = 4;
    if (c & 2) listener.http2.stream_window_bytes = cluster.http2.stream_window_bytes = 65535;
    if (c & 4) listener.http2.output_bytes_max = cluster.http2.output_bytes_max = 16384;
    if (c & 8) listener.http2.header_list_bytes_max = 1024;
    if (c & 16) listener.http2.control_frames_max = cluster.http2.control_frames_max = 16;
    if (c & 32) process = {.max = 3, .queue_max = 2};
    if (c & 64) route.client_rate_limit.rate = {.rate = 100, .burst = 2, .capped = (a & 1) != 0, .queue_max = 2};
    if (c & 128) cluster.bounded_load = 1.25;
  }

  void AddClient() {
    const size_t before = clients_.size();
    if (before == 3) return;
    FramePeer& frames = Client();
    clients_.push_back(std::make_unique<Peer>(frames, program_, true, listener.http2));
    // What Client() and its peer have said.
    clients_.back()->model.Tell(h2::Preface() + h2::Settings() + h2::SettingsAck());
    Turn();
  }

  // New connections to hosts: each backend begins with its SETTINGS.
  void Adopt() {
    for (const std::string& address : kHosts) {
      FakeHost& host = net.host(address);
      host.speaks = false;
      for (size_t& at = adopted_[address]; at < host.connections.size(); ++at) {
        backends_.push_back(std::make_unique<Peer>(*host.connections[at], program_, false, cluster.http2));
        backends_.back()->Say(h2::Settings());
        backends_.back()->Send(SIZE_MAX);
      }
    }
  }

  void Turn() {
    for (bool moved = true; moved;) {
      time.Run();
      Adopt();
      moved = net.Pump();
      for (auto& peer : clients_) {
        moved |= peer->frames.Pump();
        moved |= peer->Hear();
      }
      for (auto& peer : backends_) {
        moved |= peer->Hear();
        const auto& requests = peer->model.requests();
        while (peer->told_requests < requests.size()) peer->maker.AddStream(requests[peer->told_requests++]);
      }
    }
  }

  Peer* Client1() { return clients_[program_.U8() % clients_.size()].get(); }
  Peer* Backend1() {
    const uint8_t which = program_.U8();
    return backends_.empty() ? nullptr
                             : backends_[backends_.size() - 1 - which % std::min<size_t>(backends_.size(), 6)].get();
  }
  Peer* Either() { return program_.Flag() ? Client1() : Backend1(); }

  void Say(Peer* peer, unsigned kind, size_t bytes = SIZE_MAX) {
    if (peer == nullptr) return;
    const std::string frame = peer->maker.Make(kind);
    said_ += frame.size();
    peer->Say(frame);
    peer->Send(bytes);
  }
  // Of any kind, and not all of it is sent.
  void SayPart(Peer* peer) {
    const unsigned kind = program_.U8();
    Say(peer, kind, program_.Size());
  }

  void Step() {
    const uint8_t op = program_.U8();
    switch (op & 0x1f) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        Say(Client1(), op >> 5 | (op & 1) << 3);
        break;
      case 6:
        SayPart(Client1());
        break;
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
        Say(Backend1(), op >> 5 | (op & 1) << 3);
        break;
      case 13:
        SayPart(Backend1());
        break;
      case 14:
      case 15:
        Respond(op);
        break;
      case 16:
        if (Peer* peer = Either()) peer->Send(1 + program_.U8());
        break;
      case 17:
      case 18:
        time.clock.Advance(milliseconds(1 + program_.U8()));
        break;
      case 19:
        time.clock.Advance(milliseconds(5));
        break;
      case 20:
        if (Peer* peer = Either()) peer->frames.reading = !peer->frames.reading;
        break;
      case 21:
        if (Peer* peer = Either()) peer->polite = !peer->polite;
        break;
      case 22:
        if (Peer* peer = Either()) {
          if (op & 0x20) {
            peer->frames.wire().Break(ECONNRESET);
          } else {
            op & 0x40 ? peer->frames.wire().Close() : peer->frames.wire().ShutdownWrite();
          }
        }
        break;
      case 23: {
        FakeHost& host = net.host(kHosts[program_.Below(3)]);
        host.mode = static_cast<FakeHost::Mode>(op >> 5 & 3 ? op >> 5 & 1 : 2);
        break;
      }
      case 24: {
        std::vector<std::string> list;
        for (size_t i = 0; i < kHosts.size(); ++i) {
          if (op >> 5 & 1 << i) list.push_back(kHosts[i]);
        }
        if (!list.empty()) SetEndpoints(list);
        break;
      }
      case 25:
        if (response_cache != nullptr) response_cache->Purge({});
        break;
      case 26:
        AddClient();
        break;
      case 27:
        if (Peer* peer = Either()) peer->frames.wire().SetBufferBytes(1 + program_.U8() * 16);
        break;
      case 28:
        front().DrainDownstream();
        break;
      default:
        break;
    }
    if (op & 0x80 || (op & 0x1f) > 15) Turn();
  }

  // A backend answers one of its streams as it should.
  void Respond(uint8_t op) {
    Peer* peer = Backend1();
    if (peer == nullptr || peer->maker.streams().empty()) return;
    const auto& ids = peer->maker.streams();
    const uint32_t id = ids[ids.size() - 1 - program_.U8() % std::min<size_t>(ids.size(), 8)];
    peer->Say(h2::Headers(id, h2::Block(h2::GrpcResponse())) + h2::Data(id, h2::Message("answer")));
    if (op & 0x40) peer->Say(h2::Headers(id, h2::Block(h2::GrpcTrailers(op & 0x20 ? "14" : "0")), test::kLast));
    peer->Send(SIZE_MAX);
  }

  // All that was said arrives, all is read; then the longest that a call may last goes by.
  void Quiesce() {
    for (auto* peers : {&clients_, &backends_}) {
      for (auto& peer : *peers) {
        peer->frames.reading = peer->polite = true;
        peer->frames.wire().SetBufferBytes(1 << 20);
        peer->Send(SIZE_MAX);
      }
    }
    for (const std::string& address : kHosts) net.host(address).mode = FakeHost::Mode::kAccept;
    Turn();
    for (int i = 0; i < 30; ++i) {
      time.clock.Advance(milliseconds(100));
      Turn();
    }
    // Every route has a timeout: whatever the peers have left undone, each call has had its one status, or has lost its
    // client.
    SLUICE_CHECK(metrics.calls_in_flight->Value() == 0);
    SLUICE_CHECK(response_cache == nullptr || response_cache->stats().fetches == 0);
    SLUICE_CHECK(state().limits->concurrency->in_use() == 0 && state().limits->concurrency->waiting() == 0);
    SLUICE_CHECK(state().limits->rate->outstanding() == 0 && state().limits->rate->waiting() == 0);
    SLUICE_CHECK(process_limits->concurrency->in_use() == 0 && process_limits->concurrency->waiting() == 0);
    for (const auto& entry : state().endpoints) {
      SLUICE_CHECK(entry.endpoint->concurrency()->in_use() == 0 && entry.endpoint->concurrency()->waiting() == 0);
    }
    SLUICE_CHECK(state().load->of(0) == 0);
  }

  Program& program_;
  std::vector<std::unique_ptr<Peer>> clients_, backends_;
  std::map<std::string, size_t> adopted_;
  size_t said_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool listening = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new AbortOnFailure);
    return true;
  }();
  (void)listening;
  Program program(data, size);
  // A call runs on the worker of its connection, or has moved to another one.
  const uint32_t workers = 1 + program.Below(2);
  const size_t blocks = base::Block::LiveBytes();
  World(workers, program).Run();
  SLUICE_CHECK(base::Block::LiveBytes() == blocks);
  return 0;
}

}  // namespace sluice::fuzz
