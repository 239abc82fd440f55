#include "discovery/list_keeper.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice::discovery {

using base::TimePoint;

std::string_view ToString(KeeperState state) {
  switch (state) {
    case KeeperState::kWaiting:
      return "waiting";
    case KeeperState::kDue:
      return "due";
    case KeeperState::kCurrent:
      return "current";
    case KeeperState::kHeld:
      return "held";
    case KeeperState::kUnconfirmed:
      return "unconfirmed";
    case KeeperState::kRefused:
      return "refused";
    case KeeperState::kOverridden:
      return "overridden";
  }
  return "waiting";
}

ListKeeper::ListKeeper(const DiscoveryOptions& options, std::shared_ptr<const List> in_force)
    : options_(options), in_force_(std::move(in_force)) {
  view_.had_list = in_force_ != nullptr;
}

void ListKeeper::SetErrors(std::string of_answer, std::string of_state) {
  answer_error_ = std::move(of_answer);
  state_error_ = std::move(of_state);
  view_.error = answer_error_.empty() ? state_error_ : answer_error_;
}

void ListKeeper::Change(KeeperState state, std::string error) {
  view_.state = state;
  SetErrors(std::move(answer_error_), std::move(error));
}

void ListKeeper::Found(std::shared_ptr<const List> list, TimePoint now) {
  const bool same = found_ != nullptr && *list == *found_;
  view_.answered_at = now;
  found_ = std::move(list);
  SetErrors({}, std::move(state_error_));
  // A source that could not be heard in between has not said it all the time.
  if (std::exchange(interrupted_, false)) {
    if (empty_since_) empty_since_ = now;
    if (unconfirmed_since_) unconfirmed_since_ = now;
  }
  const KeeperState state = view_.state;
  if (state == KeeperState::kOverridden) return;
  // It would be refused again, or is due already, or it is too early for the second sight.
  if (same && (state == KeeperState::kRefused || state == KeeperState::kDue)) return;
  if (same && state == KeeperState::kUnconfirmed && now < base::DeadlineAfter(*unconfirmed_since_, kConfirm)) return;
  Take(now);
}

void ListKeeper::Failed(std::string error, TimePoint now) {
  SetErrors(std::move(error), std::move(state_error_));
  interrupted_ = true;
  ask_not_before_ = base::DeadlineAfter(now, kConfirm);
}

void ListKeeper::Take(TimePoint now) {
  if (certain_ && in_force_ != nullptr && *in_force_ == *found_) {
    empty_since_.reset();
    unconfirmed_since_.reset();
    return Change(KeeperState::kCurrent);
  }
  if (!found_->empty()) {
    empty_since_.reset();
  } else {
    if (!empty_since_) empty_since_ = now;
    unconfirmed_since_.reset();  // a list behind it is seen for the first time
    if (now < base::DeadlineAfter(*empty_since_, options_.empty_after))
      return Change(KeeperState::kHeld, "the source has no endpoints; that is believed after " +
                                            std::to_string(options_.empty_after.count()) + " ms");
  }
  seen_twice_ = found_->empty() || (unconfirmed_since_ && now >= base::DeadlineAfter(*unconfirmed_since_, kConfirm));
  due_at_ = std::max(now, merged_until_);
  Change(KeeperState::kDue);
}

std::shared_ptr<const List> ListKeeper::Due(TimePoint now) const {
  return view_.state == KeeperState::kDue && now >= due_at_ ? found_ : nullptr;
}

double ListKeeper::moved_max() const {
  const bool nothing_to_lose = in_force_ == nullptr || in_force_->empty();
  return seen_twice_ || nothing_to_lose ? 1 : options_.moved_max;
}

void ListKeeper::PutDone(const PutResult& result, TimePoint now) {
  merged_until_ = base::DeadlineAfter(now, kMerge);
  switch (result.kind) {
    case PutResult::Kind::kDone:
      in_force_ = found_;
      certain_ = true;
      view_.had_list = true;
      if (result.changed) view_.changed_at = now;
      empty_since_.reset();
      unconfirmed_since_.reset();
      return Change(KeeperState::kCurrent);
    case PutResult::Kind::kMovesTooMuch:
      if (!unconfirmed_since_) unconfirmed_since_ = now;
      return Change(KeeperState::kUnconfirmed,
                    "a list would move " + std::to_string(std::lround(result.moved * 100)) +
                        "% of the keys, more than moved_max; it is taken if the source says so again");
    case PutResult::Kind::kOverridden:
      in_force_.reset();
      view_.had_list = true;  // the source has answered, and a list is in force
      return Change(KeeperState::kOverridden, "a list by RPC is in force");
    case PutResult::Kind::kRefused:
      return Change(KeeperState::kRefused, result.error);
    case PutResult::Kind::kLater:
      due_at_ = base::DeadlineAfter(now, kConfirm);
      return Change(KeeperState::kDue, result.error);
  }
}

void ListKeeper::Again(TimePoint now) {
  certain_ = false;
  // No answer of the source: these two go by its answers alone, and are asked for in time.
  if (view_.state == KeeperState::kHeld || view_.state == KeeperState::kUnconfirmed) return;
  if (found_ != nullptr)
    Take(now);
  else if (view_.state == KeeperState::kOverridden)
    Change(KeeperState::kWaiting);
}

TimePoint ListKeeper::ask_at() const {
  if (view_.state == KeeperState::kHeld)
    return std::max(ask_not_before_, base::DeadlineAfter(*empty_since_, options_.empty_after));
  if (view_.state == KeeperState::kUnconfirmed)
    return std::max(ask_not_before_, base::DeadlineAfter(*unconfirmed_since_, kConfirm));
  return base::kNever;
}

}  // namespace sluice::discovery
