// Tally: counting and printing.
#include "tally.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>

namespace sluice::echo {

namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

template <typename Map>
void PrintObject(std::ostream& out, const Map& map) {
  out << '{';
  const char* comma = "";
  for (const auto& [name, count] : map) {
    out << comma << Quoted(name) << ':' << count;
    comma = ",";
  }
  out << '}';
}

}  // namespace

void Tally::Answered(const std::string& key, const std::string& backend) {
  std::lock_guard lock(mutex_);
  ++calls_;
  ++calls_by_backend_[backend];
  Key& entry = keys_[key];
  entry.last = backend;
  entry.backends.insert(backend);
}

void Tally::Failed(const std::string& status) {
  std::lock_guard lock(mutex_);
  ++calls_;
  ++failures_;
  ++failures_by_status_[status];
}

uint64_t Tally::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

std::map<std::string, uint64_t> Tally::KeysByBackend() const {
  std::map<std::string, uint64_t> keys;
  for (const auto& [key, entry] : keys_) ++keys[entry.last];
  return keys;
}

void Tally::PrintText(std::ostream& out, std::chrono::milliseconds elapsed, bool keys) const {
  std::lock_guard lock(mutex_);
  if (keys) {
    for (const auto& [key, entry] : keys_) out << "  " << std::left << std::setw(16) << key << entry.last << '\n';
  }
  auto keys_by_backend = KeysByBackend();
  out << "  " << std::left << std::setw(16) << "backend" << std::right << std::setw(8) << "calls" << std::setw(8)
      << "keys" << '\n';
  for (const auto& [backend, calls] : calls_by_backend_) {
    out << "  " << std::left << std::setw(16) << backend << std::right << std::setw(8) << calls << std::setw(8)
        << keys_by_backend[backend] << '\n';
  }
  const auto moved =
      std::count_if(keys_.begin(), keys_.end(), [](const auto& key) { return key.second.backends.size() > 1; });
  out << "  " << calls_ << " calls in " << elapsed.count() << " ms, " << failures_ << " failed, " << moved
      << " keys were answered by more than one backend\n";
  for (const auto& [status, count] : failures_by_status_) out << "  failed " << count << " x " << status << '\n';
}

void Tally::PrintJson(std::ostream& out, std::chrono::milliseconds elapsed) const {
  std::lock_guard lock(mutex_);
  out << "{\"calls\":" << calls_ << ",\"failures\":" << failures_ << ",\"elapsed_ms\":" << elapsed.count()
      << ",\"calls_by_backend\":";
  PrintObject(out, calls_by_backend_);
  out << ",\"keys_by_backend\":";
  PrintObject(out, KeysByBackend());
  out << ",\"failures_by_status\":";
  PrintObject(out, failures_by_status_);
  out << ",\"keys\":";
  std::map<std::string, std::string> last;
  for (const auto& [key, entry] : keys_) last[key] = Quoted(entry.last);
  PrintObject(out, last);
  out << "}\n";
}

void Tally::PrintMap(std::ostream& out) const {
  std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : keys_) out << key << '=' << entry.last << '\n';
}

}  // namespace sluice::echo
