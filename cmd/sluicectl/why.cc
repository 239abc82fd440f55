#include "sluicectl/why.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "sluicectl/print.h"

namespace sluice::ctl {
namespace {

using admin::v1::FailedCall;

std::string Millis(uint64_t micros) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.3f ms", static_cast<double>(micros) / 1000);
  return text;
}

std::string Ago(uint64_t millis) {
  char text[40];
  if (millis < 60'000) {
    std::snprintf(text, sizeof(text), "%.1f s", static_cast<double>(millis) / 1000);
  } else {
    std::snprintf(text, sizeof(text), "%llu min", static_cast<unsigned long long>(millis / 60'000));
  }
  return text;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find(by, at);
    parts.push_back(text.substr(at, end == text.npos ? end : end - at));
    at = end == text.npos ? text.size() : end + 1;
  }
  return parts;
}

// What a token says, for a person, and what to look at. Reasons: docs/access-log.md.
struct Meaning {
  std::string_view reason, text;
};
constexpr Meaning kMeanings[] = {
    {"no_route", "No route of the configuration matches the call's path, authority and metadata."},
    {"no_endpoint", "The cluster had no endpoint that may take a call: `sluicectl endpoints CLUSTER --why`."},
    {"connect_failed", "The endpoint could not be connected to: is it running, and is this its address?"},
    {"connect_timeout", "The endpoint did not answer the connection in connect_timeout: is it reachable?"},
    {"connection_lost", "The endpoint's connection ended under the call: did it restart or crash?"},
    {"connection_ended",
     "The endpoint's connection ended in good order under the call: by age_grace, or by its server."},
    {"poison_call",
     "Connections are lost wherever the call goes: it may be what ends them. Look at the backend's log."},
    {"pending_timeout", "The endpoint's connections had no room for the call: how many streams does its server allow?"},
    {"upstream_reset", "The endpoint gave the call up with an error of HTTP/2; its own log may say why."},
    {"upstream_refused", "The endpoint refused the call in good order, as one does that shuts down or is full."},
    {"upstream_protocol", "The endpoint's answer broke HTTP/2 or gRPC; is it a gRPC server?"},
    {"upstream_no_status", "The endpoint ended its answer without a gRPC status."},
    {"upstream_cancelled", "The endpoint cancelled the call."},
    {"upstream_overloaded", "The endpoint said that it gets too much (ENHANCE_YOUR_CALM)."},
    {"upstream_stalled", "The endpoint took nothing, or sent nothing that it owed, for too long."},
    {"try_timeout", "The last attempt took longer than the route's per_try_timeout."},
    {"cancelled", "The client went away before the answer was complete."},
    {"queue_full", "A queue with a bound was full."},
    {"rate_limited", "A limit on calls a second had no token, and its queue no room: `sluicectl limits`."},
    {"concurrency_limited", "A limit on calls under way had no permit, and its queue no room: `sluicectl limits`."},
    {"queue_time", "It waited at a limit as long as `queue_time` lets a call, or would have: `sluicectl limits`."},
    {"deadline_too_near", "What was left of its deadline was too little for the wait at a limit and the service."},
    {"too_many_clients", "More clients call than `clients_max` of the route's client_rate_limit."},
    {"memory_limited", "The daemon holds as much memory as it may (memory.buffered_bytes_max)."},
    {"draining", "The daemon or the endpoint was going away."},
    {"fault_injected", "An operator has asked for the failure: `sluicectl fault list` shows which are in force."},
    {"loop",
     "The call has passed 16 proxies: an endpoint leads back to a listener of this daemon or of one before it."},
    {"malformed_request", "The client's request broke gRPC or HTTP/2."},
    {"too_large", "Headers or metadata were above a limit."},
};

// Of a deadline it depends on where the time went.
std::string MeaningOfDeadline(const FailedCall& call) {
  if (!call.limit().empty()) {
    return "Its time ran out in the queue of the limit " + call.limit() +
           ": more calls come than it lets through (`sluicectl limits`).";
  }
  if (call.has_response_us()) {
    return "Endpoint " + call.endpoint() + " had begun to answer, and had not finished in time.";
  }
  if (call.has_sent_us()) {
    return "Endpoint " + call.endpoint() + " had the request for " + Millis(call.total_us() - call.sent_us()) +
           " and did not answer.";
  }
  if (call.attempts() > 0) return "No connection to endpoint " + call.endpoint() + " was there in time.";
  return "Its time ran out before it was sent to an endpoint.";
}

std::string MeaningOf(const FailedCall& call) {
  if (call.reason() == "deadline") return MeaningOfDeadline(call);
  for (const Meaning& meaning : kMeanings) {
    if (meaning.reason == call.reason()) return std::string(meaning.text);
  }
  if (!call.reason().empty()) return "";
  if (!call.endpoint().empty()) {
    return "Endpoint " + call.endpoint() + " itself answered so; the daemon passed it on.";
  }
  return "It was answered so from the cache.";
}

std::string Row(const std::string& name, const std::string& text) {
  return "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + text + "\n";
}

// "e1:connect_failed:1.200ms": the end names no colon, the endpoint may.
std::string TryRow(size_t number, const std::string& text) {
  const size_t took = text.rfind(':');
  const size_t end = took == text.npos || took == 0 ? text.npos : text.rfind(':', took - 1);
  const std::string name = "attempt " + std::to_string(number);
  if (end == text.npos) return Row(name, text);
  return Row(name, "at " + text.substr(0, end) + ": " + text.substr(end + 1, took - end - 1) + " after " +
                       text.substr(took + 1));
}

std::string Phases(const FailedCall& call) {
  std::string out;
  for (const std::string& wait : Split(call.waited(), ',')) {
    const size_t is = wait.rfind('=');
    out += Row("waited", is == wait.npos ? wait : wait.substr(is + 1) + " for the limit " + wait.substr(0, is));
  }
  size_t number = 0;
  for (const std::string& attempt : Split(call.tries(), ',')) out += TryRow(++number, attempt);
  const std::string last = number > 0 ? "the last attempt's request" : "the request";
  if (call.attempts() > 0 && number == 0) out += Row("attempt 1", "at " + call.endpoint());
  if (call.attempts() == 0) out += Row("attempts", "none: it was sent to no endpoint");
  if (call.connecting_us() > 0) {
    out += Row("connecting", Millis(call.connecting_us()) + " until a connection to " + call.endpoint() +
                                 (call.has_sent_us() ? " had room" : " was given up"));
  }
  if (call.has_sent_us())
    out += Row("sent",
               last + " went to " + call.endpoint() + " " + Millis(call.sent_us()) + " after the call's first byte");
  if (call.has_response_us()) {
    out += Row("answered", "the response began after " + Millis(call.response_us()));
  } else if (call.has_sent_us()) {
    out += Row("answered", "no response began");
  }
  return out + Row("ended", "after " + Millis(call.total_us()) + ", " + std::to_string(call.request_bytes()) +
                                " bytes in, " + std::to_string(call.response_bytes()) + " bytes out");
}

}  // namespace

std::string PrintWhy(const FailedCall& call) {
  std::string out = call.path() + " failed with " + call.status() + ", " + Ago(call.ended_ago_ms()) + " ago\n";
  if (const std::string meaning = MeaningOf(call); !meaning.empty()) out += meaning + "\n";
  out += "\n" + Row("call id", call.call_id());
  if (!call.request_id().empty()) out += Row("request id", call.request_id());
  out += Row("client", call.peer() + (call.client().empty() ? "" : " (" + call.client() + ")"));
  out += Row("authority", call.authority());
  out += Row("route", call.route().empty() ? "none matched" : call.route() + ", cluster " + call.cluster());
  if (!call.cache().empty()) out += Row("cache", call.cache());
  out += "\n" + Phases(call);
  if (call.reason().empty()) return call.message().empty() ? out : out + "\n" + Row("message", call.message());
  out += "\n" + Row("reason", call.reason()) + Row("message", call.message());
  if (!call.limit().empty()) out += Row("limit", call.limit());
  return out + Row("processed", call.processed() == "no" ? "no: no backend has worked on it; it may be made again"
                                                         : "maybe: a backend may have worked on it");
}

std::string PrintFailedCalls(const admin::v1::ListFailedCallsResponse& calls) {
  if (calls.kept() == 0) return "no failed calls are kept: insight.failed_calls is 0\n";
  std::vector<std::vector<std::string>> rows{
      {"CALL ID", "AGO", "STATUS", "REASON", "CLUSTER", "ENDPOINT", "TRIES", "TOTAL", "PATH"}};
  for (const FailedCall& call : calls.calls()) {
    rows.push_back({call.call_id(), Ago(call.ended_ago_ms()), call.status(),
                    call.reason().empty() ? "-" : call.reason(), call.cluster().empty() ? "-" : call.cluster(),
                    call.endpoint().empty() ? "-" : call.endpoint(), std::to_string(call.attempts()),
                    Millis(call.total_us()), call.path()});
  }
  std::string out = calls.calls().empty() ? "no call has failed since the start\n"
                                          : Table(rows, {false, true, false, false, false, false, true, true, false});
  if (calls.left_out() > 0) {
    out += std::to_string(calls.left_out()) +
           " more were only counted: there were over 100 refused or cancelled ones a second on a worker\n";
  }
  return out;
}

std::string NoSuchCall(const admin::v1::ListFailedCallsResponse& calls, const std::string& id) {
  if (calls.kept() == 0) return "no failed calls are kept: insight.failed_calls is 0";
  const size_t dash = id.find('-');
  if (dash == 8 && id.compare(0, dash, calls.process()) != 0) {
    return "no failed call " + id + ": ids of this process begin with " + calls.process() +
           "-, so it is of another daemon or of one before a restart";
  }
  return "no failed call " + id + " is there: the last " + std::to_string(calls.kept()) +
         " are kept of each worker and kind (insight.failed_calls), of " + std::to_string(calls.failed()) +
         " since the start; the access log has the others as call_id";
}

}  // namespace sluice::ctl
