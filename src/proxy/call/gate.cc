#include "proxy/call/gate.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::proxy {

bool AllowFastPath(const GateList* gates) {
  return gates == nullptr ||
         std::all_of(gates->begin(), gates->end(), [](const auto& gate) { return gate->AllowsFastPath(); });
}

GateVerdict GateWalk::Advance(GateStage stage, const std::shared_ptr<const GateList>& gates,
                              const GateRequest& request) {
  if (waiting_ == nullptr && !Knows(gates)) {
    gates_ = gates;
    next_ = 0;
    of_both_stages_ = stage == GateStage::kToUpstream && !fetch_;
  } else if (stage_ != stage) {
    next_ = 0;
    of_both_stages_ = false;
  }
  stage_ = stage;
  for (; next_ < gates_->size(); ++next_) {
    const Gate& gate = *(*gates_)[next_];
    GateVerdict verdict;
    if (waiting_ != nullptr) {
      verdict = checks_.back()->Poll(request.now);
    } else {
      if (!of_both_stages_ && gate.AllowsFastPath() != (stage == GateStage::kToUpstream)) continue;
      std::unique_ptr<GateCheck> check;
      verdict = gate.Ask(request, check);
      SLUICE_CHECK(verdict.kind != GateVerdict::Kind::kWait || check != nullptr);
      if (check != nullptr) checks_.push_back(std::move(check));
    }
    waiting_ = verdict.kind == GateVerdict::Kind::kWait ? &gate : nullptr;
    if (verdict.kind != GateVerdict::Kind::kGo) return verdict;
  }
  next_ = kPassed;
  return GateVerdict::Go();
}

}  // namespace sluice::proxy
