#include "limits/verdict.h"

namespace sluice::limits {

std::string_view ToString(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "none";
    case Refusal::kQueueFull:
      return "the queue is full";
    case Refusal::kQueueTime:
      return "the wait is longer than queue_time";
    case Refusal::kTooLate:
      return "the deadline is too near";
    case Refusal::kTableFull:
      return "as many clients as clients_max have calls now";
    case Refusal::kDebt:
      return "more clients than clients_max call, and this one began with the debt of those that made room for it";
    case Refusal::kClosed:
      return "the limit was taken away";
  }
  return "none";
}

}  // namespace sluice::limits
