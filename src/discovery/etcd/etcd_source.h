// EtcdSource: a cluster's list from the keys below a prefix in etcd.
//
// One session (etcd_session.h) is current: it has given a list, and watches. While there is none, or it is silent, new
// sessions are tried with one server after the other, some at a time: a packet that was lost on the way to a host that
// was away is sent again after a second at the earliest (RFC 6298 2), a new connection gets there at once. The first
// that has a list becomes the current one.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "discovery/bell.h"
#include "discovery/etcd/etcd_list.h"
#include "discovery/etcd/etcd_session.h"
#include "discovery/options.h"
#include "discovery/rpc/backoff.h"
#include "discovery/source.h"

namespace sluice::discovery {

class EtcdSource final : public Source {
 public:
  // Sessions that are tried at once; the oldest that has not even a connection gives way to a further one.
  static constexpr size_t kAttemptsMax = 8;
  // Between two of them, at most: a list must be right within a second of a server's return.
  static constexpr base::Nanos kBetweenAttempts = std::chrono::milliseconds(600);
  // Changes are merged for as long: the list is made that often at most.
  static constexpr base::Nanos kMerge = std::chrono::milliseconds(50);
  // After helper threads had no time for it.
  static constexpr base::Nanos kBusy = std::chrono::milliseconds(100);
  // A list that has not changed is confirmed so often, so that its age says how long etcd has been away.
  static constexpr base::Nanos kConfirm = std::chrono::seconds(10);
  // A session that ends sooner was not well, though it had a list: the next one is not begun at once.
  static constexpr base::Nanos kWellAfter = std::chrono::seconds(1);
  // Before the keys are read again of which there were too many.
  static constexpr base::Nanos kOverflow = std::chrono::seconds(10);

  // `seed`: which server is asked first, and the back-off's jitter.
  EtcdSource(const EtcdOptions& options, EtcdList::ParseValue parse, uint64_t seed, Bell& bell);

  runtime::Task<Answer> Next(base::TimePoint until) override;
  void Ask() override;
  void Hurry() override;

 private:
  struct Attempt {
    size_t server = 0;
    std::unique_ptr<EtcdSession> session;
  };

  void LookAtSessions(base::TimePoint now);
  void Promote(size_t attempt, base::TimePoint now);
  std::optional<size_t> ServerToTry(base::TimePoint now) const;
  runtime::Task<void> Try(size_t server);
  runtime::Task<std::optional<Answer>> TakeBatch();
  Answer Believed(base::Result<List> list, const EtcdSession::Batch& batch);
  std::optional<Answer> TakeError();
  void Failed(size_t server, std::string error);
  base::TimePoint LookAt(base::TimePoint now) const;

  const EtcdOptions options_;
  Bell& bell_;
  base::Random random_;
  Backoff backoff_{kBetweenAttempts};
  Backoff refused_;  // by a server that is well, and would say the same again

  Attempt current_;  // without a session: there is none
  std::vector<Attempt> attempts_;
  size_t next_server_;
  base::TimePoint attempt_at_{}, promoted_at_{}, batch_at_{}, list_again_at_ = base::kNever, confirm_at_ = base::kNever;
  bool told_silent_ = false;

  const std::shared_ptr<EtcdList> list_;  // also of the helper thread that works on it now
  std::optional<EtcdSession::Batch> batch_;
  EtcdHeader newest_;  // of the last list with endpoints
  bool lost_ = false;  // the data, and since then there was no endpoint

  std::vector<std::string> errors_;  // of each server, since the last list
  std::string told_error_;
  bool asked_ = false;
};

}  // namespace sluice::discovery
