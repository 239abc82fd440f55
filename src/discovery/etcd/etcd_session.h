// EtcdSession: one connection to one server of etcd that follows the keys below a prefix. It is looked at when its bell
// rings and when its time has come; it never waits.
//
//      with a user                       all pages              compacted, or asked to
//   authenticating ----------> listing ----------> watching -------------------------> listing
//        ^                        |                   |
//        +--- token expired ------+-------------------+          from everywhere: ended, with an error
//
// A list is read whole at each connection, by linearizable Range (so by a quorum), all pages at one revision; the watch
// begins behind that. What the server knew before does not matter then: not its compactions, nor that it has lost its
// data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "discovery/bell.h"
#include "discovery/etcd/etcd_access.h"
#include "discovery/etcd/etcd_call.h"
#include "discovery/etcd/etcd_messages.h"
#include "discovery/rpc/rpc_stream.h"

namespace sluice::discovery {

// One worker only, that of its bell.
class EtcdSession {
 public:
  // Keys of a page of a list.
  static constexpr int64_t kPageKeys = 500;
  // Changes that are kept for Take; if more come, the list is read anew.
  static constexpr size_t kChangesMax = 40000;
  // A watch that says nothing is asked for a sign of life after kHeartbeat. If that does not come within kPatience the
  // server is silent, within kSilenceMax it is lost.
  static constexpr base::Nanos kHeartbeat = std::chrono::seconds(1), kPatience = std::chrono::seconds(1),
                               kSilenceMax = std::chrono::seconds(10);

  enum class State : uint8_t { kAuthenticating, kListing, kWatching, kEnded };

  // What has happened to the keys.
  struct Batch {
    bool whole = false;  // all that there is, instead of what was known; else on top of it
    std::vector<EtcdChange> changes;
    EtcdHeader header;
  };

  EtcdSession(EtcdAccess access, std::string prefix, Bell& bell, base::TimePoint now);

  // Takes what is there, and goes on.
  void Look(base::TimePoint now);
  // When Look is due though nothing rings.
  base::TimePoint look_at(base::TimePoint now) const;
  // A whole list, or changes, once each is complete.
  std::optional<Batch> Take();
  // Reads the whole list again, as soon as it watches.
  void ListAgain(base::TimePoint now);
  // Asks for a sign of life, unless that has been done.
  void Prod(base::TimePoint now);

  State state() const { return state_; }
  // The server's process answers, though perhaps not with a list yet.
  bool connected() const { return access_.channel->connected(); }
  // It watches, and nothing is owed.
  bool well() const { return state_ == State::kWatching && !prodded_at_; }
  bool silent(base::TimePoint now) const { return prodded_at_ && now >= base::DeadlineAfter(*prodded_at_, kPatience); }
  // Of kEnded: why, and whether the server is well and has meant it: it knows no such user, or speaks nonsense.
  const std::string& error() const { return error_; }
  bool refused() const { return refused_; }

 private:
  static constexpr int kSetbacksMax = 5;       // without a sign of life of a watch between them
  static constexpr int kMessagesPerLook = 32;  // so that other tasks have their turn

  void Authenticate(base::TimePoint now);
  void List(base::TimePoint now);
  void AskForPage(base::TimePoint now);
  void Watch(base::TimePoint now);
  void OnAnswer(EtcdCall::Outcome outcome, base::TimePoint now);
  void OnPage(EtcdPage page, base::TimePoint now);
  void OnNews(EtcdNews news, base::TimePoint now);
  void Retry(void (EtcdSession::*from)(base::TimePoint), const std::string& why, base::TimePoint now);
  void OnFailure(const EtcdCall::Outcome& outcome, base::TimePoint now);
  bool Belongs(const EtcdHeader& header);
  void Add(std::vector<EtcdChange> changes);
  void LookAtWatch(base::TimePoint now);
  void End(std::string error, bool refused = true);

  const EtcdAccess access_;
  const std::string prefix_, prefix_end_;
  Bell& bell_;
  State state_ = State::kListing;
  std::string error_, token_;
  bool token_worked_ = false, refused_ = false;

  std::optional<EtcdCall> call_;  // of kAuthenticating and kListing
  std::optional<RpcStream> watch_;

  uint64_t cluster_ = 0;  // 0: not known yet
  int64_t revision_ = 0;  // of the list; then the newest that was heard of
  std::string next_key_;
  size_t keys_listed_ = 0;
  int setbacks_ = 0;
  bool list_again_ = false;
  base::TimePoint heard_at_{};
  std::optional<base::TimePoint> prodded_at_;  // and nothing was heard since
  std::optional<base::TimePoint> behind_at_;   // since when the watch's server has an older revision than the list's

  Batch batch_;
  bool complete_ = false;  // batch_ may be taken
  bool fragment_ = false;  // the rest of a message is to follow
};

}  // namespace sluice::discovery
