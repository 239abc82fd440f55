// Executions: the ids of the calls that a backend executed, in a shared file that outlives a kill -9 of the process.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace sluice::matrix {

// The file: the number of entries as 8 bytes, then one of 4 bytes for each execution, in the machine's order of bytes.
// An entry of 0 is an execution whose process was killed between its two writes. A second process at the same file goes
// on behind the last entry.
class Executions {
 public:
  static constexpr uint64_t kEntriesMax = 1 << 22;

  // Makes the file where there is none; ends the process, with a message, where it cannot.
  explicit Executions(const std::string& path) {
    const size_t size = sizeof(uint64_t) + kEntriesMax * sizeof(uint32_t);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size)) == 0)
      memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
      std::perror(path.c_str());
      std::exit(1);
    }
    ::close(fd);
    count_ = static_cast<std::atomic<uint64_t>*>(memory);
    entries_ = reinterpret_cast<std::atomic<uint32_t>*>(count_ + 1);
  }
  Executions(const Executions&) = delete;
  Executions& operator=(const Executions&) = delete;

  // Thread-safe. Calls above kEntriesMax are not kept.
  void Record(uint32_t call) {
    const uint64_t at = count_->fetch_add(1);
    if (at < kEntriesMax) entries_[at].store(call);
  }

 private:
  std::atomic<uint64_t>* count_;
  std::atomic<uint32_t>* entries_;
};

}  // namespace sluice::matrix
