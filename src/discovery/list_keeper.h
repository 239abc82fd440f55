// ListKeeper: which of the lists that a source gives is put in force, and when. A value: it is told answers and the
// time; it has no sockets, tasks or locks.
//
//                              a list, soon            in force
//        waiting  ------------------------------> due ----------> current
//           |                                     ^ ^               |
//           | no endpoints                        | | seen again    | no endpoints, or a list that moves too much
//           +-----------> held -------------------+ +-- unconfirmed <
//                          empty_after has passed
//
// From every state: failed answers change nothing but the view, and what is held or unconfirmed is seen for the first
// time again after them. From due: `refused`, if the list cannot be put in force (too many endpoints, say), and
// `overridden`, while a list by RPC is in force. From everywhere a new list that may be taken at once leads to due, and
// so does Again.
//
// Bad news is believed slowly, good news at once: an empty list, and one that would move more of the keys than
// moved_max, are what a source says that has lost its data, or of which a part is away.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "discovery/list.h"
#include "discovery/list_sink.h"
#include "discovery/options.h"
#include "discovery/view.h"

namespace sluice::discovery {

struct KeeperView {
  KeeperState state = KeeperState::kWaiting;
  // It has had a list, or an answer that there is none and that was believed.
  bool had_list = false;
  // When the source gave an answer last; when a list was put in force last. Unset: not by this process.
  std::optional<base::TimePoint> answered_at{}, changed_at{};
  // Why the last answer is not in force, or is none; empty: it is in force.
  std::string error{};
};

class ListKeeper {
 public:
  // Lists are put in force at least so far apart: those found meanwhile are merged.
  static constexpr base::Nanos kMerge = std::chrono::milliseconds(50);
  // Between the two sights of a list that moves much; between attempts at one that came to kLater. With it and the time
  // of a question, a record of the DNS that is replaced is followed within its time to live and a second.
  static constexpr base::Nanos kConfirm = std::chrono::milliseconds(800);

  // `in_force`: the list that the source gave to the process before this one; null: it has given none yet. Sorted,
  // unless options.ordered.
  ListKeeper(const DiscoveryOptions& options, std::shared_ptr<const List> in_force);

  // Answers of the source. The list is sorted, unless options.ordered.
  void Found(std::shared_ptr<const List> list, base::TimePoint now);
  void Failed(std::string error, base::TimePoint now);
  // The list found last is the source's still.
  void Confirmed(base::TimePoint now) { view_.answered_at = now; }

  // The list to be put in force now, of which `moved_max` of the keys may move; null: none. PutDone is to follow.
  std::shared_ptr<const List> Due(base::TimePoint now) const;
  double moved_max() const;
  void PutDone(const PutResult& result, base::TimePoint now);
  // What is in force may not be what PutDone has told any more, or what was refused might be taken now: a list by RPC
  // has come or gone, or the configuration has changed. The list is put once more.
  void Again(base::TimePoint now);

  // When Due is to be asked again; kNever.
  base::TimePoint due_at() const { return view_.state == KeeperState::kDue ? due_at_ : base::kNever; }
  // No list is due before.
  base::TimePoint merged_until() const { return merged_until_; }
  // When the source is to be asked again, though nothing has told of a change; kNever.
  base::TimePoint ask_at() const;

  const KeeperView& view() const { return view_; }

 private:
  void Change(KeeperState state, std::string error = {});
  void SetErrors(std::string of_answer, std::string of_state);
  void Take(base::TimePoint now);

  const DiscoveryOptions options_;
  KeeperView view_;
  // The source's list that was put in force last; null while one of another origin is. And its last answer.
  std::shared_ptr<const List> in_force_, found_;
  bool certain_ = true;       // in_force_ is in force, as far as is known
  bool interrupted_ = false;  // the last answer has failed
  bool seen_twice_ = false;   // found_ may move what it will
  std::string answer_error_, state_error_;
  std::optional<base::TimePoint> empty_since_, unconfirmed_since_;
  base::TimePoint due_at_{}, merged_until_{}, ask_not_before_{};
};

}  // namespace sluice::discovery
