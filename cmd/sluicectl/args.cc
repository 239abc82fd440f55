// A table says what each command takes; one pass over the words separates flags from the rest, then the
// command's own words are read. Flags may stand anywhere; --timeout before `drain` is the RPC's, after it the
// drain's.
#include "args.h"

#include <algorithm>
#include <cmath>

#include "values.h"

namespace sluice::ctl {
namespace {

using std::chrono::milliseconds;

// The flags that only some commands take, as bits of CommandSpec::flags.
enum FlagBit : uint32_t {
  kWeight = 1 << 0,
  kIfVersion = 1 << 1,
  kPreview = 1 << 2,
  kRate = 1 << 3,
  kBurst = 1 << 4,
  kMax = 1 << 5,
  kQueue = 1 << 6,
  kService = 1 << 7,
  kMethod = 1 << 8,
  kKey = 1 << 9,
  kKeyHex = 1 << 10,
  kKeyFile = 1 << 11,
};
constexpr uint32_t kChangeFlags = kIfVersion | kPreview;
constexpr uint32_t kLimitFlags = kRate | kBurst | kMax | kQueue;
constexpr uint32_t kKeyFlags = kKey | kKeyHex | kKeyFile;

struct CommandSpec {
  std::string_view name;  // one word, or two
  Command command;
  size_t words_min, words_max;  // after the command
  std::string_view takes;       // for the message when the number is wrong
  uint32_t flags = 0;
};

constexpr size_t kMany = 5000;
constexpr CommandSpec kCommands[] = {
    {"status", Command::kStatus, 0, 0, "nothing"},
    {"clusters", Command::kClusters, 0, 1, "[CLUSTER]"},
    {"endpoints", Command::kEndpoints, 1, 1, "CLUSTER"},
    {"add", Command::kAdd, 2, kMany, "CLUSTER [NAME=]ADDRESS[@WEIGHT]...", kWeight | kChangeFlags},
    {"remove", Command::kRemove, 2, kMany, "CLUSTER NAME...", kChangeFlags},
    {"reweight", Command::kReweight, 2, kMany, "CLUSTER NAME@WEIGHT...", kWeight | kChangeFlags},
    {"replace", Command::kReplace, 2, kMany, "CLUSTER [NAME=]ADDRESS[@WEIGHT]...", kWeight | kChangeFlags},
    {"drain-endpoint", Command::kDrainEndpoint, 2, kMany, "CLUSTER NAME...", kChangeFlags},
    {"undrain-endpoint", Command::kUndrainEndpoint, 2, kMany, "CLUSTER NAME...", kChangeFlags},
    {"limits", Command::kLimits, 0, 0, "nothing"},
    {"certs", Command::kCerts, 0, 0, "nothing"},
    {"limit set", Command::kLimitSet, 1, 1, "NAME and --rate, --burst, --max or --queue", kLimitFlags},
    {"limit reset", Command::kLimitReset, 1, 1, "NAME"},
    {"cache stats", Command::kCacheStats, 0, 0, "nothing"},
    {"cache purge", Command::kCachePurge, 0, 0, "nothing but flags", kService | kMethod | kKeyFlags},
    {"reload", Command::kReload, 0, 0, "nothing"},
    {"metrics", Command::kMetrics, 0, 0, "nothing"},
    {"log-level", Command::kLogLevel, 0, 1, "[LEVEL]"},
    {"drain", Command::kDrain, 0, 0, "nothing but --timeout"},
    {"stop", Command::kStop, 0, 0, "nothing"},
    {"completion", Command::kCompletion, 1, 1, "bash or zsh"},
};

constexpr std::pair<std::string_view, uint32_t> kValueFlags[] = {
    {"--address", 0},  // of every command
    {"--timeout", 0},  // of every command
    {"--tls-ca", 0},   // of every command, as the other --tls-*
    {"--tls-cert", 0},
    {"--tls-key", 0},
    {"--tls-server-name", 0},
    {"--weight", kWeight},
    {"--if-version", kIfVersion},
    {"--rate", kRate},
    {"--burst", kBurst},
    {"--max", kMax},
    {"--queue", kQueue},
    {"--service", kService},
    {"--method", kMethod},
    {"--key", kKey},
    {"--key-hex", kKeyHex},
    {"--key-file", kKeyFile},
};

base::Result<double> ParseWeight(std::string_view text) {
  const std::optional<double> weight = Number<double>(text);
  if (!weight || !std::isfinite(*weight) || *weight <= 0) {
    return Bad("weight " + Quoted(text) + ": must be a number above 0");
  }
  return *weight;
}

bool TakesWeight(Command command) {
  return command == Command::kAdd || command == Command::kReplace || command == Command::kReweight;
}

class Parser {
 public:
  Parser(const std::vector<std::string_view>& words, std::string_view env_address) : words_(words) {
    args_.address = env_address.empty() ? kDefaultAddress : env_address;
  }

  base::Result<Args> Parse() {
    if (words_.empty()) return Bad("a command is needed");
    bool flags_over = false;
    for (next_ = 0; next_ < words_.size();) {
      const std::string_view word = words_[next_++];
      if (!flags_over && word == "--") {
        flags_over = true;
      } else if (!flags_over && word.size() > 1 && word.starts_with('-')) {
        if (base::Status flag = Flag(word); !flag.ok()) return flag.error();
      } else if (spec_ == nullptr) {
        if (base::Status command = Word(word); !command.ok()) return command.error();
      } else {
        rest_.push_back(word);
      }
    }
    if (help_ || version_) {
      args_.command = help_ ? Command::kHelp : Command::kVersion;
      return args_;
    }
    return Finish();
  }

 private:
  static const CommandSpec* Find(std::string_view name) {
    const auto* it = std::find_if(std::begin(kCommands), std::end(kCommands), [&](auto& c) { return c.name == name; });
    return it == std::end(kCommands) ? nullptr : it;
  }

  // A command's first word, or the second after a group's.
  base::Status Word(std::string_view word) {
    std::string name(word);
    if (!group_.empty()) name = std::string(group_) + " " + name;
    spec_ = Find(name);
    if (spec_ != nullptr) return base::Ok();
    if (!group_.empty()) return Bad("no command " + Quoted(name) + ": " + Choices(group_));
    if (Choices(word).empty()) return Bad("no command " + Quoted(word));
    group_ = word;
    return base::Ok();
  }

  // "limit takes set or reset"; empty if `group` begins no command.
  static std::string Choices(std::string_view group) {
    std::string choices;
    for (const CommandSpec& spec : kCommands) {
      if (!spec.name.starts_with(std::string(group) + " ")) continue;
      choices += choices.empty() ? std::string(group) + " takes " : " or ";
      choices += spec.name.substr(group.size() + 1);
    }
    return choices;
  }

  // A flag's value: after "=", or the next word.
  base::Result<std::string_view> Value(std::string_view flag, std::optional<std::string_view> inline_value) {
    if (inline_value) return *inline_value;
    if (next_ == words_.size()) return Bad(std::string(flag) + " needs a value");
    return words_[next_++];
  }

  base::Status Flag(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view flag = word.substr(0, equals);
    std::optional<std::string_view> inline_value;
    if (equals != word.npos) inline_value = word.substr(equals + 1);
    for (auto [name, target] : {std::pair<std::string_view, bool*>{"--json", &args_.json},
                                {"--preview", &args_.preview},
                                {"--help", &help_},
                                {"-h", &help_},
                                {"--version", &version_}}) {
      if (flag != name) continue;
      if (inline_value) return Bad(std::string(flag) + " takes no value");
      *target = true;
      if (target == &args_.preview) given_ |= kPreview;
      return base::Ok();
    }
    const auto* known =
        std::find_if(std::begin(kValueFlags), std::end(kValueFlags), [&](auto& f) { return f.first == flag; });
    if (known == std::end(kValueFlags)) return Bad("no flag " + Quoted(flag));
    base::Result<std::string_view> value = Value(flag, inline_value);
    if (!value.ok()) return value.error();
    given_ |= known->second;
    if ((known->second & kLimitFlags) != 0) return LimitFlag(flag, *value);
    if ((known->second & (kService | kMethod | kKeyFlags)) != 0) return PurgeFlag(flag, *value);
    return ValueFlag(flag, *value);
  }

  base::Status ValueFlag(std::string_view flag, std::string_view value) {
    for (auto [name, target] : {std::pair<std::string_view, std::string*>{"--address", &args_.address},
                                {"--tls-ca", &args_.tls.ca},
                                {"--tls-cert", &args_.tls.certificate},
                                {"--tls-key", &args_.tls.key},
                                {"--tls-server-name", &args_.tls.server_name}}) {
      if (flag != name) continue;
      if (value.empty() && target != &args_.address) return Bad(std::string(flag) + " needs a value");
      *target = value;
      return base::Ok();
    }
    if (flag == "--timeout") {
      base::Result<milliseconds> duration = ParseDuration(value);
      if (!duration.ok()) return Bad("--timeout " + duration.error().detail);
      if (spec_ != nullptr && spec_->command == Command::kDrain) {
        args_.drain_timeout = *duration;
      } else if (duration->count() == 0) {
        return Bad("--timeout must be more than 0");
      } else {
        args_.timeout = *duration;
      }
    } else if (flag == "--weight") {
      base::Result<double> weight = ParseWeight(value);
      if (!weight.ok()) return weight.error();
      weight_ = *weight;
    } else {
      const std::optional<uint64_t> version = Number<uint64_t>(value);
      if (!version) return Bad("--if-version " + Quoted(value) + ": must be a version as `clusters` shows it");
      args_.if_version = *version;
    }
    return base::Ok();
  }

  base::Status LimitFlag(std::string_view flag, std::string_view value) {
    if (flag == "--rate") {
      base::Result<double> rate = ReadRate(flag, value);
      if (!rate.ok()) return rate.error();
      args_.limit.rate = *rate;
      return base::Ok();
    }
    base::Result<uint32_t> count = ReadCount(flag, value);
    if (!count.ok()) return count.error();
    (flag == "--burst" ? args_.limit.burst : flag == "--max" ? args_.limit.max : args_.limit.queue) = *count;
    return base::Ok();
  }

  base::Status PurgeFlag(std::string_view flag, std::string_view value) {
    if (value.empty() && flag != "--key" && flag != "--key-hex") return Bad(std::string(flag) + " needs a value");
    if (flag == "--service" || flag == "--method") {
      (flag == "--service" ? args_.purge.service : args_.purge.method) = value;
    } else if (flag == "--key-file") {
      args_.purge.key_file = value;
    } else if (flag == "--key") {
      args_.purge.key = value;
    } else {
      base::Result<std::string> bytes = ReadHex(flag, value);
      if (!bytes.ok()) return bytes.error();
      args_.purge.key = std::move(*bytes);
    }
    return base::Ok();
  }

  // Flags that stand beside a command that does not know them are an error: they would change what it means.
  base::Status CheckFlags() const {
    if ((given_ & kPreview & ~spec_->flags) != 0) return Bad(std::string(spec_->name) + " takes no --preview");
    for (const auto& [flag, bit] : kValueFlags) {
      if ((given_ & bit & ~spec_->flags) != 0) return Bad(std::string(spec_->name) + " takes no " + std::string(flag));
    }
    if (spec_->command == Command::kLimitSet && (given_ & kLimitFlags) == 0) {
      return Bad("limit set needs --rate, --burst, --max or --queue");
    }
    if ((given_ & kMethod) != 0 && (given_ & kService) == 0) return Bad("--method needs --service");
    const uint32_t keys = given_ & kKeyFlags;
    if ((keys & (keys - 1)) != 0) return Bad("one of --key, --key-hex and --key-file is enough");
    if (keys != 0 && (given_ & kMethod) == 0) {
      return Bad("a key needs --service and --method: it is a request of that method");
    }
    return base::Ok();
  }

  base::Result<Args> Finish() {
    if (spec_ == nullptr) return Bad(group_.empty() ? "a command is needed" : Choices(group_));
    args_.command = spec_->command;
    const std::string name(spec_->name);
    if (rest_.size() < spec_->words_min || rest_.size() > spec_->words_max) {
      return Bad(name + " takes " + std::string(spec_->takes));
    }
    if (!args_.address.starts_with("unix:/") && (args_.address.find(':') == std::string::npos)) {
      return Bad("address " + Quoted(args_.address) + ": must be unix:/path or host:port");
    }
    const TlsArgs& tls = args_.tls;
    if (!(tls == TlsArgs{}) && (tls.ca.empty() || tls.certificate.empty() || tls.key.empty())) {
      return Bad("TLS needs --tls-ca, --tls-cert and --tls-key: the daemon asks for a certificate");
    }
    if (base::Status flags = CheckFlags(); !flags.ok()) return flags.error();
    if (args_.command == Command::kLogLevel || args_.command == Command::kCompletion ||
        args_.command == Command::kLimitSet || args_.command == Command::kLimitReset) {
      if (!rest_.empty()) args_.word = rest_[0];
      if (args_.command == Command::kCompletion && CompletionScript(args_.word).empty()) {
        return Bad("completion takes bash or zsh");
      }
      return args_;
    }
    if (!rest_.empty()) args_.cluster = rest_[0];
    return ReadEndpoints();
  }

  base::Result<Args> ReadEndpoints() {
    const bool with_address = args_.command == Command::kAdd || args_.command == Command::kReplace;
    for (size_t i = 1; i < rest_.size(); ++i) {
      base::Result<EndpointArg> endpoint = EndpointArg{std::string(rest_[i]), "", std::nullopt};
      if (TakesWeight(args_.command)) endpoint = with_address ? ParseEndpoint(rest_[i]) : ParseNamed(rest_[i]);
      if (!endpoint.ok()) return endpoint.error();
      if (!endpoint->weight) endpoint->weight = weight_;
      if (args_.command == Command::kReweight && !endpoint->weight) {
        return Bad(Quoted(rest_[i]) + " has no weight: write " + std::string(rest_[i]) + "@2, or --weight 2 for all");
      }
      args_.endpoints.push_back(*endpoint);
    }
    return args_;
  }

  const std::vector<std::string_view>& words_;
  size_t next_ = 0;
  Args args_;
  const CommandSpec* spec_ = nullptr;
  std::vector<std::string_view> rest_;
  std::string_view group_;  // "limit" or "cache", until the second word is there
  uint32_t given_ = 0;      // FlagBits
  std::optional<double> weight_;
  bool help_ = false, version_ = false;
};

}  // namespace

base::Result<Args> ParseArgs(const std::vector<std::string_view>& words, std::string_view env_address) {
  return Parser(words, env_address).Parse();
}

base::Result<EndpointArg> ParseNamed(std::string_view text) {
  EndpointArg endpoint;
  if (const size_t at = text.rfind('@'); at != text.npos && Number<double>(text.substr(at + 1))) {
    base::Result<double> weight = ParseWeight(text.substr(at + 1));
    if (!weight.ok()) return Bad(Quoted(text) + ": " + weight.error().detail);
    endpoint.weight = *weight;
    text = text.substr(0, at);
  }
  if (text.empty()) return Bad("an endpoint's name is empty");
  endpoint.name = text;
  return endpoint;
}

base::Result<EndpointArg> ParseEndpoint(std::string_view text) {
  base::Result<EndpointArg> endpoint = ParseNamed(text);
  if (!endpoint.ok()) return endpoint;
  endpoint->address = std::move(endpoint->name);
  endpoint->name.clear();
  const size_t equals = endpoint->address.find('=');
  if (equals != std::string::npos && endpoint->address.find_first_of(":/") > equals) {
    endpoint->name = endpoint->address.substr(0, equals);
    endpoint->address.erase(0, equals + 1);
    if (endpoint->name.empty()) return Bad(Quoted(text) + ": nothing before =");
  }
  if (endpoint->address.find(':') == std::string::npos) {
    return Bad(Quoted(text) + ": must be [NAME=]ADDRESS[@WEIGHT], the address host:port or unix:/path");
  }
  return endpoint;
}

base::Result<milliseconds> ParseDuration(std::string_view text) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr int64_t kDay = 24 * 3'600'000;
  for (auto [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<uint32_t> count = Number<uint32_t>(text.substr(0, text.size() - unit.size()));
    if (count && *count <= kDay / factor) return milliseconds(*count * factor);
  }
  return Bad(Quoted(text) + ": must be like 500ms, 30s, 2m or 1h, at most a day");
}

}  // namespace sluice::ctl
