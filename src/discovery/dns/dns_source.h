// DnsSource: the addresses of a name, asked for again when their time to live is over, and at once where calls cannot
// connect. /etc/hosts comes first.
//
// Each round of questions reads the system's files anew, on a helper thread: a change of resolv.conf is seen by the
// next one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "discovery/bell.h"
#include "discovery/dns/dns_round.h"
#include "discovery/source.h"
#include "net/dns/dns_system.h"

namespace sluice::discovery {

class DnsSource final : public Source {
 public:
  // After an answer that failed; and between looks at a name that stands in /etc/hosts.
  static constexpr base::Nanos kRetry = std::chrono::seconds(2), kHostsPeriod = std::chrono::seconds(5);
  // Rounds are as far apart as their questions take at this pace: a thousand targets whose records are good for a
  // second are not two thousand questions a second.
  static constexpr base::Nanos kPerQuestion = std::chrono::milliseconds(5);
  // The addresses of a family whose questions do nothing but fail, while those for the other family of the name are
  // answered with addresses, are given up after this time at the earliest: a list must not be frozen for ever.
  static constexpr base::Nanos kFamilyKept = std::chrono::seconds(30);

  // What is this process's own.
  struct Own {
    // For mode one: of several addresses one is drawn by it, so that all processes do not choose the same.
    uint64_t seed = 0;
    // For mode one: the address with its port that the list in force has, which may be of the process before. It is
    // kept as long as the answers have it. Empty: there is none.
    std::string current;
    // Longer than kFamilyKept: it counts instead.
    base::Nanos family_kept = kFamilyKept;
  };

  // `settings`: with the servers of `options`, if there are some.
  DnsSource(const DnsOptions& options, Own own, Bell& bell, net::DnsSettings settings = {});

  runtime::Task<Answer> Next(base::TimePoint until) override;
  void Ask() override { ask_at_ = not_before_; }
  void Hurry() override { ask_at_ = not_before_; }

 private:
  struct Looked {
    base::Result<std::unique_ptr<net::DnsSystem>> system;
    std::vector<std::string> hosts;
  };
  static Looked Look(const net::DnsSettings& settings, const DnsOptions& options);

  Answer Finish(base::TimePoint now);
  // True: what has made the round an error has failed for so long that it is not waited for any more.
  bool GivesUp(const DnsRound& round, base::TimePoint now);
  Answer Found(const std::vector<DnsHost>& hosts);

  const DnsOptions options_;
  const net::DnsSettings settings_;
  Own own_;
  Bell& bell_;
  base::TimePoint ask_at_{}, not_before_{};
  std::set<DnsRound::Question> found_;  // by the last round without an error
  // DnsRound::lost of the last round; since when each is there without a break.
  std::map<DnsRound::Question, base::TimePoint> lost_since_;
  std::unique_ptr<DnsRound> round_;  // under way
};

}  // namespace sluice::discovery
