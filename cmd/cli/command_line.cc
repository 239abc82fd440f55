#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace sluice::cli {
namespace {

// CLI11 stops reading words at "--" once a command has as many as it must have, and takes [a] apart as a list, unless
// exactly this many are expected.
constexpr int kWordsMax = 5000;

class HelpLayout : public CLI::Formatter {
 public:
  HelpLayout() {
    column_width(32);
    label("OPTIONS", "FLAG...");
    label("SUBCOMMAND", "COMMAND");
  }
  // CLI11 writes an empty line behind a group of flags that a hidden group follows, though the next part begins with
  // one, and one at the end where there is no footer.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = Formatter::make_help(app, std::move(name), mode);
    for (size_t at; (at = text.find("\n\n\n")) != text.npos;) text.erase(at, 1);
    if (text.ends_with("\n\n")) text.pop_back();
    return text;
  }
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    return Formatter::make_group(group == "Options" ? "Flags" : group, positional, options);
  }
  // The words of a command stand in its usage line, and behind its name in the list of commands.
  std::string make_positionals(const CLI::App*) const override { return ""; }
  std::string make_option_usage(const CLI::Option* option) const override { return option->get_option_text(); }
  std::string make_subcommand(const CLI::App* command) const override {
    const auto words = command->get_options([](const CLI::Option* option) { return option->get_positional(); });
    std::stringstream out;
    CLI::detail::format_help(out, command->get_name() + (words.empty() ? "" : " " + words[0]->get_option_text()),
                             command->get_description(), get_column_width());
    return out.str();
  }
};

[[noreturn]] void Fail(std::string why) { throw CLI::ValidationError(std::move(why), CLI::ExitCodes::ValidationError); }

}  // namespace

base::Error Bad(std::string why) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(why)); }

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

void SetUp(CLI::App& app, std::string version) {
  app.formatter(std::make_shared<HelpLayout>());
  app.set_help_flag("-h,--help", "this text; after a command, the text of that command");
  app.set_version_flag("--version", std::move(version), "print the version");
  app.fallthrough();
  app.allow_extras();
  app.require_subcommand(0, 1);  // a word after a command is no second one
}

CLI::Option* AddValue(CLI::App& app, std::string names, std::string type, std::string help, ReadValue read) {
  const auto store = [read = std::move(read)](const CLI::results_t& values) {
    if (base::Status status = read(values.back()); !status.ok()) Fail(status.error().detail);
    return true;
  };
  return app.add_option(std::move(names), store, std::move(help))
      ->type_name(std::move(type))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* AddRepeated(CLI::App& app, std::string names, std::string type, std::string help, ReadValue read) {
  const auto store = [read = std::move(read)](const CLI::results_t& values) {
    for (const std::string& value : values) {
      if (base::Status status = read(value); !status.ok()) Fail(status.error().detail);
    }
    return true;
  };
  return app.add_option(std::move(names), store, std::move(help))
      ->type_name(std::move(type))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
}

CLI::Option* AddText(CLI::App& app, std::string names, std::string type, std::string help, std::string* out) {
  return AddValue(app, std::move(names), std::move(type), std::move(help), [out](std::string_view value) {
    *out = value;
    return base::Ok();
  });
}

CLI::Option* AddSwitch(CLI::App& app, std::string names, std::string help, bool* out) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const auto store = [name, out](const CLI::results_t& values) {
    if (values.back() != "true") Fail(name + " takes no value");
    return *out = true;
  };
  CLI::Option* option = app.add_option(std::move(names), store, std::move(help));
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->expected(0);
}

CLI::Option* AddWords(CLI::App& app, std::string shown, std::vector<std::string>* out) {
  const auto store = [out](const CLI::results_t& words) {
    *out = words;
    return true;
  };
  return app.add_option("words", store)
      ->option_text(std::move(shown))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(kWordsMax)
      ->allow_extra_args(false);
}

std::vector<std::string> Surplus(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  std::erase(words, "--");
  return words;
}

base::Result<std::string> Parse(CLI::App& app, std::vector<std::string> words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == "++") return Bad("no flag \"++\"");  // CLI11 would end the command there and drop the word
    if (!words[i].starts_with("--") || words[i].find('=') + 1 != words[i].size()) continue;
    // "--key=" is an empty value; CLI11 would take the next word for it.
    words[i].pop_back();
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(++i), "");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  const std::string last = words.empty() ? "" : words.front();
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion& version) {
    return std::string(version.what()) + "\n";
  } catch (const CLI::ArgumentMismatch&) {
    return Bad(last + " needs a value");  // the words ended before it was there
  } catch (const CLI::ParseError& error) {
    return Bad(error.what());
  }
  for (const std::string& word : Surplus(app)) {
    if (word.size() > 1 && word.starts_with('-')) return Bad("no flag " + Quoted(word.substr(0, word.find('='))));
  }
  return std::string();
}

}  // namespace sluice::cli
