// Routes, and what would become of a call, as messages.
#include "admin/convert.h"
#include "base/visible_text.h"

namespace sluice::admin {
namespace {

template <typename Messages>
void AddAll(const std::vector<std::string>& texts, Messages* messages) {
  for (const std::string& text : texts) messages->Add(base::VisibleText(text));
}

const char* ToString(CallExplanation::Gate::Verdict verdict) {
  switch (verdict) {
    case CallExplanation::Gate::Verdict::kPasses:
      return "passes";
    case CallExplanation::Gate::Verdict::kRefuses:
      return "refuses";
    case CallExplanation::Gate::Verdict::kDepends:
      break;
  }
  return "depends";
}

}  // namespace

void ToMessage(const RouteView& view, v1::Route& message) {
  message.set_name(view.name);
  AddAll(view.listeners, message.mutable_listeners());
  message.set_authority(view.authority);
  message.set_path(view.path);
  message.set_exact(view.exact);
  AddAll(view.metadata, message.mutable_metadata());
  AddAll(view.gates, message.mutable_gates());
  AddAll(view.limits, message.mutable_limits());
  for (const RouteView::Cluster& cluster : view.clusters) {
    v1::RouteCluster& one = *message.add_clusters();
    one.set_name(cluster.name);
    one.set_weight(cluster.weight);
  }
  message.set_failover(view.failover);
  message.set_mirror(view.mirror);
  message.set_hash_by(view.hash_by);
  message.set_cached_methods(view.cached_methods);
  message.set_retry(view.retry);
  message.set_timeout_ms(static_cast<uint64_t>(view.timeout.count()));
}

void ToMessage(const CallExplanation& view, v1::GetExplanationResponse& message) {
  message.set_listener(view.listener);
  message.set_path(base::VisibleText(view.path));
  message.set_authority(base::VisibleText(view.authority));
  for (const CallExplanation::Passed& passed : view.passed) {
    v1::PassedRoute& one = *message.add_passed();
    one.set_route(passed.route);
    one.set_why(base::VisibleText(passed.why));
  }
  if (view.route) ToMessage(*view.route, *message.mutable_route());
  for (const CallExplanation::Gate& gate : view.gates) {
    v1::GateAnswer& one = *message.add_gates();
    one.set_name(gate.name);
    one.set_verdict(ToString(gate.verdict));
    one.set_why(base::VisibleText(gate.why));
  }
  message.set_cluster(view.cluster);
  message.set_cluster_why(base::VisibleText(view.cluster_why));
  message.set_endpoint(view.endpoint);
  message.set_endpoint_why(base::VisibleText(view.endpoint_why));
  message.set_may_cache(view.cache.may);
  message.set_cache_why(view.cache.why);
  message.set_may_repeat(view.repeat.may);
  message.set_repeat_why(view.repeat.why);
  if (!view.refusal) return;
  v1::CallRefusal& refusal = *message.mutable_refusal();
  refusal.set_status(view.refusal->status);
  refusal.set_http_status(view.refusal->http_status);
  refusal.set_reason(view.refusal->reason);
  refusal.set_message(base::VisibleText(view.refusal->message));
}

base::Result<CallQuestion> ToQuestion(const v1::GetExplanationRequest& request) {
  if (request.metadata_size() > kExplainedMetadataMax) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "at most " + std::to_string(kExplainedMetadataMax) +
                                                                  " metadata entries, not " +
                                                                  std::to_string(request.metadata_size()));
  }
  CallQuestion question;
  question.path = request.path();
  for (const v1::CallMetadata& one : request.metadata()) question.metadata.emplace_back(one.name(), one.value());
  question.listener = request.listener();
  question.authority = request.authority();
  if (request.has_content_type()) question.type = request.content_type();
  return question;
}

}  // namespace sluice::admin
