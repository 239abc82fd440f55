#include "discovery/dns/dns_round.h"

#include <algorithm>

namespace sluice::discovery {

using net::DnsReply;
using net::DnsType;

namespace {

std::string TooMany() { return "more than " + std::to_string(DnsRound::kHostsMax) + " addresses"; }

}  // namespace

DnsRound::DnsRound(std::unique_ptr<net::DnsSystem> system, const DnsOptions& options,
                   const std::set<Question>& found_before, std::function<void()> on_reply)
    : options_(options), found_before_(found_before), on_reply_(std::move(on_reply)) {
  for (std::string& name : system->NamesFor(options.name)) candidates_.push_back(std::move(name));
  channel_ = std::make_unique<net::DnsChannel>(std::move(system));
  AskNext();
}

void DnsRound::AskNext() {
  const std::string name = std::move(candidates_.front());
  candidates_.pop_front();
  AskFor(name);
}

void DnsRound::AskFor(const std::string& name) {
  if (options_.records == DnsRecords::kSrv) {
    names_[name].waiting = 1;
    to_ask_.emplace_back(name, DnsType::kSrv);
  } else {
    AskAddresses(name);
  }
}

void DnsRound::AskAddresses(const std::string& name) {
  names_[name].waiting = 2;
  to_ask_.emplace_back(name, DnsType::kA);
  to_ask_.emplace_back(name, DnsType::kAaaa);
}

void DnsRound::AskSome() {
  // Those that fail at once count too: the next ones have the next turn.
  for (size_t n = 0; n < kQuestionsMax && out_ < kQuestionsMax && !to_ask_.empty(); ++n) {
    const Question question = std::move(to_ask_.front());
    to_ask_.pop_front();
    ++out_;
    ++asked_;
    channel_->Ask(question.first, question.second, [this, question](DnsReply reply) {
      --out_;
      if (over()) return;
      Take(question.first, question.second, std::move(reply));
      on_reply_();
    });
  }
}

void DnsRound::Take(const std::string& name, DnsType type, DnsReply reply) {
  Name& known = names_[name];
  --known.waiting;
  switch (reply.kind) {
    case DnsReply::Kind::kFound:
      known.found = true;
      found_.emplace(name, type);
      ttl_ = std::min(ttl_, reply.ttl);
      hosts_ += reply.hosts.size();
      known.hosts.insert(known.hosts.end(), reply.hosts.begin(), reply.hosts.end());
      if (type == DnsType::kSrv) targets_ = std::move(reply.targets);
      break;
    case DnsReply::Kind::kNone:
      break;
    case DnsReply::Kind::kFailed:
      known.lost |= found_before_.contains({name, type});
      known.wrong[type] = std::move(reply.error);
      break;
  }
  if (hosts_ > kHostsMax) return Fail(TooMany());
  if (known.waiting == 0) Settle(name, known);
}

// Both families, or the SRV records, of a name are known.
void DnsRound::Settle(const std::string& name, const Name& known) {
  std::string wrong;
  if (known.lost || (!known.found && !known.wrong.empty())) {
    const auto& [type, why] = *known.wrong.begin();
    wrong = name + " " + std::string(ToString(type)) + ": " + why;
  }
  const bool half = known.lost && known.found;
  if (half) lost_.emplace(name, known.wrong.begin()->first);
  if (state_ == State::kTargets) {
    if (!wrong.empty() && !half) return Fail(std::move(wrong));
    if (half && error_.empty()) error_ = std::move(wrong);
    // A target without addresses yet.
    if (!known.found) ttl_ = std::min(ttl_, DnsReply::kNoneTtl);
    if (--targets_left_ == 0) CountHosts();
    return;
  }
  // What was found by this name is not looked for by another while it cannot be asked.
  if (known.lost && !half) return Fail(std::move(wrong));
  if (known.found) {
    error_ = std::move(wrong);
    name_ = name;
    if (options_.records == DnsRecords::kSrv) return BeginTargets();
    state_ = State::kOver;
    return;
  }
  if (!wrong.empty() && error_.empty()) error_ = std::move(wrong);
  if (!candidates_.empty()) {
    AskNext();
  } else {
    ttl_ = DnsReply::kNoneTtl;
    state_ = State::kOver;
  }
}

void DnsRound::BeginTargets() {
  state_ = State::kTargets;
  names_.clear();  // a target may have the name of the service itself
  for (const net::DnsTarget& target : targets_) {
    if (!names_.contains(target.host)) AskAddresses(target.host);
  }
  targets_left_ = names_.size();
}

// Several targets may share a host.
void DnsRound::CountHosts() {
  size_t hosts = 0;
  for (const net::DnsTarget& target : targets_) hosts += names_[target.host].hosts.size();
  if (hosts > kHostsMax) return Fail(TooMany());
  state_ = State::kOver;
}

void DnsRound::Fail(std::string error) {
  error_ = std::move(error);
  lost_.clear();
  to_ask_.clear();
  state_ = State::kOver;
}

std::vector<DnsHost> DnsRound::Hosts() const {
  std::vector<DnsHost> out;
  if (options_.records == DnsRecords::kAddress) {
    if (const auto it = names_.find(name_); it != names_.end()) {
      for (const std::string& host : it->second.hosts) out.push_back({host, static_cast<uint16_t>(options_.port)});
    }
    return out;
  }
  for (const net::DnsTarget& target : targets_) {
    for (const std::string& host : names_.find(target.host)->second.hosts)
      out.push_back({host, target.port, target.priority, target.weight});
  }
  return out;
}

}  // namespace sluice::discovery
