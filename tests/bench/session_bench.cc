// The price of a unary gRPC call in one HTTP/2 server session: request frames in, response frames out, no
// I/O.
//
// The requests are encoded once, with a warm HPACK table as any gRPC client has after its first call; the
// handler answers with headers, one DATA and trailers. One iteration is one read of `calls` requests, then
// one flush; read ns_per_call.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "http2/session/session.h"

namespace sluice::http2 {
namespace {

// Ignores all events.
struct Quiet : SessionEvents, StreamEvents {
  StreamEvents* OnRequest(Stream&, HeaderList&&, bool) override { return this; }
  void OnCapacity() override {}
  void OnGoaway(ErrorCode, uint32_t, std::string_view) override {}
  void OnPingAck(uint64_t) override {}
  void OnOutput() override {}
  void OnHeaders(HeaderList&&, bool) override {}
  void OnData(const base::Slice& bytes, bool) override {}
  void OnReset(ErrorCode, ResetCause) override {}
  void OnSent(size_t) override {}
};

HeaderList Request(InternTable& interns) {
  HeaderList list(&interns);
  for (auto [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {":method", "POST"},
           {":scheme", "http"},
           {":path", "/helloworld.Greeter/SayHello"},
           {":authority", "greeter.default.svc:50051"},
           {"te", "trailers"},
           {"content-type", "application/grpc"},
           {"user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"},
           {"grpc-accept-encoding", "identity, deflate, gzip"}}) {
    list.AddInterned(interns.Intern(name, value));
  }
  list.Add("grpc-timeout", "999832u");
  return list;
}

base::Slice Flush(Session& session) {
  session.FrameOutput();
  base::BufferChain& out = session.output();
  base::Block* block = base::Block::New(out.size());
  base::Slice bytes(block, block->data(), out.size());
  block->Unref();
  size_t at = 0;
  iovec iov[64];
  while (!out.empty()) {
    size_t n = out.Gather(iov, 64), taken = 0;
    for (size_t i = 0; i < n; ++i) {
      std::memcpy(block->data() + at + taken, iov[i].iov_base, iov[i].iov_len);
      taken += iov[i].iov_len;
    }
    out.Consume(taken);
    at += taken;
  }
  return bytes;
}

// Requests as a client session writes them: the first read also holds the preface. Stream ids go on from read to read.
class Load {
 public:
  Load(size_t reads, size_t calls, size_t message_bytes) : client_(Role::kClient, {}, interns_, quiet_) {
    client_.Start();
    // No answers come here: the peer's settings and window are made large by hand.
    static const char kSettings[] = {0,  0, 6, 4, 0, 0, 0, 0, 0, 0, 4,    0x7f, -1, -1,
                                     -1, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, -1,   0,  0};
    SLUICE_CHECK(client_.Feed(base::Slice::Copy(kSettings, sizeof(kSettings))).ok());
    HeaderList request = Request(interns_);
    base::Slice message = base::Slice::Copy(std::string(message_bytes, 'm'));
    for (size_t r = 0; r < reads; ++r) {
      for (size_t c = 0; c < calls; ++c) {
        Stream* stream = client_.Open(request, false, quiet_);
        SLUICE_CHECK(stream != nullptr);
        stream->SendData(message, true);
      }
      reads_.push_back(Flush(client_));
    }
  }
  const std::vector<base::Slice>& reads() const { return reads_; }

 private:
  Quiet quiet_;
  InternTable interns_;
  Session client_;
  std::vector<base::Slice> reads_;
};

struct EchoServer : Quiet {
  EchoServer() : response(&interns), trailers(&interns), session(Role::kServer, Options(), interns, *this) {
    response.AddInterned(InternTable::Static(8));
    response.AddInterned(interns.Intern("content-type", "application/grpc"));
    response.AddInterned(interns.Intern("grpc-accept-encoding", "identity, deflate, gzip"));
    trailers.AddInterned(interns.Intern("grpc-status", "0"));
    session.Start();
  }
  static SessionOptions Options() {
    SessionOptions options;
    options.output_bytes_max = 64 << 20;
    return options;
  }
  StreamEvents* OnRequest(Stream& opened, HeaderList&&, bool) override {
    stream = &opened;
    return this;
  }
  void OnData(const base::Slice& bytes, bool end_stream) override {
    stream->Consume(bytes.size());
    if (!end_stream) return;
    stream->SendHeaders(response, false);
    stream->SendData(bytes, false);
    stream->SendHeaders(trailers, true);
    stream->Release();
    ++answered;
  }
  InternTable interns;
  HeaderList response, trailers;
  Stream* stream = nullptr;
  size_t answered = 0;
  Session session;
};

void BM_UnaryServer(benchmark::State& state) {
  size_t calls = static_cast<size_t>(state.range(0));
  Load load(4000 / calls, calls, static_cast<size_t>(state.range(1)));
  // The server's window for answers, as a large client would give it.
  static const char kWindow[] = {0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0};
  size_t answered = 0;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(load.reads().size()))) {
    state.PauseTiming();
    EchoServer server;
    state.ResumeTiming();
    bool first = true;
    for (const base::Slice& read : load.reads()) {
      SLUICE_CHECK(server.session.Feed(read).ok());
      if (std::exchange(first, false))
        SLUICE_CHECK(server.session.Feed(base::Slice::Copy(kWindow, sizeof(kWindow))).ok());
      server.session.FrameOutput();
      server.session.output().Consume(server.session.output().size());
    }
    answered += server.answered;
  }
  SLUICE_CHECK(answered >= static_cast<size_t>(state.iterations()) * calls);
  state.counters["ns_per_call"] = benchmark::Counter(static_cast<double>(answered) * 1e-9,
                                                     benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_UnaryServer)
    ->ArgNames({"calls", "bytes"})
    ->Args({1, 100})
    ->Args({16, 100})
    ->Args({100, 100})
    ->Args({16, 4096});

}  // namespace
}  // namespace sluice::http2

BENCHMARK_MAIN();
