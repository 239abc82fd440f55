#include "admin/grpc_log.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"

namespace sluice::admin {
namespace {

// A failed handshake is one line or two. That there are many is news once in a while.
constexpr uint32_t kGrpcLogLines = 5;
constexpr base::Nanos kGrpcLogPeriod = std::chrono::seconds(10);
constexpr size_t kTextBytesMax = 512;

// gRPC's own threads write, whenever.
std::mutex mutex;
base::LogLimit limit(kGrpcLogLines, kGrpcLogPeriod);  // under mutex

// What stands in a certificate or in a handshake may stand in it.
std::string VisiblePart(std::string_view text) {
  std::string out(text.substr(0, kTextBytesMax));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

void OnLine(gpr_log_func_args* args) {
  const bool error = args->severity == GPR_LOG_SEVERITY_ERROR;
  if (!spdlog::default_logger_raw()->should_log(error ? spdlog::level::warn : spdlog::level::debug)) return;
  std::string more;
  {
    std::lock_guard lock(mutex);
    const auto suffix = limit.Allow(base::Clock::Steady().Now());
    if (!suffix) return;
    more = *suffix;
  }
  std::string_view file = args->file;
  file = file.substr(std::min(file.size(), file.rfind('/') + 1));
  if (error) {
    SLUICE_LOG_WARN("gRPC: {} ({}:{}){}", VisiblePart(args->message), file, args->line, more);
  } else {
    SLUICE_LOG_DEBUG("gRPC: {} ({}:{}){}", VisiblePart(args->message), file, args->line, more);
  }
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(&OnLine); }
void UnrouteGrpcLog() { gpr_set_log_function(nullptr); }

}  // namespace sluice::admin
