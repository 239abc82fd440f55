// Tally: which backend answered which key, and what failed. Thread safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <string>

namespace sluice::echo {

class Tally {
 public:
  void Answered(const std::string& key, const std::string& backend);
  // `status` as "UNAVAILABLE: no endpoint".
  void Failed(const std::string& status);

  uint64_t failures() const;
  // For people: calls a backend, keys a backend, failures; with `keys`, each key's backend too.
  void PrintText(std::ostream& out, std::chrono::milliseconds elapsed, bool keys) const;
  void PrintJson(std::ostream& out, std::chrono::milliseconds elapsed) const;
  // "key=backend" lines in the order of the keys; the last backend where a key had several.
  void PrintMap(std::ostream& out) const;

 private:
  struct Key {
    std::string last;
    std::set<std::string> backends;
  };
  std::map<std::string, uint64_t> KeysByBackend() const;

  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Key> keys_;
  std::map<std::string, uint64_t> calls_by_backend_;
  std::map<std::string, uint64_t> failures_by_status_;
  uint64_t calls_ = 0, failures_ = 0;
};

}  // namespace sluice::echo
