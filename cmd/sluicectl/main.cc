// sluicectl: the command line of the admin API.
#include <cstdio>
#include <cstdlib>

#include "args.h"
#include "run.h"

int main(int argc, char** argv) {
  namespace ctl = sluice::ctl;
  const std::vector<std::string_view> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const char* env = std::getenv("SLUICE_ADMIN");
  sluice::base::Result<ctl::Args> args = ctl::ParseArgs(words, env == nullptr ? "" : env);
  if (!args.ok()) {
    std::fprintf(stderr, "sluicectl: %s\n  `sluicectl --help` shows all commands\n", args.error().detail.c_str());
    return ctl::kUsage;
  }
  std::string_view text;
  switch (args->command) {
    case ctl::Command::kHelp:
      text = ctl::Usage();
      break;
    case ctl::Command::kVersion:
      text = "sluicectl " SLUICE_VERSION "\n";
      break;
    case ctl::Command::kCompletion:
      text = ctl::CompletionScript(args->word);
      break;
    default:
      return ctl::Run(*args);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? ctl::kDone : ctl::kRefused;
}
