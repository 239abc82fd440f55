// sluicectl: the command line of the admin API.
#include <cstdio>
#include <cstdlib>

#include "sluicectl/args.h"
#include "sluicectl/default_address.h"
#include "sluicectl/run.h"

int main(int argc, char** argv) {
  namespace ctl = sluice::ctl;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const char* env = std::getenv("SLUICE_ADMIN");
  sluice::base::Result<std::string> found = std::string(env == nullptr ? "" : env);
  if (found->empty())
    found = ctl::FindAddress(ctl::AdminSockets(std::getenv("RUNTIME_DIRECTORY"), std::getenv("XDG_RUNTIME_DIR")));
  constexpr const char* kNone = "unix:/";  // unless the command line has an address
  sluice::base::Result<ctl::Args> args = ctl::ParseArgs(words, found.ok() ? *found : kNone);
  if (!found.ok() && args.ok() && args->command != ctl::Command::kPrint && args->address == kNone) args = found.error();
  if (!args.ok()) {
    std::fprintf(stderr, "sluicectl: %s\n  `sluicectl --help` shows all commands\n", args.error().detail.c_str());
    return ctl::kUsage;
  }
  const int code = ctl::Run(*args);
  // gRPC's threads outlive main and use what static destructors destroy: without this, one exit in many is a crash, and
  // another code than the command's.
  std::fflush(stdout);
  std::_Exit(code);
}
