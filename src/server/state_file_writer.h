// StateFileWriter: the state file's content, changed cluster by cluster. Two clusters may be changed at once; what one
// writes must not undo the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "server/state_file.h"

namespace sluice::server {

class StateFileWriter {
 public:
  // By cluster: its list from now on; none: it is forgotten. Clusters that are not named stay as they are.
  using Changes = std::map<std::string, std::optional<SavedList>>;

  // Once, before Update. An empty path: nothing is written. `in_file`: these lists and no others stand in the file.
  void Start(std::string path, SavedLists lists, bool in_file) {
    path_ = std::move(path);
    lists_ = std::move(lists);
    in_file_ = in_file;
  }

  // Another process writes it from now on: returns when what is being written here is.
  void Leave() {
    std::lock_guard lock(mutex_);
    left_.store(true, std::memory_order_relaxed);
  }

  // The contrary: this process is the one that writes it, as its lists are now.
  void Enter() {
    {
      std::lock_guard lock(mutex_);
      left_.store(false, std::memory_order_relaxed);
      in_file_ = false;
    }
    (void)Update({}, /*must=*/false);  // what cannot be written now is with the next change
  }

  // There is a file to write.
  bool keeps() const { return !path_.empty() && !left_.load(std::memory_order_relaxed); }

  // Returns when the file is written (SaveState); on an error (kIo) it is as before, and so are the lists where they
  // `must` be in it, else they are written with the next change. Where no list changes there is nothing to write, so a
  // full disk does not refuse a reload that is about something else. Blocks; writers take turns.
  base::Status Update(Changes changes, bool must = true) {
    if (path_.empty()) return base::Ok();
    std::lock_guard lock(mutex_);
    if (left_.load(std::memory_order_relaxed)) return base::Ok();
    const bool something = std::any_of(changes.begin(), changes.end(), [this](const auto& change) {
      return change.second || lists_.contains(change.first);
    });
    if (in_file_ && !something) return base::Ok();
    Exchange(changes);
    auto saved = SaveState(path_, lists_);
    if (!saved) {
      if (must)
        Exchange(changes);
      else
        in_file_ = false;
      return saved;
    }
    in_file_ = true;
    return base::Ok();
  }

 private:
  // Puts the changes in force; they are then what undoes them.
  void Exchange(Changes& changes) {
    for (auto& [name, list] : changes) {
      std::optional<SavedList> former;
      if (auto it = lists_.find(name); it != lists_.end()) former = std::move(it->second);
      if (list) {
        lists_[name] = std::move(*list);
      } else {
        lists_.erase(name);
      }
      list = std::move(former);
    }
  }

  std::string path_;
  std::atomic<bool> left_{false};  // written under mutex_
  std::mutex mutex_;
  // Under mutex_.
  SavedLists lists_;
  bool in_file_ = false;  // the file says just this
};

}  // namespace sluice::server
