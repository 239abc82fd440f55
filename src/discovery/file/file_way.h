// FileWay: the directories on the way to a file, watched by inotify(7): that of the file, and that of each symbolic
// link before it, as Kubernetes replaces a ConfigMap by another target of a link to its directory.
//
// Directories are watched, not files: a file that is replaced by rename is another one. One thread at a time; it looks
// at the file system, which may block.
#pragma once

#include <string>
#include <vector>

namespace sluice::discovery {

class FileWay {
 public:
  // Links on the way to the file; further ones are not watched.
  static constexpr int kLinksMax = 40;

  // Nothing is watched before the first LookForChange.
  explicit FileWay(std::string path);
  ~FileWay();
  FileWay(const FileWay&) = delete;
  FileWay& operator=(const FileWay&) = delete;

  // Readable when something has happened; -1: inotify cannot be had (its limits are per user).
  int fd() const { return fd_; }
  // Whether the file may have another content than at the last call: since then something was written to its end, or
  // renamed, linked or removed on the way to it. True at the first call.
  bool LookForChange();

 private:
  struct Step {
    int watch;  // of inotify
    std::string directory, name;
  };

  bool ReadEvents() const;
  void Walk();

  const std::string path_;
  int fd_ = -1;
  bool first_ = true;
  std::vector<Step> steps_;
};

}  // namespace sluice::discovery
