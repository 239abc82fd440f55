// sluicectl: the command line of the admin API.
#include <cstdio>
#include <cstdlib>

#include "sluicectl/args.h"
#include "sluicectl/run.h"

int main(int argc, char** argv) {
  namespace ctl = sluice::ctl;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const char* env = std::getenv("SLUICE_ADMIN");
  const sluice::base::Result<ctl::Args> args = ctl::ParseArgs(words, env == nullptr ? "" : env);
  if (!args.ok()) {
    std::fprintf(stderr, "sluicectl: %s\n  `sluicectl --help` shows all commands\n", args.error().detail.c_str());
    return ctl::kUsage;
  }
  return ctl::Run(*args);
}
