// ActiveHealth: one endpoint's own word on whether it serves, by grpc.health.v1: when it is to be asked, by Watch or by
// Check, and what follows of the answers (gRPC's health checking protocol; gRFC A17). A value: it is told what came and
// the time, and says what is to be done; it has no stream.
//
//                   Next: kWatch, kCheck           Opened
//     waiting (next_at_) ----------------> asked ----------> open
//        ^                                   |                 |
//        +------ Ended, or Next: kStop ------+-----------------+
//
// Watch: each answer is the verdict. A Watch that ends with a status, or is not answered in `timeout`, is the verdict
// "not serving" until there is an answer again (A17: TRANSIENT_FAILURE); the next one is begun at once if there was an
// answer, else after 1 s, doubled up to 1 min, with 20% jitter. One that is lost with its connection, or that we end,
// changes nothing: the next one begins at once, and goes by what it meets. UNIMPLEMENTED: Checks instead, until a
// connection is lost, because its successor may be another version of the server.
//
// Check: passed is SERVING, or UNIMPLEMENTED (A17: as healthy); all else has failed. `fall` or `rise` in a row make the
// verdict. As long as the last Checks differ from it they come every second, if `interval` is longer.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "upstream/health/health_report.h"
#include "upstream/health/options.h"

namespace sluice::upstream {

class ActiveHealth {
 public:
  static constexpr base::Nanos kBackoffBase = std::chrono::seconds(1), kBackoffMax = std::chrono::minutes(1);
  // An address where nothing listens is tried this often, whatever the back-off: a process that is back takes calls
  // within a second.
  static constexpr base::Nanos kRefusedWait = std::chrono::milliseconds(600);
  // Between Checks while they differ from the verdict.
  static constexpr base::Nanos kDoubtWait = std::chrono::seconds(1);
  // An endpoint whose Watch failed and was answered again within this time has not lost its caches.
  static constexpr base::Nanos kBrief = std::chrono::seconds(2);

  enum class Act : uint8_t {
    kNothing,
    kWatch,  // begin one: its report is to be read from now on
    kCheck,  // the same
    kStop,   // end what is out; its report counts no more
  };
  enum class Verdict : uint8_t { kNone, kServing, kNotServing };  // kNone: as serving

  // What is to be done now. `options.mode` off: nothing is asked and nothing said. `may_begin`: false puts off what
  // would begin.
  Act Next(const HealthOptions& options, base::TimePoint now, base::Random& random, bool may_begin = true);
  // What is new in the report of what is out.
  void Read(const HealthReport& report, base::TimePoint now, base::Random& random);

  // Something is out, or has been said.
  bool active() const { return asking_ != Act::kNothing || verdict_ != Verdict::kNone; }
  bool asking() const { return asking_ != Act::kNothing; }
  Verdict verdict() const { return verdict_; }
  bool out() const { return verdict_ == Verdict::kNotServing; }
  // Of the verdict, as a log line has it: "the health service says NOT_SERVING".
  const std::string& why() const { return why_; }
  // It was not serving only because its Watch failed for a moment, on a connection that stayed.
  bool brief() const { return brief_; }
  // What is asked and was answered last, to be shown: "watch: SERVING"; empty: nothing.
  std::string Describe() const;
  // The next one begins now, whatever the back-off.
  void Hurry(base::TimePoint now);
  // Its calls make it suspect: the next one begins now, but not within kDoubtWait of the one before.
  void Suspect(base::TimePoint now);

 private:
  void Begin(Act act, base::TimePoint now);
  void Forget();
  void Answered(ServingStatus status, base::TimePoint now);
  void Ended(const HealthEnd& end, base::TimePoint now, base::Random& random);
  void WatchEnded(const HealthEnd& end, bool answered, base::TimePoint now, base::Random& random);
  void CheckEnded(const HealthEnd& end, bool answered, base::TimePoint now, base::Random& random);
  void Count(bool passed, const std::string& what, base::TimePoint now);
  void Say(Verdict verdict, std::string why, base::TimePoint now);
  void Wait(base::Nanos wait, base::TimePoint now, base::Random& random);
  base::Nanos Backoff();
  base::Nanos CheckWait() const;

  HealthOptions options_;  // of what is out, or was last
  Act asking_ = Act::kNothing;
  bool opened_ = false;
  uint64_t answers_ = 0;  // seen of what is out
  ServingStatus status_ = ServingStatus::kUnknown;
  base::TimePoint opened_at_{}, next_at_{}, verdict_at_{};
  bool no_watch_ = false;      // the server has none
  bool watch_failed_ = false;  // that, on a connection that stayed, is the verdict's reason
  bool brief_ = false;
  uint32_t tries_ = 0;      // the back-off's exponent
  uint32_t row_ = 0;        // Checks in a row that
  bool row_passed_ = true;  // passed, or failed
  Verdict verdict_ = Verdict::kNone;
  std::string why_, last_;
};

}  // namespace sluice::upstream
