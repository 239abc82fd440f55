// What a hash key from the request message costs: ReadField with HashField, beside protobuf parsing the whole message.
//
// How to read it: `at_end` is the field behind a payload of the given size, in one piece; `in_pieces` the same in
// pieces of 1 KiB; `fields` a message with that many small fields before the one looked for; `parse` a generated
// message parsed on an arena that is reused, which is protobuf's fastest way. Not a test: no thresholds.
#include <benchmark/benchmark.h>
#include <google/protobuf/api.pb.h>
#include <google/protobuf/arena.h>

#include "proxy/message_field.h"

namespace sluice::proxy {
namespace {

constexpr uint32_t kPath[] = {5, 1};  // google.protobuf.Api: source_context.file_name

std::string Message(size_t payload, int fields) {
  google::protobuf::Api api;
  if (payload > 0) api.set_name(std::string(payload, 'x'));
  for (int i = 0; i < fields; ++i) api.add_methods()->set_name("n");
  api.mutable_source_context()->set_file_name("user-0123456789");
  const std::string body = api.SerializeAsString();
  std::string out(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(body.size() >> shift & 0xff);
  return out + body;
}

void Read(benchmark::State& state, const std::string& message, size_t piece) {
  std::vector<base::Slice> pieces;
  for (size_t at = 0; at < message.size(); at += piece) pieces.push_back(base::Slice::Copy(message.substr(at, piece)));
  for (auto _ : state) benchmark::DoNotOptimize(HashField(ReadField(pieces, kPath, 1 << 20), 1));
}

void Parse(benchmark::State& state, const std::string& message) {
  char memory[256 * 1024];
  google::protobuf::ArenaOptions options;
  options.initial_block = memory;
  options.initial_block_size = sizeof(memory);
  google::protobuf::Arena arena(options);
  for (auto _ : state) {
    auto* api = google::protobuf::Arena::CreateMessage<google::protobuf::Api>(&arena);
    benchmark::DoNotOptimize(api->ParseFromArray(message.data() + 5, static_cast<int>(message.size() - 5)));
    benchmark::DoNotOptimize(api->source_context().file_name().data());
    arena.Reset();
  }
}

void BM_at_end(benchmark::State& state) { Read(state, Message(static_cast<size_t>(state.range(0)), 0), 1 << 20); }
void BM_in_pieces(benchmark::State& state) { Read(state, Message(static_cast<size_t>(state.range(0)), 0), 1024); }
void BM_fields(benchmark::State& state) { Read(state, Message(0, static_cast<int>(state.range(0))), 1 << 20); }
void BM_parse(benchmark::State& state) { Parse(state, Message(static_cast<size_t>(state.range(0)), 0)); }
void BM_parse_fields(benchmark::State& state) { Parse(state, Message(0, static_cast<int>(state.range(0)))); }
BENCHMARK(BM_at_end)->Arg(0)->Arg(100)->Arg(60000);
BENCHMARK(BM_in_pieces)->Arg(60000);
BENCHMARK(BM_parse)->Arg(0)->Arg(100)->Arg(60000);
BENCHMARK(BM_fields)->Arg(10)->Arg(100);
BENCHMARK(BM_parse_fields)->Arg(10)->Arg(100);

}  // namespace
}  // namespace sluice::proxy
