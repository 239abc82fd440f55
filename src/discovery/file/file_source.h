// FileSource: a list in a file. It is read when its way tells of a change (file_way.h), and looked at every kPoll in
// case nothing can tell: where inotify has met its limits, and on network file systems.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "discovery/bell.h"
#include "discovery/file/file_way.h"
#include "discovery/source.h"
#include "runtime/fd_watch.h"

namespace sluice::discovery {

class FileSource final : public Source, private runtime::FdWatch {
 public:
  static constexpr base::Nanos kPoll = std::chrono::seconds(5);
  // After helper threads had no time for it.
  static constexpr base::Nanos kBusy = std::chrono::milliseconds(100);
  // A change that nothing has told of may be half written: it is read when the file has not changed for this long.
  static constexpr base::Nanos kSettle = std::chrono::milliseconds(100);

  // The file's list, sorted. Blocks; any thread. The error says where it is wrong, and what is allowed.
  using Read = std::function<base::Result<List>(const std::string& path)>;

  FileSource(std::string path, Read read, Bell& bell);
  ~FileSource() override;

  runtime::Task<Answer> Next(base::TimePoint until) override;
  void Ask() override { asked_ = true; }
  void Hurry() override { poll_at_ = {}; }

 private:
  // What tells one content from another, as far as the system knows it; all 0 where there is no file.
  struct Stamp {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t modified = 0, changed = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp StampOf(const std::string& path);
  struct Look {
    Stamp stamp;
    std::optional<base::Result<List>> list;  // unset: not read
  };

  void OnEdge(uint32_t events) override;
  void OnRequeued() override {}

  const std::string path_;
  const Read read_;
  Bell& bell_;
  const std::shared_ptr<FileWay> way_;  // also of the helper thread that looks along it now
  bool watched_ = false;
  bool asked_ = true;
  bool edge_ = false;  // there are events to be read
  Stamp stamp_;        // of what was read last
  Stamp seen_;         // of the last look
  base::TimePoint poll_at_{}, settle_at_{}, not_before_{};
};

}  // namespace sluice::discovery
