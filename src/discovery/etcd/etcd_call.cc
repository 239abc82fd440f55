#include "discovery/etcd/etcd_call.h"

#include <utility>

#include "discovery/etcd/etcd_messages.h"

namespace sluice::discovery {
namespace {

// gRPC's status codes.
constexpr int kCancelled = 1, kUnknown = 2, kDeadlineExceeded = 4, kNotFound = 5, kOutOfRange = 11, kInternal = 13,
              kUnavailable = 14, kUnauthenticated = 16;

std::string Shown(base::Nanos time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

bool EtcdCall::Outcome::token_expired() const {
  return code == kUnauthenticated || error.find("invalid auth token") != error.npos ||
         error.find("revision of auth store is old") != error.npos;
}

bool EtcdCall::Outcome::compacted() const { return code == kOutOfRange; }

bool EtcdCall::Outcome::lease_lost() const { return code == kNotFound; }

bool EtcdCall::Outcome::away() const {
  return code == kUnavailable || code == kDeadlineExceeded || code == kCancelled || code == kUnknown;
}

RpcStream::Options EtcdCall::OptionsOf(std::string_view method, const std::string& token) {
  RpcStream::Options options{std::string(method), {}, {}};
  if (!token.empty()) options.metadata.emplace_back("token", token);
  return options;
}

EtcdCall::Outcome EtcdCall::OutcomeOf(const RpcStream::End& end) { return {end.code, {}, EtcdShown(end.ToString())}; }

EtcdCall::EtcdCall(std::shared_ptr<RpcChannel> channel, std::string_view method, const std::string& token,
                   std::string request, Bell& bell, base::TimePoint now, base::Nanos answer_max)
    : stream_(std::move(channel), OptionsOf(method, token), bell),
      answer_max_(answer_max),
      deadline_(base::DeadlineAfter(now, answer_max)) {
  stream_.Send(std::move(request));
  stream_.SendEnd();
}

std::optional<EtcdCall::Outcome> EtcdCall::Look(base::TimePoint now) {
  if (std::optional<std::string> message = stream_.Take()) {
    if (answer_) return Outcome{kInternal, {}, "more than one answer"};
    answer_ = std::move(message);
    if (stream_.Take()) return Outcome{kInternal, {}, "more than one answer"};
  }
  if (const auto end = stream_.end()) {
    if (!end->ok()) return OutcomeOf(*end);
    if (!answer_) return Outcome{kInternal, {}, "an answer without a message"};
    return Outcome{0, std::move(*answer_), {}};
  }
  if (now < deadline_) return std::nullopt;
  return Outcome{kDeadlineExceeded, {}, "no answer within " + Shown(answer_max_)};
}

}  // namespace sluice::discovery
