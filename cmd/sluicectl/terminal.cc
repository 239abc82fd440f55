#include "sluicectl/terminal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "sluicectl/top_view.h"

namespace sluice::ctl {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // the other screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H", kEraseBelow = "\x1b[J";
constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Signals may be handled on a thread of gRPC's, so that no wait of ours ends by them: they write here.
int g_signals = -1;
volatile std::sig_atomic_t g_ended = 0, g_resized = 0;

void Tell(volatile std::sig_atomic_t& what) {
  const int error = errno;
  what = 1;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(g_signals, &one, sizeof(one));
  errno = error;
}

bool WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// `handler` null: the default.
void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  if (handler == nullptr) {
    action.sa_handler = SIG_DFL;
  } else {
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
  }
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

bool Terminal::Present() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

Terminal::Terminal() {
  ::tcgetattr(STDIN_FILENO, &saved_);
  g_signals = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int signal : kEnding) Handle(signal, [](int) { Tell(g_ended); });
  Handle(SIGWINCH, [](int) { Tell(g_resized); });
  termios raw = saved_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C stays a signal
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  WriteAll(kEnter);
}

Terminal::~Terminal() {
  WriteAll(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
  for (const int signal : kEnding) Handle(signal, nullptr);
  Handle(SIGWINCH, nullptr);
  ::close(g_signals);
}

Terminal::Size Terminal::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) return {};
  return {window.ws_row, window.ws_col};
}

bool Terminal::Draw(const std::string& text) const {
  const Size of = size();
  return WriteAll(std::string(kHome) + FitScreen(text, of.rows, of.columns) + std::string(kEraseBelow));
}

Terminal::Event Terminal::Wait(std::chrono::milliseconds time) const {
  std::array<pollfd, 2> fds{{{STDIN_FILENO, POLLIN, 0}, {g_signals, POLLIN, 0}}};
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    uint64_t told = 0;
    [[maybe_unused]] const ssize_t taken = ::read(g_signals, &told, sizeof(told));
    if (g_ended != 0) return Event::kQuit;
    if (g_resized != 0) {
      g_resized = 0;
      return Event::kResized;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready == 0) return Event::kTime;
    if (ready < 0 || fds[0].revents == 0) continue;  // a signal
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) <= 0 && errno != EINTR) return Event::kQuit;
    if (key == 'q' || key == 'Q' || key == 3 || key == 4) return Event::kQuit;
  }
}

}  // namespace sluice::ctl
