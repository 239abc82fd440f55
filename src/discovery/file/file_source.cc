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
    if (!asked_ && !edge_ && now < poll_at_) {
      if (now >= until) co_return Answer();
      co_await bell_.Wait(std::min(until, poll_at_));
      if (!edge_ && runtime::Worker::Current()->now() < poll_at_) co_return Answer();
      continue;
    }
    const bool asked = std::exchange(asked_, false);
    edge_ = false;
    // The stamp is older than what is read: a change meanwhile is seen at the next poll, if nothing tells of it.
    runtime::BlockingCall look([way = way_, path = path_, read = read_, asked, known = stamp_] {
      std::optional<Reading> reading;
      const bool told = way->LookForChange();
      const Stamp stamp = StampOf(path);
      if (asked || told || stamp != known) reading.emplace(Reading{stamp, read(path)});
      return reading;
    });
    std::optional<std::optional<Reading>> looked = co_await look;
    if (!looked) {
      asked_ = asked;
      edge_ = true;
      poll_at_ = runtime::Worker::Current()->now() + kBusy;
      co_await bell_.Wait(poll_at_);
      continue;
    }
    poll_at_ = base::DeadlineAfter(runtime::Worker::Current()->now(), kPoll);
    if (!*looked) continue;
    Reading& reading = **looked;
    stamp_ = reading.stamp;
    if (!reading.list.ok()) co_return Answer(reading.list.error().detail);
    co_return Answer(std::move(*reading.list));
  }
}

}  // namespace sluice::discovery
