// StreamTeller: what the log says of the stream to the control plane: a line when that has changed for good, none where
// a stream ends and the next one begins, as servers and balancers do that let no connection grow old. A value: it is
// told what happens, and the time.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace sluice::discovery {

class StreamTeller {
 public:
  // Without a stream that stands for so long, the server is away.
  static constexpr base::Nanos kAwayAfter = std::chrono::seconds(5);
  // From a line to the next one that says that it is away, or that another server is asked.
  static constexpr base::Nanos kBetween = std::chrono::minutes(5);

  struct Line {
    bool well = false;
    std::string text;
  };

  // A stream stands: its server speaks. May be said again and again.
  void Stands(const std::string& server, base::TimePoint now) {
    if (state_ == State::kStands && server == server_) return;
    Enter(State::kStands, server, now);
  }
  // A stream has ended, or could not be begun.
  void Ended(const std::string& server, std::string why, base::TimePoint now) {
    Enter(State::kAway, server, state_ == State::kAway ? since_ : now);
    why_ = std::move(why);
  }
  // None is wanted.
  void Rest() { state_ = State::kNone; }

  // When Take has a line; kNever.
  base::TimePoint due_at() const {
    const bool another = state_ == State::kStands && server_ != told_server_;
    if (state_ == State::kNone || (state_ == told_ && !another)) return base::kNever;
    if (state_ == State::kStands && told_ != State::kStands) return since_;
    const base::TimePoint at = state_ == State::kAway ? base::DeadlineAfter(since_, kAwayAfter) : since_;
    return told_at_ ? std::max(at, base::DeadlineAfter(*told_at_, kBetween)) : at;
  }
  std::optional<Line> Take(base::TimePoint now) {
    if (now < due_at()) return std::nullopt;
    told_ = state_;
    told_server_ = server_;
    told_at_ = now;
    if (state_ == State::kStands) return Line{true, server_ + " has answered"};
    return Line{false, "no stream to " + server_ + ": " + why_};
  }

 private:
  enum class State { kNone, kStands, kAway };
  void Enter(State state, const std::string& server, base::TimePoint since) {
    state_ = state;
    server_ = server;
    since_ = since;
  }

  State state_ = State::kNone, told_ = State::kNone;
  std::string server_, why_, told_server_;
  base::TimePoint since_{};
  std::optional<base::TimePoint> told_at_;
};

}  // namespace sluice::discovery
