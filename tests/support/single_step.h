// SingleStep: counts what a stretch of this thread's code executes, exactly, by stepping through it with the
// processor's trap flag: instructions, and atomic read-modify-writes with the place and the memory of each. No
// privileges and no other program are needed. About a microsecond an instruction, so step through some ten calls, not
// through thousands.
//
//   SingleStep step;
//   step.Start(); Work(); step.Stop();
//   step.rmws();  // by place, most frequent first
//
// x86-64 on Linux only (Available()). One at a time; the thread must not have SIGTRAP blocked; not under a debugger.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#if defined(__x86_64__) && defined(__linux__) && !defined(SLUICE_SANITIZED)
#define SLUICE_SINGLE_STEP 1
#include <ucontext.h>
#endif

namespace sluice::test {

class SingleStep {
 public:
  // One executed `lock`-prefixed instruction, or exchange with memory (which locks by itself; a seq_cst store is one).
  struct Rmw {
    uintptr_t place;   // the instruction's address
    uintptr_t memory;  // what it wrote
  };
  static constexpr size_t kRmwsMax = 1 << 16;

  static constexpr bool Available() {
#ifdef SLUICE_SINGLE_STEP
    return true;
#else
    return false;
#endif
  }

#ifdef SLUICE_SINGLE_STEP
  SingleStep() {
    rmws_.reserve(kRmwsMax);  // the handler may not allocate
    struct sigaction action {};
    action.sa_sigaction = OnTrap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
  }
  ~SingleStep() { sigaction(SIGTRAP, &before_, nullptr); }
  [[gnu::noinline]] void Start() {
    current_ = this;
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory");
  }
  [[gnu::noinline]] void Stop() {
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory");
    current_ = nullptr;
  }
#else
  void Start() {}
  void Stop() {}
#endif
  SingleStep(const SingleStep&) = delete;
  SingleStep& operator=(const SingleStep&) = delete;

  // Of all stretches together, with some ten of Start and Stop. A repeated string instruction counts once a round.
  uint64_t instructions() const { return instructions_; }
  const std::vector<Rmw>& rmws() const { return rmws_; }
  bool complete() const { return lost_ == 0; }  // there was room for all

 private:
#ifdef SLUICE_SINGLE_STEP
  // The processor traps after each instruction: `context` shows the next one, with its operands' registers.
  static void OnTrap(int, siginfo_t*, void* context) {
    SingleStep* self = current_;
    if (self == nullptr) return;
    ++self->instructions_;
    const greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    Rmw found{};
    if (!Decode(registers, found)) return;
    if (self->rmws_.size() < kRmwsMax) {
      self->rmws_.push_back(found);
    } else {
      ++self->lost_;
    }
  }

  // Intel SDM volume 2, chapter 2: prefixes, opcode, ModRM, SIB, displacement.
  static bool Decode(const greg_t* registers, Rmw& out) {
    const auto* const start = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
    const uint8_t* p = start;
    bool lock = false;
    uint8_t rex = 0;
    for (;; ++p) {
      if (*p == 0xF0) {
        lock = true;
      } else if ((*p & 0xF0) == 0x40) {
        rex = *p;
      } else if (*p != 0x66 && *p != 0x67 && *p != 0xF2 && *p != 0xF3 && *p != 0x2E && *p != 0x36 && *p != 0x3E &&
                 *p != 0x26 && *p != 0x64 && *p != 0x65) {
        break;
      }
    }
    const bool exchange = *p == 0x86 || *p == 0x87;
    if (!lock && !exchange) return false;
    size_t immediate = *p == 0x80 || *p == 0x83 || (p[0] == 0x0F && p[1] == 0xBA) ? 1 : *p == 0x81 ? 4 : 0;
    p += *p == 0x0F ? 2 : 1;
    const uint8_t modrm = *p++, mod = modrm >> 6;
    if (mod == 3) return false;  // registers only
    // In the order of the processor's numbers.
    static constexpr int kRegister[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                          REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    uintptr_t memory = 0;
    uint8_t base = modrm & 7;
    bool no_base = mod == 0 && base == 5, relative = no_base;
    if (base == 4) {
      const uint8_t sib = *p++;
      const int index = (sib >> 3 & 7) | (rex & 2) << 2;
      base = sib & 7;
      no_base = mod == 0 && base == 5;
      if (index != 4) memory += static_cast<uintptr_t>(registers[kRegister[index]]) << (sib >> 6);
    }
    if (!no_base) memory += static_cast<uintptr_t>(registers[kRegister[base | (rex & 1) << 3]]);
    if (mod == 1) {
      memory += static_cast<uintptr_t>(static_cast<int8_t>(*p++));
    } else if (mod == 2 || no_base) {
      int32_t displacement;
      std::memcpy(&displacement, p, 4);
      memory += static_cast<uintptr_t>(displacement);
      p += 4;
    }
    if (relative) memory += reinterpret_cast<uintptr_t>(p) + immediate;
    out = {reinterpret_cast<uintptr_t>(start), memory};
    return true;
  }

  static inline SingleStep* current_ = nullptr;
  struct sigaction before_ {};
#endif
  uint64_t instructions_ = 0, lost_ = 0;
  std::vector<Rmw> rmws_;
};

}  // namespace sluice::test
