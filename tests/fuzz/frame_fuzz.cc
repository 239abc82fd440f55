// The frame parser: any bytes after the start of a connection, fed whole and fed in pieces, mean the same: the same
// events, the same answer on the wire, the same end. Where nothing fails, every whole frame was counted (RFC 9113 4.1),
// by a parser that shares no code with the session's.
//
// The input: a byte that chooses the role and whether the settings are small, one that seeds the cuts, then bytes of
// the wire.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "fuzz/support/program.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

struct Outcome {
  std::vector<std::string> log;
  std::vector<std::string> data;
  std::string wire, error;
  uint64_t frames = 0;
  bool operator==(const Outcome&) const = default;
};

SessionOptions Small() {
  SessionOptions options;
  options.concurrent_streams_max = 2;
  options.header_list_bytes_max = 1024;
  options.header_count_max = 8;
  options.header_table_bytes = 100;
  options.header_block_bytes_max = 16384;
  options.control_frames_max = 16;
  return options;
}

// stride 0: all at once. Pieces of at most `stride` bytes.
Outcome Converse(Role role, const SessionOptions& options, std::string_view wire, uint64_t stride, uint64_t seed) {
  h2::SessionHarness side(role, options);
  side.Handshake();
  if (role == Role::kClient) {
    for (int i = 0; i < 3; ++i) side.Open(/*end_stream=*/i == 1);
    side.Written();
  }
  base::Random random(seed);
  bool good = true;
  for (size_t at = 0; good && at < wire.size();) {
    const size_t size = stride == 0 ? wire.size() : 1 + random.Below(stride);
    good = side.Feed(wire.substr(at, size));
    at += size;
  }
  Outcome outcome{side.log,
                  {},
                  side.Written(),
                  side.error,
                  side.session->stats().frames_received + side.session->stats().data_frames_received};
  for (auto& [id, recorder] : side.recorders) outcome.data.push_back(recorder->data);
  return outcome;
}

// Frames of which all has come; of DATA the header is enough, and the pad length where there is one.
uint64_t WholeFrames(std::string_view wire) {
  uint64_t frames = 0;
  while (wire.size() >= 9) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(wire[i])); };
    const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    const bool data = byte(3) == h2::kData;
    const size_t needed = data ? 9 + ((byte(4) & h2::kPadded) != 0 && length > 0 ? 1 : 0) : 9 + length;
    if (wire.size() < needed) break;
    ++frames;
    wire.remove_prefix(std::min(wire.size(), 9 + length));
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 16) return 0;  // more would meet the windows, whose updates do depend on the cuts
  fuzz::Program program(data, size);
  const uint8_t how = program.U8();
  const uint64_t seed = program.U8();
  const std::string_view wire = program.Rest();
  const Role role = how & 1 ? Role::kClient : Role::kServer;
  const SessionOptions options = how & 2 ? Small() : SessionOptions();
  const Outcome whole = Converse(role, options, wire, 0, seed);
  SLUICE_CHECK(Converse(role, options, wire, 1 + (seed & 3) * 20, seed) == whole);
  if (size < 512) SLUICE_CHECK(Converse(role, options, wire, 1, seed) == whole);
  // The handshake's two SETTINGS have been counted too.
  if (whole.error.empty()) SLUICE_CHECK(whole.frames == WholeFrames(wire) + 2);
  return 0;
}

}  // namespace sluice::http2
