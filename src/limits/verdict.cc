#include "limits/verdict.h"

namespace sluice::limits {

std::string_view ToString(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "none";
    case Refusal::kQueueFull:
      return "the queue is full";
    case Refusal::kTooLate:
      return "the wait would pass the deadline";
    case Refusal::kTableFull:
      return "as many clients as clients_max are in use";
    case Refusal::kClosed:
      return "the limit was taken away";
  }
  return "none";
}

}  // namespace sluice::limits
