// DnsRound: one round of questions about a name, until its list is known or cannot be: A and AAAA of the name (of each
// name that the search domains make of it, until one is found), or SRV and then A and AAAA of each target.
//
//   kName ---- found ----> kOver            (records: address)
//     |  \---- found ----> kTargets --> kOver (records: srv)
//     +------- none left, or an error ----> kOver
//
// One worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "discovery/dns/dns_list.h"
#include "net/dns/dns_channel.h"

namespace sluice::discovery {

class DnsRound {
 public:
  // Questions that are out at once, and that one AskSome asks.
  static constexpr size_t kQuestionsMax = 16;
  // Of the list: more is an error.
  static constexpr size_t kHostsMax = upstream::kEndpointsMax;

  using Question = std::pair<std::string, net::DnsType>;

  // `found_before`: of the last round without an error. A question of those that fails makes the round an error;
  // another one only where the name has no address of the other family: some servers know one family only, and fail the
  // other. `on_reply`: there may be something to ask, or it is over; not from inside of a function of the round but
  // AskSome.
  DnsRound(std::unique_ptr<net::DnsSystem> system, const DnsOptions& options, const std::set<Question>& found_before,
           std::function<void()> on_reply);

  // Asks what is next. Not from `on_reply`, so that a server that answers at once does not keep the worker.
  void AskSome();
  bool over() const { return state_ == State::kOver; }

  // Once it is over. Why there is no list; empty: there is one, perhaps without hosts.
  const std::string& error() const { return error_; }
  // What alone makes it an error: questions of `found_before` that have failed, of names with addresses of the other
  // family. Without them there is a list, and all the rest has been asked. Empty: there is no error, or another one.
  const std::set<Question>& lost() const { return lost_; }
  std::vector<DnsHost> Hosts() const;
  // How long that is good: the least of what was found, or of names without records.
  base::Nanos ttl() const { return ttl_; }
  const std::set<Question>& found() const { return found_; }
  size_t asked() const { return asked_; }

 private:
  enum class State : uint8_t { kName, kTargets, kOver };
  // What is known of a name's questions.
  struct Name {
    int waiting = 0;  // questions without a reply
    bool found = false;
    bool lost = false;                          // a question failed that found something before
    std::map<net::DnsType, std::string> wrong;  // of failed questions
    std::vector<std::string> hosts;
  };

  void AskNext();
  void AskFor(const std::string& name);
  void AskAddresses(const std::string& name);
  void Take(const std::string& name, net::DnsType type, net::DnsReply reply);
  void Settle(const std::string& name, const Name& known);
  void BeginTargets();
  void CountHosts();
  void Fail(std::string error);

  const DnsOptions& options_;
  const std::set<Question>& found_before_;
  const std::function<void()> on_reply_;

  State state_ = State::kName;
  std::deque<std::string> candidates_;  // names still to be tried
  std::string name_;                    // the one that was found
  std::vector<net::DnsTarget> targets_;
  std::deque<Question> to_ask_;
  size_t out_ = 0, asked_ = 0, targets_left_ = 0, hosts_ = 0;
  std::map<std::string, Name> names_;
  std::set<Question> found_, lost_;
  std::string error_;
  base::Nanos ttl_ = net::DnsReply::kTtlMax;

  std::unique_ptr<net::DnsChannel> channel_;  // the last: its questions end before what they would tell
};

}  // namespace sluice::discovery
