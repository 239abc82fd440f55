#include "discovery/etcd/etcd_source.h"

#include <algorithm>
#include <utility>

#include "runtime/blocking_call.h"
#include "runtime/worker.h"

namespace sluice::discovery {

using base::TimePoint;
using State = EtcdSession::State;

EtcdSource::EtcdSource(const EtcdOptions& options, EtcdList::ParseValue parse, uint64_t seed, Bell& bell)
    : options_(options),
      bell_(bell),
      random_(seed),
      next_server_(random_.Below(options_.servers.size())),
      list_(std::make_shared<EtcdList>(options_.prefix, std::move(parse))),
      errors_(options_.servers.size()) {}

void EtcdSource::Ask() {
  asked_ = true;
  if (current_.session != nullptr) current_.session->ListAgain(runtime::Worker::Current()->now());
}

// Its list is up to date as long as it watches: whether it still does is what can be asked.
void EtcdSource::Hurry() {
  if (current_.session != nullptr) current_.session->Prod(runtime::Worker::Current()->now());
}

runtime::Task<Answer> EtcdSource::Next(TimePoint until) {
  for (bool waited = false;; waited = true) {
    TimePoint now = runtime::Worker::Current()->now();
    LookAtSessions(now);
    // Before another server makes it obsolete.
    if (std::optional<Answer> error = TakeError()) co_return std::move(*error);
    if (const std::optional<size_t> server = ServerToTry(now)) {
      runtime::Task<void> attempt = Try(*server);
      co_await std::move(attempt);
      now = runtime::Worker::Current()->now();
      LookAtSessions(now);
    }
    if (batch_ && now >= batch_at_) {
      runtime::Task<std::optional<Answer>> take = TakeBatch();
      std::optional<Answer> answer = co_await std::move(take);
      if (answer) co_return std::move(*answer);
      continue;
    }
    if (std::optional<Answer> error = TakeError()) co_return std::move(*error);
    if (now >= confirm_at_ && current_.session != nullptr && current_.session->well()) {
      confirm_at_ = base::DeadlineAfter(now, kConfirm);
      co_return Answer(Unchanged());
    }
    if (waited || now >= until) co_return Answer();
    co_await bell_.Wait(std::min(until, LookAt(now)));
  }
}

void EtcdSource::LookAtSessions(TimePoint now) {
  if (EtcdSession* session = current_.session.get()) {
    session->Look(now);
    if (session->state() == State::kEnded) {
      Failed(current_.server, session->error());
      // One that has watched for a while was well; the next one is begun at once.
      if (now >= base::DeadlineAfter(promoted_at_, kWellAfter)) {
        backoff_.Reset();
        refused_.Reset();
        attempt_at_ = now;
      } else {
        attempt_at_ = base::DeadlineAfter(now, refused_.Next(random_));
      }
      current_.session.reset();
    } else if (session->silent(now)) {
      if (!std::exchange(told_silent_, true)) {
        Failed(current_.server, "says nothing");
        backoff_.Reset();
        attempt_at_ = now;
      }
    } else if (std::exchange(told_silent_, false)) {
      Ask();  // the error is over when there is an answer
      attempts_.clear();
    } else if (now >= list_again_at_) {
      list_again_at_ = base::kNever;
      session->ListAgain(now);
    }
  }
  for (size_t i = 0; i < attempts_.size();) {
    EtcdSession& session = *attempts_[i].session;
    session.Look(now);
    if (session.state() == State::kWatching) return Promote(i, now);
    if (session.state() == State::kEnded) {
      Failed(attempts_[i].server, session.error());
      if (session.refused()) attempt_at_ = std::max(attempt_at_, base::DeadlineAfter(now, refused_.Next(random_)));
      attempts_.erase(attempts_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (!batch_ && current_.session != nullptr) batch_ = current_.session->Take();
}

void EtcdSource::Promote(size_t attempt, TimePoint now) {
  current_ = std::move(attempts_[attempt]);
  attempts_.clear();
  told_silent_ = false;
  promoted_at_ = now;
  batch_ = current_.session->Take();
}

// One that is connected has its time to answer; meanwhile others are tried.
std::optional<size_t> EtcdSource::ServerToTry(TimePoint now) const {
  if (now < attempt_at_ || (current_.session != nullptr && !current_.session->silent(now))) return std::nullopt;
  for (size_t i = 0; i < options_.servers.size(); ++i) {
    const size_t server = (next_server_ + i) % options_.servers.size();
    const bool waits = std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
      return attempt.server == server && attempt.session->connected();
    });
    if (!waits) return server;
  }
  return std::nullopt;
}

// Files are read, and certificates parsed, on a helper thread.
runtime::Task<void> EtcdSource::Try(size_t server) {
  runtime::BlockingCall open([options = options_, server] { return EtcdAccess::Open(options, server); });
  std::optional<base::Result<EtcdAccess>> access = co_await open;
  const TimePoint now = runtime::Worker::Current()->now();
  attempt_at_ = base::DeadlineAfter(now, backoff_.Next(random_));
  if (!access) co_return;
  next_server_ = (server + 1) % options_.servers.size();
  if (!access->ok()) {
    Failed(server, access->error().detail);
    co_return;
  }
  if (attempts_.size() >= kAttemptsMax) {
    const auto stuck = std::find_if(attempts_.begin(), attempts_.end(),
                                    [](const Attempt& attempt) { return !attempt.session->connected(); });
    attempts_.erase(stuck != attempts_.end() ? stuck : attempts_.begin());
  }
  attempts_.push_back({server, std::make_unique<EtcdSession>(std::move(**access), options_.prefix, bell_, now)});
}

runtime::Task<std::optional<Answer>> EtcdSource::TakeBatch() {
  const auto batch = std::make_shared<EtcdSession::Batch>(std::move(*batch_));
  batch_.reset();
  runtime::BlockingCall apply([list = list_, batch] {
    if (batch->whole) list->Begin();
    list->Apply(batch->changes);
    return list->Make();
  });
  std::optional<base::Result<List>> made = co_await apply;
  const TimePoint now = runtime::Worker::Current()->now();
  if (!made) {
    batch_ = std::move(*batch);
    batch_at_ = base::DeadlineAfter(now, kBusy);
    co_return std::nullopt;
  }
  batch_at_ = base::DeadlineAfter(now, kMerge);
  list_again_at_ = list_->overflown() ? base::DeadlineAfter(now, kOverflow) : base::kNever;
  std::fill(errors_.begin(), errors_.end(), std::string());
  told_error_.clear();
  asked_ = false;
  Answer answer = Believed(std::move(*made), *batch);
  const bool list = std::holds_alternative<List>(answer) && !lost_;
  confirm_at_ = list ? base::DeadlineAfter(now, kConfirm) : base::kNever;
  co_return answer;
}

// A server that has lost its data has no endpoints, and a revision or a cluster of its own. It says so once, which the
// keeper holds; after that it is an error, however long it lasts: that is no fleet that was taken down.
Answer EtcdSource::Believed(base::Result<List> list, const EtcdSession::Batch& batch) {
  if (!list.ok()) return Answer(list.error().detail);
  const bool another = newest_.cluster != 0 && batch.header.cluster != newest_.cluster;
  const bool first = !lost_;
  if (!list->empty()) {
    lost_ = false;
  } else if (another || batch.header.revision < newest_.revision) {
    lost_ = true;
  }
  if (!lost_) {
    newest_ = batch.header;
    return Answer(std::move(*list));
  }
  if (first) return Answer(std::move(*list));
  return Answer(
      "etcd has lost its data: " + std::string(another ? "another cluster answers" : "its revision went back") +
      ", and there is no key below " + options_.prefix + "; the last list stays until there is one");
}

void EtcdSource::Failed(size_t server, std::string error) { errors_[server] = std::move(error); }

// What is wrong with each server, when that is news.
std::optional<Answer> EtcdSource::TakeError() {
  std::string error;
  for (size_t i = 0; i < errors_.size(); ++i) {
    if (!errors_[i].empty()) error += (error.empty() ? "" : "; ") + options_.servers[i] + ": " + errors_[i];
  }
  const bool working = current_.session != nullptr && !told_silent_;
  if (error.empty() || working || (error == told_error_ && !asked_)) return std::nullopt;
  told_error_ = error;
  asked_ = false;
  return Answer(std::move(error));
}

TimePoint EtcdSource::LookAt(TimePoint now) const {
  const bool hears = current_.session != nullptr && !current_.session->silent(now);
  TimePoint at = batch_ ? batch_at_ : hears ? list_again_at_ : base::kNever;
  if (current_.session != nullptr) at = std::min(at, current_.session->look_at(now));
  if (confirm_at_ > now) at = std::min(at, confirm_at_);
  const TimePoint try_at = std::max(now, attempt_at_);
  if (ServerToTry(try_at)) at = std::min(at, try_at);
  for (const Attempt& attempt : attempts_) at = std::min(at, attempt.session->look_at(now));
  return at;
}

}  // namespace sluice::discovery
