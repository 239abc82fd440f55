#include "discovery/etcd/etcd_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "discovery/etcd/etcd_list.h"

namespace sluice::discovery {

using base::TimePoint;

EtcdSession::EtcdSession(EtcdAccess access, std::string prefix, Bell& bell, TimePoint now)
    : access_(std::move(access)), prefix_(std::move(prefix)), prefix_end_(EtcdRangeEnd(prefix_)), bell_(bell) {
  if (access_.user.empty())
    List(now);
  else
    Authenticate(now);
}

void EtcdSession::End(std::string error, bool refused) {
  state_ = State::kEnded;
  refused_ = refused;
  error_ = std::move(error);
  call_.reset();
  watch_.reset();
  prodded_at_.reset();
}

void EtcdSession::Authenticate(TimePoint now) {
  state_ = State::kAuthenticating;
  watch_.reset();
  prodded_at_.reset();
  token_.clear();
  token_worked_ = false;
  call_.emplace(access_.channel, kEtcdAuthenticate, std::string(),
                EtcdAuthenticateRequest(access_.user, access_.password), bell_, now);
}

void EtcdSession::List(TimePoint now) {
  state_ = State::kListing;
  watch_.reset();
  prodded_at_.reset();
  list_again_ = false;
  batch_ = {.whole = true};
  complete_ = fragment_ = false;
  revision_ = 0;
  keys_listed_ = 0;
  next_key_ = prefix_;
  AskForPage(now);
}

void EtcdSession::AskForPage(TimePoint now) {
  call_.emplace(access_.channel, kEtcdRange, token_, EtcdRangeRequest(next_key_, prefix_end_, revision_, kPageKeys),
                bell_, now);
}

void EtcdSession::Watch(TimePoint now) {
  state_ = State::kWatching;
  heard_at_ = now;
  behind_at_.reset();
  RpcStream::Options options = EtcdCall::OptionsOf(kEtcdWatch, token_);
  // A member without a leader says so, instead of nothing.
  options.metadata.emplace_back("hasleader", "true");
  watch_.emplace(access_.channel, options, bell_);
  watch_->Send(EtcdWatchRequest(prefix_, prefix_end_, revision_ + 1));
}

void EtcdSession::Look(TimePoint now) {
  // An answer may lead to a further call, which may be answered already.
  while (call_ && state_ != State::kEnded) {
    std::optional<EtcdCall::Outcome> outcome = call_->Look(now);
    if (!outcome) return;
    call_.reset();
    OnAnswer(std::move(*outcome), now);
  }
  if (state_ == State::kWatching) LookAtWatch(now);
}

void EtcdSession::OnAnswer(EtcdCall::Outcome outcome, TimePoint now) {
  if (!outcome.ok()) return OnFailure(outcome, now);
  if (state_ == State::kAuthenticating) {
    std::optional<std::string> token = ParseEtcdToken(outcome.answer);
    if (!token || token->empty()) return End("Authenticate is answered without a token");
    token_ = std::move(*token);
    return List(now);
  }
  std::optional<EtcdPage> page = ParseEtcdPage(outcome.answer);
  if (!page) return End("Range is answered by what is no RangeResponse");
  token_worked_ = true;
  OnPage(std::move(*page), now);
}

void EtcdSession::OnFailure(const EtcdCall::Outcome& outcome, TimePoint now) {
  if (outcome.token_expired() && token_worked_) return Retry(&EtcdSession::Authenticate, outcome.error, now);
  if (outcome.compacted() && state_ == State::kListing && revision_ > 0)
    return Retry(&EtcdSession::List, outcome.error, now);
  End(outcome.error, !outcome.away());
}

// A server that always says the same is left.
void EtcdSession::Retry(void (EtcdSession::*from)(TimePoint), const std::string& why, TimePoint now) {
  if (++setbacks_ > kSetbacksMax) return End(why);
  (this->*from)(now);
}

// What another cluster says does not go on from what this one said.
bool EtcdSession::Belongs(const EtcdHeader& header) {
  if (cluster_ == 0) cluster_ = header.cluster;
  if (header.cluster == cluster_) return true;
  End("another cluster answers now", false);
  return false;
}

void EtcdSession::OnPage(EtcdPage page, TimePoint now) {
  if (!Belongs(page.header)) return;
  if (revision_ == 0) revision_ = page.header.revision;
  if (revision_ <= 0) return End("Range is answered without a revision");
  batch_.header = {page.header.cluster, revision_};
  keys_listed_ += page.keys.size();
  // Pages must go on; one key too many says enough.
  const bool more = page.more && !page.keys.empty() && keys_listed_ <= EtcdList::kKeysMax;
  if (more) {
    if (page.keys.back().key < next_key_) return End("Range is answered by keys that were not asked for");
    next_key_ = page.keys.back().key + '\0';
  }
  Add(std::move(page.keys));
  if (more) return AskForPage(now);
  complete_ = true;
  Watch(now);
}

void EtcdSession::Add(std::vector<EtcdChange> changes) {
  if (batch_.changes.empty())
    batch_.changes = std::move(changes);
  else
    std::move(changes.begin(), changes.end(), std::back_inserter(batch_.changes));
}

void EtcdSession::LookAtWatch(TimePoint now) {
  for (int i = 0; i < kMessagesPerLook && state_ == State::kWatching; ++i) {
    std::optional<std::string> message = watch_->Take();
    if (!message) break;
    heard_at_ = now;
    prodded_at_.reset();
    std::optional<EtcdNews> news = ParseEtcdNews(*message);
    if (!news) return End("Watch is answered by what is no WatchResponse");
    OnNews(std::move(*news), now);
    if (i + 1 == kMessagesPerLook) bell_.Ring();
  }
  if (state_ != State::kWatching) return;
  if (const auto end = watch_->end()) {
    if (end->ok()) return End("the watch has ended", false);
    return OnFailure(EtcdCall::OutcomeOf(*end), now);
  }
  if (list_again_ && !fragment_) return List(now);
  if (now >= base::DeadlineAfter(heard_at_, kHeartbeat)) Prod(now);
  if (prodded_at_ && now >= base::DeadlineAfter(*prodded_at_, kSilenceMax))
    End("no sign of life for " + std::to_string(kSilenceMax / std::chrono::seconds(1)) + " s", false);
}

void EtcdSession::OnNews(EtcdNews news, TimePoint now) {
  if (!Belongs(news.header)) return;
  if (news.cancelled) {
    const std::string why = "the watch was cancelled: " + EtcdShown(news.reason);
    if (news.compacted > 0 || news.reason.find("compacted") != news.reason.npos)
      return Retry(&EtcdSession::List, why, now);
    // Of a user: the token is too old, or permissions have changed; a new token shows which.
    if (token_worked_ && !token_.empty()) return Retry(&EtcdSession::Authenticate, why, now);
    return End(why);
  }
  // A revision only grows. The watch may be with another server than the list is from: gRPC sends a stream again that a
  // server has refused while it ended, and the next at this address may have lost its data, or come back without some.
  // It would wait for a revision that is far away, alive and silent. A member that is only behind catches up meanwhile.
  if (news.header.revision >= revision_) {
    behind_at_.reset();
  } else if (!behind_at_) {
    behind_at_ = now;
  } else if (now >= base::DeadlineAfter(*behind_at_, kHeartbeat)) {
    return Retry(&EtcdSession::List, "the watch is behind the list", now);
  }
  setbacks_ = 0;
  revision_ = std::max(revision_, news.header.revision);
  batch_.header = {cluster_, revision_};
  fragment_ = news.fragment;
  Add(std::move(news.changes));
  if (batch_.changes.size() > kChangesMax) return List(now);
  complete_ = !fragment_ && (batch_.whole || !batch_.changes.empty());
}

std::optional<EtcdSession::Batch> EtcdSession::Take() {
  if (!complete_) return std::nullopt;
  complete_ = false;
  return std::exchange(batch_, {});
}

void EtcdSession::ListAgain(TimePoint now) {
  list_again_ = true;
  if (state_ == State::kWatching && !fragment_) List(now);
}

void EtcdSession::Prod(TimePoint now) {
  if (state_ != State::kWatching || prodded_at_) return;
  watch_->Send(EtcdProgressRequest());
  prodded_at_ = now;
}

TimePoint EtcdSession::look_at(TimePoint now) const {
  if (call_) return call_->deadline();
  if (state_ != State::kWatching) return base::kNever;
  if (!prodded_at_) return base::DeadlineAfter(heard_at_, kHeartbeat);
  return base::DeadlineAfter(*prodded_at_, silent(now) ? kSilenceMax : kPatience);
}

}  // namespace sluice::discovery
