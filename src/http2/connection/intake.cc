#include "http2/connection/intake.h"

namespace sluice::http2 {

Intake::~Intake() { worker_.timers().Disarm(*this); }

void Intake::Press() {
  spent_ = true;
  if (pressed_) return;
  pressed_ = true;
  worker_.timers().Arm(*this, base::DeadlineAfter(worker_.now(), kTick));
  worker_.AtIoEnd(*this);
}

bool Intake::TooMany() const { return watch_ != nullptr && watch_->TooManyCalls(); }

bool Intake::Defer(DeferredNode& connection, const CallWatch* watch) {
  watch_ = watch;
  const bool light = connection.IsLight();
  if (turn_ != worker_.now()) taken_ = 0;
  if (taken_ < kTurnCalls && (light || (heavy_.empty() && !TooMany()))) return false;
  (light ? light_ : heavy_).PushBack(connection);
  worker_.AtIoEnd(*this);
  return true;
}

bool Intake::ReadOne(Deferred& from) {
  DeferredNode* const connection = from.PopFront();
  if (connection == nullptr) return false;
  connection->ReadDeferred();
  return true;
}

// After the reads of what has just come, and before any task runs. Each read begins few calls, so the turn's budget is
// kept but for the last one.
void Intake::OnIoEnd() {
  taken_ = 0;
  while (taken_ < kDeferredCalls && ReadOne(light_)) {
  }
  while (taken_ < kDeferredCalls && !heavy_.empty() && !TooMany()) ReadOne(heavy_);
  turn_ = {};  // the next read is another turn's, also where the clock stands still
  if (!light_.empty() || (!heavy_.empty() && !TooMany())) worker_.AtIoEnd(*this);
}

void Intake::OnTimer(base::TimePoint now) {
  // Also where there are too many calls, as those can only end by what is read: all that begins no call, and a few
  // calls.
  taken_ = 0;
  for (uint32_t i = 0; i < kTickReads && taken_ < kManyCalls && ReadOne(heavy_); ++i) {
  }
  turn_ = {};
  const bool rests = light_.empty() && heavy_.empty() && !spent_;
  spent_ = false;
  pressed_ = !rests;
  if (rests) return;
  worker_.timers().Arm(*this, base::DeadlineAfter(now, kTick));
  worker_.AtIoEnd(*this);
}

}  // namespace sluice::http2
