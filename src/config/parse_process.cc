// What concerns the process as a whole: workers, logs, forwarding, state, drain and the hash seed.
#include <array>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;
using proxy::AccessLogOptions;

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevels = {{
    {"trace", LogLevel::kTrace},
    {"debug", LogLevel::kDebug},
    {"info", LogLevel::kInfo},
    {"warn", LogLevel::kWarn},
    {"error", LogLevel::kError},
    {"off", LogLevel::kOff},
}};
constexpr std::array<std::pair<std::string_view, AccessLogOptions::Format>, 3> kFormats = {{
    {"off", AccessLogOptions::Format::kOff},
    {"text", AccessLogOptions::Format::kText},
    {"json", AccessLogOptions::Format::kJson},
}};

void ParseLog(Reader& reader, const Node& node, LogOptions* out) {
  Section section(reader, node, "log");
  section.Choice<LogLevel>("level", kLevels, &out->level);
  section.Text("path", &out->path);
}

void ParseAccessLog(Reader& reader, const Node& node, AccessLogOptions* out) {
  Section section(reader, node, "access_log");
  section.Choice<AccessLogOptions::Format>("format", kFormats, &out->format);
  section.Text("path", &out->path);
}

void ParseForwarding(Reader& reader, const Node& node, proxy::ForwardingOptions* out) {
  Section section(reader, node, "forwarding");
  section.Bool("x_forwarded", &out->x_forwarded);
  section.Bool("via", &out->via);
}

}  // namespace

void ParseProcess(Section& root, std::string_view file, Config* config) {
  Reader& reader = root.reader();
  root.Number("workers", {0, 256}, &config->runtime.workers);
  root.Duration("blocking_threshold", {0ms, 1h}, &config->runtime.blocking_threshold);
  root.Number("blocking_threads", {1, 64}, &config->runtime.blocking_threads);
  if (const Node* admin = root.Find("admin")) ParseAdmin(reader, *admin, file, config);
  if (const Node* log = root.Find("log")) ParseLog(reader, *log, &config->log);
  if (const Node* log = root.Find("access_log")) ParseAccessLog(reader, *log, &config->access_log);
  if (const Node* node = root.Find("forwarding")) ParseForwarding(reader, *node, &config->forwarding);
  if (const Node* node = root.Find("concurrency")) ParseConcurrency(reader, *node, "concurrency", &config->concurrency);
  if (const Node* node = root.Find("cache")) ParseCache(reader, *node, &config->cache);
  if (const Node* node = root.Find("memory")) {
    Section memory(reader, *node, "memory");
    memory.Bytes("buffered_bytes_max", {uint64_t{16} << 20, uint64_t{1} << 40}, &config->buffered_bytes_max);
  }
  root.Number("connections_max", {1, 10000000}, &config->connections_max);
  root.Text("state_file", &config->state_file);
  root.Duration("drain_timeout", {0ms, 1h}, &config->drain_timeout);
  root.Text("hash_seed", &config->hash_seed);
}

}  // namespace sluice::config
