// What a header block costs: decoding into a HeaderList and dropping it, encoding it again, and the spelled-out fields.
//
// Sample (2 vCPU Xeon VM, release): see docs/hpack.md. "per_field" is the time for one field of the block.
#include <benchmark/benchmark.h>

#include <string>

#include "http2/hpack/decoder.h"
#include "http2/hpack/encoder.h"
#include "http2/hpack/huffman.h"

namespace sluice::http2 {
namespace {

void AddIndexed(HeaderList& list, InternTable& interns, std::string_view name, std::string_view value) {
  list.AddInterned(interns.Intern(name, value));
}

HeaderList Request(InternTable& interns) {
  HeaderList list(&interns);
  AddIndexed(list, interns, ":method", "POST");
  AddIndexed(list, interns, ":scheme", "http");
  AddIndexed(list, interns, ":path", "/helloworld.Greeter/SayHello");
  AddIndexed(list, interns, ":authority", "users.default.svc.cluster.local:50051");
  AddIndexed(list, interns, "te", "trailers");
  AddIndexed(list, interns, "content-type", "application/grpc");
  AddIndexed(list, interns, "user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)");
  AddIndexed(list, interns, "grpc-accept-encoding", "identity, deflate, gzip");
  return list;
}

void AddLiterals(HeaderList& list) {
  list.Add("grpc-timeout", "9999871u");
  list.Add("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
}

std::string Block(HpackEncoder& encoder, const HeaderList& list) {
  std::string block(encoder.BytesMax(list), '\0');
  block.resize(encoder.Encode(list, reinterpret_cast<uint8_t*>(block.data())));
  return block;
}

void PerField(benchmark::State& state, size_t fields) {
  state.counters["per_field"] = benchmark::Counter(
      static_cast<double>(fields), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Decode(benchmark::State& state, bool literals) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HpackDecoder decoder(interns);
  HeaderList request = Request(interns);
  if (literals) AddLiterals(request);
  HeaderList first(&interns);
  decoder.Decode(Block(encoder, request), {}, first);
  const std::string block = Block(encoder, request);
  for (auto _ : state) {
    HeaderList list(&interns);
    benchmark::DoNotOptimize(decoder.Decode(block, {}, list));
    benchmark::DoNotOptimize(list.begin());
  }
  PerField(state, request.size());
}
BENCHMARK_CAPTURE(Decode, RepeatedRequest, false);
BENCHMARK_CAPTURE(Decode, RepeatedRequestAndTwoLiterals, true);

void Encode(benchmark::State& state, bool literals) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HeaderList request = Request(interns);
  if (literals) AddLiterals(request);
  std::string block(encoder.BytesMax(request), '\0');
  for (auto _ : state) {
    benchmark::DoNotOptimize(encoder.Encode(request, reinterpret_cast<uint8_t*>(block.data())));
    benchmark::ClobberMemory();
  }
  PerField(state, request.size());
}
BENCHMARK_CAPTURE(Encode, RepeatedRequest, false);
BENCHMARK_CAPTURE(Encode, RepeatedRequestAndTwoLiterals, true);

// A field to be indexed that is new each time, there and back: Huffman code, the intern table, evictions.
void NewIndexedField(benchmark::State& state) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HpackDecoder decoder(interns);
  uint8_t block[256];
  uint64_t number = 1'000'000'000;
  for (auto _ : state) {
    HeaderList list, received(&interns);
    list.Add("x-request-id", std::to_string(++number), Indexing::kIndexed);
    const size_t size = encoder.Encode(list, block);
    decoder.Decode({reinterpret_cast<char*>(block), size}, {}, received);
    benchmark::DoNotOptimize(received.begin());
  }
}
BENCHMARK(NewIndexedField);

void HuffmanDecodeText(benchmark::State& state) {
  const std::string text = "users.default.svc.cluster.local:50051/helloworld.Greeter/SayHello";
  std::string code(HuffmanSize(text), '\0'), out(HuffmanDecodedMax(code.size()), '\0');
  HuffmanEncode(text, reinterpret_cast<uint8_t*>(code.data()));
  for (auto _ : state) {
    benchmark::DoNotOptimize(HuffmanDecode(reinterpret_cast<const uint8_t*>(code.data()), code.size(), out.data()));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(HuffmanDecodeText);

void HuffmanEncodeText(benchmark::State& state) {
  const std::string text = "users.default.svc.cluster.local:50051/helloworld.Greeter/SayHello";
  std::string code(HuffmanSize(text), '\0');
  for (auto _ : state) {
    benchmark::DoNotOptimize(HuffmanEncode(text, reinterpret_cast<uint8_t*>(code.data())));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(HuffmanEncodeText);

}  // namespace
}  // namespace sluice::http2
