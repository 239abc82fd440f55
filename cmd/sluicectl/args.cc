// The command tree: what each command takes and which flags it has. Flags may stand anywhere; --timeout before `drain`
// is the RPC's, after it the drain's.
#include "sluicectl/args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "cli/command_line.h"
#include "sluicectl/command_table.h"
#include "sluicectl/completion.h"

namespace sluice::ctl {
namespace {

using cli::Bad;
using cli::Quoted;

constexpr char kFooter[] =
    R"(`sluicectl COMMAND --help` tells a command's flags. Of a limit NAME is as `limits` shows it.

Exit codes
  0  done
  1  the daemon refused or failed, or is not ready in time; standard error says why and what to do
  2  the command line is wrong
  3  no daemon answers at the address

Examples
  sluicectl add users c=10.0.0.7:50051@2 d=10.0.0.8:50051
  sluicectl why 5f3a9c1e-0-1a7
  sluicectl explain pkg.Users/Get -H x-user=ann
  sluicectl reweight users c d --weight 4 --preview
  sluicectl limit set cluster/users/rate --rate 500 --burst 50
  sluicectl fault add pkg.Users/Get --delay 100ms --percent 10 --for 60s
  sluicectl cache purge --service pkg.Users --method Get --key-hex 0a03616263
  sluicectl --address 127.0.0.1:9900 --json endpoints users)";

// Stores what `parse` makes of a flag's value.
template <typename T, typename Out>
cli::ReadValue Into(std::string_view flag, base::Result<T> (*parse)(std::string_view), Out* out) {
  return [flag, parse, out](std::string_view text) -> base::Status {
    base::Result<T> value = parse(text);
    if (!value.ok()) return Bad(std::string(flag) + " " + value.error().detail);
    *out = std::move(*value);
    return base::Ok();
  };
}

base::Result<std::string> ParseText(std::string_view text) { return std::string(text); }
base::Result<std::string> ParseNotEmpty(std::string_view text) {
  if (text.empty()) return Bad("needs a value");
  return std::string(text);
}

base::Result<bool> ParseReadyFor(std::string_view text) {
  if (text == "listening" || text == "endpoints") return text == "endpoints";
  return Bad("must be listening or endpoints");
}

base::Result<std::chrono::milliseconds> ParseTimeout(std::string_view text) {
  base::Result<std::chrono::milliseconds> timeout = ParseDuration(text);
  if (timeout.ok() && timeout->count() == 0) return Bad("must be more than 0");
  return timeout;
}

base::Result<std::chrono::milliseconds> ParseInterval(std::string_view text) {
  base::Result<std::chrono::milliseconds> interval = ParseDuration(text);
  if (!interval.ok()) return interval;
  const bool good = *interval >= std::chrono::milliseconds(100) && *interval <= std::chrono::hours(1);
  return good ? interval : Bad("must be 100ms to 1h");
}

class Parser {
 public:
  explicit Parser(std::string_view env_address) {
    args_.address = env_address.empty() ? kDefaultAddress : env_address;
    cli::SetUp(root_, "sluicectl " SLUICE_VERSION);
    AddFlags();
    for (const CommandSpec& spec : kCommands) AddCommand(spec);
    AddFlagsOfCommands();
    root_.footer(kFooter);
  }

  base::Result<Args> Parse(const std::vector<std::string>& words) {
    if (!words.empty() && words[0] == kCompleteCommand) {
      args_.timeout = std::chrono::seconds(1);  // a shell waits for it
      Complete(root_, {words.begin() + 1, words.end()}, &args_);
      return args_;
    }
    base::Result<std::string> text = cli::Parse(root_, words);
    if (!text.ok()) return text.error();
    if (text->empty()) return Finish();
    args_.text = std::move(*text);
    return args_;
  }

 private:
  // A command may have two names.
  std::vector<CLI::App*> AppsOf(Command command) const {
    std::vector<CLI::App*> found;
    for (size_t i = 0; i < apps_.size(); ++i) {
      if (kCommands[i].command == command) found.push_back(apps_[i]);
    }
    return found;
  }

  template <typename T, typename Out>
  static CLI::Option* Value(CLI::App& app, const char* name, const char* type, const char* help,
                            base::Result<T> (*parse)(std::string_view), Out* out) {
    return cli::AddValue(app, name, type, help, Into(name, parse, out));
  }

  // A flag of some commands. It may also stand before the command: there it belongs to the root, whose help does not
  // show it.
  template <typename T, typename Out>
  void Flag(std::initializer_list<Command> commands, const char* name, const char* type, const char* help,
            base::Result<T> (*parse)(std::string_view), Out* out) {
    early_.push_back(Value(root_, name, type, help, parse, out)->group(""));
    for (Command command : commands) {
      for (CLI::App* app : AppsOf(command)) Value(*app, name, type, help, parse, out);
    }
  }
  void Switch(std::initializer_list<Command> commands, const char* name, const char* help, bool* out) {
    early_.push_back(cli::AddSwitch(root_, name, help, out)->group(""));
    for (Command command : commands) {
      for (CLI::App* app : AppsOf(command)) cli::AddSwitch(*app, name, help, out);
    }
  }

  void AddFlags() {
    Value(root_, "--address", "ADDRESS",
          "unix:/path or host:port of the daemon's admin RPC (default: $SLUICE_ADMIN, else its own default)", ParseText,
          &args_.address);
    Value(root_, "--tls-ca", "FILE", "TLS: the authority of the daemon's certificate (PEM, as the next two)",
          ParseNotEmpty, &args_.tls.ca);
    Value(root_, "--tls-cert", "FILE", "TLS: our certificate; the daemon looks up in it what we may do", ParseNotEmpty,
          &args_.tls.certificate);
    Value(root_, "--tls-key", "FILE", "TLS: its key", ParseNotEmpty, &args_.tls.key);
    Value(root_, "--tls-server-name", "NAME", "TLS: the name in the daemon's certificate, if not the host in --address",
          ParseNotEmpty, &args_.tls.server_name);
    Value(root_, "--timeout", "DURATION",
          "for the daemon's answer (default 10s); after `drain` and `wait-ready` it is theirs", ParseTimeout,
          &args_.timeout);
    cli::AddSwitch(root_, "--json", "print the answer as JSON; 64-bit numbers are strings there", &args_.json);
  }

  void AddCommand(const CommandSpec& spec) {
    const size_t blank = spec.name.find(' ');
    CLI::App& parent = blank == spec.name.npos ? root_ : *root_.get_subcommand(std::string(spec.name.substr(0, blank)));
    CLI::App* app = parent.add_subcommand(std::string(spec.name.substr(blank + 1)), spec.help);
    app->group(&parent == &root_ ? spec.group : "Commands");
    if (spec.words_max > 0) cli::AddWords(*app, spec.takes, &words_)->type_name(spec.offers);
    apps_.push_back(app);
  }

  void AddFlagsOfCommands() {
    using C = Command;
    const auto changes = {C::kAdd,           C::kReplace,         C::kRemove, C::kReweight,
                          C::kDrainEndpoint, C::kUndrainEndpoint, C::kReset};
    const auto weigh = {C::kAdd, C::kReplace, C::kReweight};
    const auto set = {C::kLimitSet};
    const auto purge = {C::kCachePurge};
    Flag(weigh, "--weight", "W", "of the endpoints without @WEIGHT", ParseWeight, &args_.weight);
    const auto stand = {C::kAdd, C::kReplace};
    Flag(stand, "--priority", "N", "of these endpoints: 0 (the highest, the default) to 7", ParseCount,
         &args_.priority);
    Flag(stand, "--locality", "NAME", "where these endpoints are", ParseNotEmpty, &args_.locality);
    Flag(changes, "--if-version", "N", "only if the list is still at version N", ParseVersion, &args_.if_version);
    Switch(changes, "--preview", "say what would move, change nothing", &args_.preview);
    Switch({C::kConfigDump}, "--from-file", "the daemon's file as it is now, read and not taken", &args_.from_file);
    Switch({C::kRemove, C::kDrainEndpoint}, "--force",
           "also where the cluster would be left with none of its keys' owners", &args_.force);
    Flag({C::kDrainEndpoint}, "--over", "DURATION", "give the keys away little by little, each once; default: at once",
         ParseTimeout, &args_.over);
    Switch({C::kEndpoints}, "--why", "health: state, since when and why, last error, next probe; and its last changes",
           &args_.why);
    Switch({C::kUpgrade}, "--or-reload", "where the program's file is the one that runs: only a reload",
           &args_.or_reload);
    Switch({C::kTop}, "--once", "look twice, print one table and end", &args_.once);
    Flag({C::kTop}, "--interval", "DURATION", "between two looks: 100ms to 1h, default 2s", ParseInterval,
         &args_.interval);
    Flag(set, "--rate", "R", "calls a second, like 100 or 0.5; 0: no limit", ParseRate, &args_.limit.rate);
    Flag(set, "--burst", "N", "calls that may start at once after a pause", ParseCount, &args_.limit.burst);
    Flag(set, "--max", "N", "calls under way at once; 0: no limit", ParseCount, &args_.limit.max);
    Flag(set, "--queue", "N", "calls that may wait; the next is refused", ParseCount, &args_.limit.queue);
    Flag(set, "--queue-time", "DURATION", "how long a call may wait; 0: up to its deadline", ParseDuration,
         &args_.limit.queue_time);
    const auto fault = {C::kFaultAdd};
    // The root has these two of other commands.
    CLI::App& fault_add = *AppsOf(C::kFaultAdd)[0];
    Value(fault_add, "--delay", "DURATION", "wait for so long before the call goes on; part of its time", ParseDuration,
          &args_.fault.delay);
    Value(fault_add, "--for", "DURATION", "until it ends by itself; at most 1h", ParseTimeout, &args_.fault.time);
    Flag(fault, "--abort", "CODE", "end it with this gRPC code, like UNAVAILABLE", ParseNotEmpty, &args_.fault.abort);
    Flag(fault, "--reset-after", "N", "reset it behind so many messages of its response", ParseCount,
         &args_.fault.reset_after);
    Flag(fault, "--percent", "P", "of the calls, by chance: above 0, at most 100 (the default)", ParseNumber,
         &args_.fault.percent);
    Flag(purge, "--service", "S", "the responses of a service, like pkg.Service", ParseNotEmpty, &args_.purge.service);
    Flag(purge, "--method", "M", "and of one of its methods, like Get", ParseNotEmpty, &args_.purge.method);
    Flag(purge, "--key", "TEXT", "and to one request message: its bytes, literally", ParseText, &args_.purge.key);
    Flag(purge, "--key-hex", "HEX", "... its bytes in hex, like 0a03616263", ParseHex, &args_.purge.key);
    Flag(purge, "--key-file", "FILE", "... a file with its bytes, as `protoc --encode` writes them", ParseNotEmpty,
         &args_.purge.key_file);
    Value(*AppsOf(C::kDrain)[0], "--timeout", "DURATION", "finish what runs for at most so long", ParseDuration,
          &args_.drain_timeout);
    Value(*AppsOf(C::kWaitReady)[0], "--timeout", "DURATION", "wait for at most so long (default 60s)", ParseTimeout,
          &args_.wait);
    AddExplain();
    // Two commands have one of that name. Before the command it is a text until that is known.
    early_.push_back(Value(root_, "--for", "TEXT", "", ParseText, &early_for_)->group(""));
    Value(*AppsOf(C::kWaitReady)[0], "--for", "WHAT",
          "listening (the default): it accepts calls; endpoints: and in each cluster one endpoint takes calls",
          ParseReadyFor, &args_.for_endpoints);
    Flag({C::kDrain}, "--delay", "DURATION", "for so long of it accept new calls still; default: as configured",
         ParseDuration, &args_.drain_delay);
  }

  void AddExplain() {
    const auto explain = {Command::kExplain};
    cli::AddRepeated(*AppsOf(Command::kExplain)[0], "-H,--metadata", "NAME=VALUE",
                     "the call has this metadata; may be given again", [this](std::string_view text) {
                       auto one = ParseMetadata(text);
                       if (!one.ok()) return base::Status(Bad("-H " + one.error().detail));
                       args_.explain.metadata.push_back(std::move(*one));
                       return base::Ok();
                     });
    Flag(explain, "--listener", "NAME", "where it comes in; default: the first listener", ParseNotEmpty,
         &args_.explain.listener);
    Flag(explain, "--authority", "HOST", "its authority, like users.internal:50051; default: none", ParseNotEmpty,
         &args_.explain.authority);
    Flag(explain, "--content-type", "TYPE", "its content-type; default: application/grpc", ParseNotEmpty,
         &args_.explain.type);
    Switch(explain, "--plain", "it is plain HTTP: without content-type", &args_.explain.plain);
  }

  base::Result<Args> Finish() {
    const CLI::App* app = &root_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    const std::vector<std::string> surplus = cli::Surplus(root_);
    if (!app->get_subcommands({}).empty()) return NoCommand(*app, surplus);
    const CommandSpec& spec = kCommands[std::find(apps_.begin(), apps_.end(), app) - apps_.begin()];
    args_.command = spec.command;
    const std::string name(spec.name);
    if (words_.size() < spec.words_min || words_.size() > spec.words_max || !surplus.empty()) {
      const bool own_flags = app->get_options().size() > 1;  // besides --help
      return Bad(name + " takes " + (spec.words_max > 0 ? spec.takes : own_flags ? "nothing but flags" : "nothing"));
    }
    if (!args_.address.starts_with("unix:/") && (args_.address.find(':') == std::string::npos)) {
      return Bad("address " + Quoted(args_.address) + ": must be unix:/path or host:port");
    }
    const TlsArgs& tls = args_.tls;
    if (!(tls == TlsArgs{}) && (tls.ca.empty() || tls.certificate.empty() || tls.key.empty())) {
      return Bad("TLS needs --tls-ca, --tls-cert and --tls-key: the daemon asks for a certificate");
    }
    // A flag beside a command that does not know it is an error: it would change what it means.
    for (const CLI::Option* flag : early_) {
      const std::string flag_name = "--" + flag->get_lnames()[0];
      if (flag->count() == 0 || app->get_option_no_throw(flag_name) != nullptr) continue;
      return Bad(name + " takes no " + flag_name);
    }
    if (base::Status early = ReadEarlyFor(); !early.ok()) return early.error();
    if (base::Status flags = CheckFlags(*app); !flags.ok()) return flags.error();
    return ReadWords();
  }

  base::Status ReadEarlyFor() {
    if (early_for_.empty()) return base::Ok();
    if (args_.command == Command::kWaitReady) {
      const auto value = ParseReadyFor(early_for_);
      if (!value.ok()) return Bad("--for " + value.error().detail);
      args_.for_endpoints = *value;
    } else {
      const auto value = ParseTimeout(early_for_);
      if (!value.ok()) return Bad("--for " + value.error().detail);
      args_.fault.time = *value;
    }
    return base::Ok();
  }

  // The command line ends before a command does, or goes on with a word that is none.
  static base::Error NoCommand(const CLI::App& app, const std::vector<std::string>& surplus) {
    const bool root = app.get_parent() == nullptr;
    if (root) return Bad(surplus.empty() ? "a command is needed" : "no command " + Quoted(surplus[0]));
    std::string choices;
    for (const CLI::App* command : app.get_subcommands({})) {
      choices += (choices.empty() ? app.get_name() + " takes " : " or ") + command->get_name();
    }
    return Bad(surplus.empty() ? choices : "no command " + Quoted(app.get_name() + " " + surplus[0]) + ": " + choices);
  }

  base::Status CheckFlags(const CLI::App& app) const {
    const auto given = [&](const char* flag) { return root_.count(flag) + app.count(flag) > 0; };
    if (args_.command == Command::kLimitSet && args_.limit == LimitArgs{}) {
      return Bad("limit set needs --rate, --burst, --max, --queue or --queue-time");
    }
    if (args_.command == Command::kFaultAdd) {
      if (args_.fault.time.count() == 0) return Bad("fault add needs --for, the time until it ends by itself");
      if (args_.fault.delay.count() == 0 && args_.fault.abort.empty() && !args_.fault.reset_after)
        return Bad("fault add needs --delay, --abort or --reset-after");
    }
    if (args_.explain.plain && args_.explain.type) return Bad("one of --plain and --content-type is enough");
    if (args_.command == Command::kTop && args_.json)
      return Bad("top takes no --json: `clusters`, `limits` and `metrics` do");
    if (args_.command != Command::kCachePurge) return base::Ok();
    if (given("--method") && !given("--service")) return Bad("--method needs --service");
    const int keys = given("--key") + given("--key-hex") + given("--key-file");
    if (keys > 1) return Bad("one of --key, --key-hex and --key-file is enough");
    if (keys > 0 && !given("--method")) {
      return Bad("a key needs --service and --method: it is a request of that method");
    }
    return base::Ok();
  }

  base::Result<Args> ReadWords() {
    const Command command = args_.command;
    if (command == Command::kCompletion) {
      args_.command = Command::kPrint;
      args_.text = CompletionScript(words_[0]);
      if (args_.text.empty()) return Bad("completion takes bash or zsh");
    } else if (command == Command::kLogLevel || command == Command::kLimitSet || command == Command::kLimitReset ||
               command == Command::kWhy || command == Command::kFaultAdd) {
      if (!words_.empty()) args_.word = words_[0];
    } else if (command == Command::kExplain) {
      // As `fault add` takes a method.
      const bool bare = !words_[0].starts_with('/') && words_[0].find('/') != words_[0].npos;
      args_.word = (bare ? "/" : "") + words_[0];
    } else if (command == Command::kFaultRemove) {
      base::Result<uint64_t> id = ParseVersion(words_[0]);
      if (!id.ok()) return Bad(Quoted(words_[0]) + " is no id: `sluicectl fault list` shows them");
      args_.fault.id = *id;
    } else if (command == Command::kConfigDiff) {
      if (!words_.empty()) args_.file = words_[0];
    } else if (!words_.empty()) {
      args_.cluster = words_[0];
      return ReadEndpoints();
    }
    return args_;
  }

  base::Result<Args> ReadEndpoints() {
    const bool reweight = args_.command == Command::kReweight;
    const bool with_address = args_.command == Command::kAdd || args_.command == Command::kReplace;
    for (size_t i = 1; i < words_.size(); ++i) {
      base::Result<EndpointArg> endpoint = EndpointArg{words_[i], "", std::nullopt};
      if (with_address || reweight) endpoint = with_address ? ParseEndpoint(words_[i]) : ParseNamed(words_[i]);
      if (!endpoint.ok()) return endpoint.error();
      if (!endpoint->weight) endpoint->weight = args_.weight;
      if (reweight && !endpoint->weight) {
        return Bad(Quoted(words_[i]) + " has no weight: write " + words_[i] + "@2, or --weight 2 for all");
      }
      args_.endpoints.push_back(*endpoint);
    }
    return args_;
  }

  Args args_;
  CLI::App root_{"sluicectl: looks at and changes a running sluice daemon", "sluicectl"};
  std::vector<CLI::App*> apps_;      // as kCommands
  std::string early_for_;            // --for before the command
  std::vector<CLI::Option*> early_;  // flags of commands where they belong to the root
  std::vector<std::string> words_;   // after the command
};

}  // namespace

base::Result<Args> ParseArgs(const std::vector<std::string>& words, std::string_view env_address) {
  return Parser(env_address).Parse(words);
}

}  // namespace sluice::ctl
