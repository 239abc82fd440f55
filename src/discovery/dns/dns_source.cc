#include "discovery/dns/dns_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "runtime/blocking_call.h"
#include "runtime/worker.h"

namespace sluice::discovery {

using base::TimePoint;

namespace {

net::DnsSettings With(net::DnsSettings settings, const DnsOptions& options) {
  if (!options.servers.empty()) settings.servers = options.servers;
  return settings;
}

}  // namespace

DnsSource::DnsSource(const DnsOptions& options, Own own, Bell& bell, net::DnsSettings settings)
    : options_(options), settings_(With(std::move(settings), options)), own_(std::move(own)), bell_(bell) {}

DnsSource::Looked DnsSource::Look(const net::DnsSettings& settings, const DnsOptions& options) {
  Looked looked{net::DnsSystem::Read(settings), {}};
  if (looked.system.ok() && options.records == DnsRecords::kAddress)
    looked.hosts = net::DnsSystem::InHosts(options.name);
  return looked;
}

runtime::Task<Answer> DnsSource::Next(TimePoint until) {
  for (bool waited = false;;) {
    TimePoint now = runtime::Worker::Current()->now();
    if (round_ == nullptr && now >= ask_at_) {
      ask_at_ = base::DeadlineAfter(now, kRetry);
      runtime::BlockingCall look([settings = settings_, options = options_] { return Look(settings, options); });
      std::optional<Looked> looked = co_await look;
      now = runtime::Worker::Current()->now();
      if (!looked) co_return Answer(std::string("too much work waits for helper threads"));
      if (!looked->system.ok()) co_return Answer(looked->system.error().detail);
      if (!looked->hosts.empty()) {
        ask_at_ = base::DeadlineAfter(now, kHostsPeriod);
        std::vector<DnsHost> hosts;
        for (std::string& host : looked->hosts)
          hosts.push_back({std::move(host), static_cast<uint16_t>(options_.port)});
        co_return Found(hosts);
      }
      round_ =
          std::make_unique<DnsRound>(std::move(*looked->system), options_, found_, [bell = &bell_] { bell->Ring(); });
    }
    if (round_ != nullptr) {
      round_->AskSome();
      if (round_->over()) co_return Finish(now);
    }
    // Whatever rang: the caller's reasons come first.
    if (waited || now >= until) co_return Answer();
    co_await bell_.Wait(round_ != nullptr ? until : std::min(until, ask_at_));
    waited = true;
  }
}

Answer DnsSource::Finish(TimePoint now) {
  const std::unique_ptr<DnsRound> round = std::move(round_);
  not_before_ = base::DeadlineAfter(now, kPerQuestion * static_cast<int64_t>(round->asked()));
  const bool given_up = GivesUp(*round, now);
  const bool failed = !round->error().empty() && !given_up;
  ask_at_ = std::max(not_before_, base::DeadlineAfter(now, failed ? kRetry : round->ttl()));
  if (failed) return Answer(round->error());
  found_ = round->found();
  return Found(round->Hosts());
}

bool DnsSource::GivesUp(const DnsRound& round, TimePoint now) {
  std::map<DnsRound::Question, TimePoint> since;
  for (const auto& question : round.lost()) {
    const auto before = lost_since_.find(question);
    since.emplace(question, before == lost_since_.end() ? now : before->second);
  }
  lost_since_ = std::move(since);
  const base::Nanos kept = std::max(kFamilyKept, own_.family_kept);
  std::erase_if(lost_since_, [&](const auto& each) {
    const auto& [question, begun] = each;
    if (now < base::DeadlineAfter(begun, kept)) return false;
    found_.erase(question);
    SLUICE_LOG_WARN("dns {}: {} of {} has done nothing but fail for {} s: its addresses are given up ({})",
                    options_.NamePort(), ToString(question.second), question.first,
                    std::chrono::duration_cast<std::chrono::seconds>(now - begun).count(), round.error());
    return true;
  });
  return !round.lost().empty() && lost_since_.empty();
}

Answer DnsSource::Found(const std::vector<DnsHost>& hosts) {
  List list = ListOf(options_, hosts, own_.current, own_.seed);
  if (options_.mode == DnsMode::kOne && !list.empty()) own_.current = list[0].address.ToString();
  return Answer(std::move(list));
}

}  // namespace sluice::discovery
