// What the programs of tests/bench/restart share: options as "--name value", JSON strings, and times.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace sluice::bench {

// "--name value" pairs; exits with 2 where a name has no value.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      if (argv[i][0] != '-' || argv[i][1] != '-' || i + 1 == argc) {
        std::fprintf(stderr, "%s: %s: every option is --name value\n", argv[0], argv[i]);
        std::exit(2);
      }
      values_[argv[i] + 2] = argv[i + 1];
    }
  }
  std::string Text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  double Number(const std::string& name, double otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::atof(found->second.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

inline std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  out += '"';
  return out;
}

// {"UNAVAILABLE: why": 3}
inline std::string Object(const std::map<std::string, uint64_t>& counts) {
  std::string out = "{";
  for (const auto& [name, count] : counts) {
    if (out.size() > 1) out += ", ";
    out += Quoted(name) + ": " + std::to_string(count);
  }
  out += '}';
  return out;
}

using Clock = std::chrono::steady_clock;

inline double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Seconds since the epoch: what all programs of a run put beside each other.
inline double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::bench
