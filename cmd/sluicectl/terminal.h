// Terminal: a screen of our own that is drawn again and again, and the terminal as it was when this is destroyed.
#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace sluice::ctl {

class Terminal {
 public:
  // Both standard input and output are terminals.
  static bool Present();
  // Saves the terminal's state, turns echo and lines off and shows an empty screen. One at a time.
  Terminal();
  // Puts everything back. SIGINT, SIGTERM, SIGHUP and SIGQUIT end Wait meanwhile, so that this runs.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    size_t rows = 24, columns = 80;
  };
  Size size() const;
  // False: it cannot be written to.
  bool Draw(const std::string& text) const;

  enum class Event { kTime, kResized, kQuit };
  // kQuit: q, Ctrl-C, Ctrl-D, the end of the input, or a signal to end. Other keys do nothing.
  Event Wait(std::chrono::milliseconds time) const;

 private:
  termios saved_{};
};

}  // namespace sluice::ctl
