// Flags: "--name value" and "--name=value" against a fixed list; anything unknown is an error that names what
// is allowed.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::echo {

class Flags {
 public:
  // `switches` take no value; `valued` need one. On an error, error() says what is wrong.
  Flags(const std::vector<std::string>& arguments, const std::vector<std::string>& switches,
        const std::vector<std::string>& valued);

  const std::string& error() const { return error_; }
  bool Has(const std::string& name) const { return values_.count(name) != 0; }
  std::string Text(const std::string& name, const std::string& fallback) const;
  // Whole numbers from `min` up; a bad one sets error().
  uint64_t Number(const std::string& name, uint64_t fallback, uint64_t min = 0);
  // "1500ms", "5s", "2m"; a bad one sets error().
  std::chrono::milliseconds Duration(const std::string& name, std::chrono::milliseconds fallback);

 private:
  void Fail(const std::string& message) {
    if (error_.empty()) error_ = message;
  }
  std::map<std::string, std::string> values_;
  std::string error_;
};

}  // namespace sluice::echo
