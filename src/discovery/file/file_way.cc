#include "discovery/file/file_way.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace sluice::discovery {

namespace {

// IN_CREATE is looked at for links, which are whole when they are there; a file that was created has its end still to
// come (IN_CLOSE_WRITE).
constexpr uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
// The watch itself has ended, or lost events.
constexpr uint32_t kLost = IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED;

bool IsLink(const std::filesystem::path& path) {
  struct stat at {};
  return ::lstat(path.c_str(), &at) == 0 && S_ISLNK(at.st_mode);
}

}  // namespace

FileWay::FileWay(std::string path) : path_(std::move(path)), fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

FileWay::~FileWay() {
  if (fd_ >= 0) ::close(fd_);
}

bool FileWay::LookForChange() {
  if (fd_ < 0) return std::exchange(first_, false);
  if (!ReadEvents() && !first_) return false;
  first_ = false;
  Walk();
  return true;
}

// From the root on: where a part is a link, its directory is watched, and the way goes on at its target.
void FileWay::Walk() {
  const std::vector<Step> before = std::exchange(steps_, {});
  const auto add = [this](const std::filesystem::path& directory, const std::filesystem::path& name) {
    const int watch = ::inotify_add_watch(fd_, directory.c_str(), kEvents | IN_ONLYDIR);
    if (watch >= 0) steps_.push_back({watch, directory.string(), name.string()});
  };
  std::error_code error;
  std::filesystem::path way = std::filesystem::absolute(path_, error).lexically_normal();
  for (int links = 0; links < kLinksMax; ++links) {
    std::filesystem::path done, target;
    for (auto part = way.begin(); part != way.end() && target.empty(); ++part) {
      const std::filesystem::path at = done / *part;
      const bool link = IsLink(at);
      if (link || std::next(part) == way.end()) add(done, *part);
      if (link) {
        target = std::filesystem::read_symlink(at, error);
        if (target.empty()) return;  // it is gone already, which is an event
        if (target.is_relative()) target = done / target;
        for (auto rest = std::next(part); rest != way.end(); ++rest) target /= *rest;
      }
      done = at;
    }
    if (target.empty()) break;
    way = target.lexically_normal();
  }
  for (const Step& old : before) {
    const bool kept = std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) { return s.watch == old.watch; });
    if (!kept) ::inotify_rm_watch(fd_, old.watch);
  }
}

// True if there was one that counts.
bool FileWay::ReadEvents() const {
  alignas(inotify_event) char buffer[16 * 1024];
  bool counts = false;
  for (;;) {
    const ssize_t got = ::read(fd_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return counts;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      counts |= (event->mask & kLost) != 0;
      for (const Step& step : steps_) {
        if (step.watch != event->wd || event->len == 0 || step.name != event->name) continue;
        counts |= (event->mask & IN_CREATE) == 0 || IsLink(std::filesystem::path(step.directory) / step.name);
      }
    }
  }
}

}  // namespace sluice::discovery
