// What must hold after a run, whatever has happened in it.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "chaos/run.h"
#include "proxy/grpc_status.h"
#include "proxy/proxy_metrics.h"

namespace sluice::chaos {

namespace {

// The status that a gRPC client makes of a response without one: gRPC's http-grpc-status-mapping, not the proxy's own.
int CodeOf(const std::string& http_status) {
  static const std::map<std::string, int> kCodes = {{"200", 0},  {"400", 13}, {"401", 16}, {"403", 7}, {"404", 12},
                                                    {"429", 14}, {"502", 14}, {"503", 14}, {"504", 14}};
  const auto known = kCodes.find(http_status);
  return known == kCodes.end() ? 2 : known->second;
}

// The status that a call is counted with. An error of the proxy's own is counted by its kind, which a client that
// speaks plain HTTP sees by the reason alone: several kinds share a :status.
int CountedCode(const Call& call) {
  if (call.status) return *call.status;
  for (size_t kind = 0; kind < proxy::ProxyMetrics::kKinds && !call.reason.empty(); ++kind) {
    const auto error = static_cast<base::ErrorKind>(kind);
    if (base::Reason(error) == call.reason) return static_cast<int>(proxy::ToGrpcCode(error));
  }
  return CodeOf(call.http_status);
}

}  // namespace

bool Run::CallsEnded() const {
  for (const Call& call : calls_) {
    const Client& client = *client_of_[call.number];
    if (client.gone() || client.spoiled()) continue;
    if (call.stream == 0 ? !client.told_to_go() : !call.ended && !call.cancelled) return false;
  }
  return true;
}

void Run::CheckCalls() {
  for (const Call& call : calls_) CheckCall(call, *client_of_[call.number]);
}

void Run::CheckCall(const Call& call, const Client& client) {
  const std::string name = "call " + std::to_string(call.number) + " (" + kPaths[static_cast<size_t>(call.method)] +
                           " of " + client.name() + ", stream " + std::to_string(call.stream) + ")";
  const bool owed = !client.gone() && !client.spoiled();
  if (call.stream == 0) {
    if (owed && !client.told_to_go()) record_.Fault(name + " was never sent: its connection has no room");
    return;
  }
  if (owed && !call.ended && !call.cancelled) record_.Fault(name + " has no end");
  if (call.whole && call.grpc() && !call.status && call.http_status == "200" && !call.broken)
    record_.Fault(name + " has no status");
  if (call.ok() && !call.cancelled && !call.broken) {
    const std::string want = Answer(call.method, call.body, plan_.body_max);
    if (call.response != want) {
      record_.Fault(name + " is OK, but its body is not what was answered: " + std::to_string(call.response.size()) +
                    " bytes, not " + std::to_string(want.size()));
    }
  }
  const auto executed = stage_.executions.find(call.number);
  if (!MayRepeat(call.method) && executed != stage_.executions.end() && executed->second > 1) {
    record_.Fault(name + " was executed " + std::to_string(executed->second) + " times");
  }
  if (plan_.CallsMustSucceed() && !client.bad() && !call.excused && !call.ok()) {
    record_.Fault(name + " could have succeeded: status " + (call.status ? std::to_string(*call.status) : "none") +
                  ", :status " + call.http_status + ", reset " + std::to_string(call.reset));
  }
}

// What clients have seen is what is counted.
void Run::CheckCounters() {
  std::array<uint64_t, proxy::kGrpcCodes> seen{};
  uint64_t sent = 0, counted = 0;
  bool exact = !plan_.bad_clients && plan_.stop == Plan::Stop::kAtEnd;
  for (const Call& call : calls_) {
    sent += call.stream != 0;
    if (call.stream != 0 && !call.whole) exact = false;
    if (!call.whole || call.broken) continue;
    const int code = CountedCode(call);
    if (code >= 0 && code < static_cast<int>(proxy::kGrpcCodes)) ++seen[static_cast<size_t>(code)];
  }
  for (size_t code = 0; code < proxy::kGrpcCodes; ++code) {
    const uint64_t ended = proxy_->CallsEnded(code);
    counted += ended;
    if (seen[code] > ended || (exact && seen[code] != ended)) {
      record_.Fault("calls that ended with " + std::string(ToString(static_cast<proxy::GrpcCode>(code))) + ": " +
                    std::to_string(ended) + " are counted, " + std::to_string(seen[code]) + " were seen");
    }
  }
  if (counted > sent || (exact && counted != sent)) {
    record_.Fault(std::to_string(counted) + " calls are counted, " + std::to_string(sent) + " were sent");
  }
}

// All backends are well now: none is out for ever, whether calls come or not.
void Run::CheckHealth() {
  Advance(std::chrono::seconds(100));  // more than the longest back-off
  const std::string out = proxy_->Out();
  if (!out.empty()) record_.Fault("out for ever: " + out);
}

void Run::CheckIdle(const char* when) {
  const std::string busy = proxy_->Busy();
  if (!busy.empty()) record_.Fault(std::string(when) + ": " + busy);
}

}  // namespace sluice::chaos
