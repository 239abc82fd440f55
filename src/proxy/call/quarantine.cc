#include "proxy/call/quarantine.h"

#include <algorithm>

namespace sluice::proxy {

bool Quarantine::Holds(uint64_t what, base::TimePoint now) const {
  if (!any(now)) return false;
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.what == what && entry.losses >= kLosses && now < entry.until;
  });
}

void Quarantine::Lost(uint64_t what, bool alone, base::TimePoint now) {
  Entry* place = &entries_[0];
  for (Entry& entry : entries_) {
    if (entry.what == what && now < entry.until) {
      place = &entry;
      break;
    }
    if (entry.until < place->until) place = &entry;
  }
  if (place->what != what || now >= place->until) *place = {what, now, 0};
  place->losses += alone ? kLosses : 1;
  place->until = now + kTime;
  until_ = std::max(until_, place->until);
}

void Quarantine::Answered(uint64_t what) {
  for (Entry& entry : entries_) {
    if (entry.what == what) entry = {};
  }
}

}  // namespace sluice::proxy
