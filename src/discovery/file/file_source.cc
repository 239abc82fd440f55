#include "discovery/file/file_source.h"

#include <sys/epoll.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "runtime/blocking_call.h"
#include "runtime/worker.h"

namespace sluice::discovery {

FileSource::FileSource(std::string path, Read read, Bell& bell)
    : path_(std::move(path)), read_(std::move(read)), bell_(bell), way_(std::make_shared<FileWay>(path_)) {
  watched_ = way_->fd() >= 0 && runtime::Worker::Current()->Watch(way_->fd(), EPOLLIN, *this) == 0;
  if (!watched_) SLUICE_LOG_WARN("{}: a change is seen by polling only, because inotify cannot be had", path_);
}

FileSource::~FileSource() {
  if (watched_) runtime::Worker::Current()->Unwatch(way_->fd(), *this);
}

void FileSource::OnEdge(uint32_t) {
  edge_ = true;
  bell_.Ring();
}

FileSource::Stamp FileSource::StampOf(const std::string& path) {
  struct stat at {};
  if (::stat(path.c_str(), &at) != 0) return {};
  const auto nanos = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {at.st_dev, at.st_ino, static_cast<uint64_t>(at.st_size), nanos(at.st_mtim), nanos(at.st_ctim)};
}

runtime::Task<Answer> FileSource::Next(base::TimePoint until) {
  for (;;) {
    const base::TimePoint now = runtime::Worker::Current()->now();
    const base::TimePoint look_at = edge_ ? not_before_ : std::max(asked_ ? settle_at_ : poll_at_, not_before_);
    if (now < look_at) {
      if (now >= until) co_return Answer();
      co_await bell_.Wait(std::min(until, look_at));
      // Not in a loop: the bell may have rung for the owner as well.
      co_return Answer();
    }
    const bool asked = std::exchange(asked_, false);
    edge_ = false;
    // The stamp is older than what is read: a change meanwhile is seen at the next poll, if nothing tells of it.
    runtime::BlockingCall look([way = way_, path = path_, read = read_, asked, read_last = stamp_, seen = seen_] {
      const bool told = way->LookForChange();
      Look look{StampOf(path), std::nullopt};
      const bool settled = told || look.stamp == read_last || look.stamp == seen;
      if (settled && (told || asked || look.stamp != read_last)) look.list.emplace(read(path));
      return look;
    });
    std::optional<Look> looked = co_await look;
    const base::TimePoint done = runtime::Worker::Current()->now();
    if (!looked) {
      asked_ = asked;
      edge_ = true;
      not_before_ = base::DeadlineAfter(done, kBusy);
      co_return Answer();
    }
    seen_ = looked->stamp;
    if (!looked->list) {
      const bool settles = looked->stamp != stamp_;
      asked_ = asked_ || (settles && asked);
      poll_at_ = base::DeadlineAfter(done, settles ? kSettle : kPoll);
      if (settles) settle_at_ = poll_at_;  // an event is looked after at once all the same
      co_return Answer();
    }
    poll_at_ = base::DeadlineAfter(done, kPoll);
    stamp_ = looked->stamp;
    if (!looked->list->ok()) co_return Answer(looked->list->error().detail);
    co_return Answer(std::move(**looked->list));
  }
}

}  // namespace sluice::discovery
