// A table says what each command takes; one pass over the words separates flags from the rest, then the
// command's own words are read. Flags may stand anywhere; --timeout before `drain` is the RPC's, after it the
// drain's.
#include "args.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sluice::ctl {
namespace {

using std::chrono::milliseconds;

struct CommandSpec {
  std::string_view name;
  Command command;
  size_t words_min, words_max;  // after the command
  std::string_view takes;       // for the message when the number is wrong
};

constexpr size_t kMany = 5000;
constexpr CommandSpec kCommands[] = {
    {"status", Command::kStatus, 0, 0, "nothing"},
    {"clusters", Command::kClusters, 0, 1, "[CLUSTER]"},
    {"endpoints", Command::kEndpoints, 1, 1, "CLUSTER"},
    {"add", Command::kAdd, 2, kMany, "CLUSTER [NAME=]ADDRESS[@WEIGHT]..."},
    {"remove", Command::kRemove, 2, kMany, "CLUSTER NAME..."},
    {"reweight", Command::kReweight, 2, kMany, "CLUSTER NAME@WEIGHT..."},
    {"replace", Command::kReplace, 2, kMany, "CLUSTER [NAME=]ADDRESS[@WEIGHT]..."},
    {"drain-endpoint", Command::kDrainEndpoint, 2, kMany, "CLUSTER NAME..."},
    {"undrain-endpoint", Command::kUndrainEndpoint, 2, kMany, "CLUSTER NAME..."},
    {"reload", Command::kReload, 0, 0, "nothing"},
    {"metrics", Command::kMetrics, 0, 0, "nothing"},
    {"log-level", Command::kLogLevel, 0, 1, "[LEVEL]"},
    {"drain", Command::kDrain, 0, 0, "nothing but --timeout"},
    {"stop", Command::kStop, 0, 0, "nothing"},
    {"completion", Command::kCompletion, 1, 1, "bash or zsh"},
};

base::Error Bad(std::string why) {
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(why));
}
std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

base::Result<double> ParseWeight(std::string_view text) {
  const std::optional<double> weight = Number<double>(text);
  if (!weight || !std::isfinite(*weight) || *weight <= 0) {
    return Bad("weight " + Quoted(text) + ": must be a number above 0");
  }
  return *weight;
}

bool IsChange(Command command) { return command >= Command::kAdd && command <= Command::kUndrainEndpoint; }
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
        spec_ = Find(word);
        if (spec_ == nullptr) return Bad("no command " + Quoted(word));
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
    const auto* it =
        std::find_if(std::begin(kCommands), std::end(kCommands), [&](auto& c) { return c.name == name; });
    return it == std::end(kCommands) ? nullptr : it;
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
      return base::Ok();
    }
    if (flag != "--address" && flag != "--timeout" && flag != "--weight" && flag != "--if-version") {
      return Bad("no flag " + Quoted(flag));
    }
    base::Result<std::string_view> value = Value(flag, inline_value);
    if (!value.ok()) return value.error();
    return ValueFlag(flag, *value);
  }

  base::Status ValueFlag(std::string_view flag, std::string_view value) {
    if (flag == "--address") {
      args_.address = value;
    } else if (flag == "--timeout") {
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
      if (!version)
        return Bad("--if-version " + Quoted(value) + ": must be a version as `clusters` shows it");
      args_.if_version = *version;
    }
    return base::Ok();
  }

  base::Result<Args> Finish() {
    if (spec_ == nullptr) return Bad("a command is needed");
    args_.command = spec_->command;
    const std::string name(spec_->name);
    if (rest_.size() < spec_->words_min || rest_.size() > spec_->words_max) {
      return Bad(name + " takes " + std::string(spec_->takes));
    }
    if (!args_.address.starts_with("unix:/") && (args_.address.find(':') == std::string::npos)) {
      return Bad("address " + Quoted(args_.address) + ": must be unix:/path or host:port");
    }
    if (!IsChange(args_.command) && (args_.if_version || args_.preview)) {
      return Bad(name + " changes no endpoints: it takes neither --if-version nor --preview");
    }
    if (weight_ && !TakesWeight(args_.command)) return Bad(name + " takes no --weight");
    if (args_.command == Command::kLogLevel || args_.command == Command::kCompletion) {
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
      if (TakesWeight(args_.command))
        endpoint = with_address ? ParseEndpoint(rest_[i]) : ParseNamed(rest_[i]);
      if (!endpoint.ok()) return endpoint.error();
      if (!endpoint->weight) endpoint->weight = weight_;
      if (args_.command == Command::kReweight && !endpoint->weight) {
        return Bad(Quoted(rest_[i]) + " has no weight: write " + std::string(rest_[i]) +
                   "@2, or --weight 2 for all");
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
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr int64_t kDay = 24 * 3'600'000;
  for (auto [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<uint32_t> count = Number<uint32_t>(text.substr(0, text.size() - unit.size()));
    if (count && *count <= kDay / factor) return milliseconds(*count * factor);
  }
  return Bad(Quoted(text) + ": must be like 500ms, 30s, 2m or 1h, at most a day");
}

}  // namespace sluice::ctl
