// StateKeeper: the state file's content, changed cluster by cluster. Two clusters may be changed at once; what one writes
// must not undo the other.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "server/state_file.h"

namespace sluice::server {

class StateKeeper {
 public:
  // By cluster: its list from now on; none: it is forgotten. Clusters that are not named stay as they are.
  using Changes = std::map<std::string, std::optional<SavedList>>;

  // Once, before Update. An empty path: nothing is written.
  void Start(std::string path, SavedLists lists) {
    path_ = std::move(path);
    lists_ = std::move(lists);
  }

  // There is a file to write.
  bool keeps() const { return !path_.empty(); }

  // Returns when the file is on the disk; on an error (kIo) it is as before. Blocks; writers take turns.
  base::Status Update(const Changes& changes) {
    if (path_.empty()) return base::Ok();
    std::lock_guard lock(mutex_);
    SavedLists lists = lists_;
    for (const auto& [name, list] : changes) {
      if (list) {
        lists[name] = *list;
      } else {
        lists.erase(name);
      }
    }
    auto saved = SaveState(path_, lists);
    if (saved) lists_ = std::move(lists);
    return saved;
  }

 private:
  std::string path_;
  std::mutex mutex_;
  SavedLists lists_;  // under mutex_: what the file says
};

}  // namespace sluice::server
