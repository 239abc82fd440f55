#include "sluicectl/completion.h"

#include <CLI/CLI.hpp>

#include "completion_scripts.h"

namespace sluice::ctl {
namespace {

bool IsFlag(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

// Walks the words before the cursor through the command tree.
class Cursor {
 public:
  explicit Cursor(const CLI::App& root) : root_(root), app_(&root) {}

  void Pass(const std::string& word) {
    if (value_of_ != nullptr) {
      value_of_ = nullptr;
    } else if (IsFlag(word) && !only_words_) {
      only_words_ = word == "--";
      const CLI::Option* flag = FindFlag(word);
      if (flag != nullptr && flag->get_expected_max() > 0) value_of_ = flag;
    } else if (const CLI::App* command = FindCommand(word)) {
      app_ = command;
    } else {
      if (words_++ == 0) first_ = word;
    }
  }

  void Offer(const std::string& begin, Args* answer) const {
    std::string* text = &answer->text;
    const std::string offered = OffersOfWords();
    const std::string offers = words_ == 0 ? offered : "";
    if (value_of_ != nullptr) {
      if (value_of_->get_type_name() == "FILE") *text = ":files\n";
    } else if (offers == kOfferFiles) {
      *text = ":files\n";
    } else if (begin.starts_with('-') && !only_words_) {
      AddFlags(begin, text);
    } else if (offers == kOfferClusters || offers == kOfferLimits || offers == kOfferRoutes || offers == kOfferFaults ||
               offered == kOfferEndpoints) {
      answer->command = words_ > 0               ? Command::kCompleteEndpoint
                        : offers == kOfferLimits ? Command::kCompleteLimit
                        : offers == kOfferRoutes ? Command::kCompleteRoute
                        : offers == kOfferFaults ? Command::kCompleteFault
                                                 : Command::kCompleteCluster;
      answer->cluster = first_;
      answer->word = begin;
    } else {
      for (const std::string& word : CLI::detail::split(offers, ' ')) Add(begin, word, "", text);
      if (words_ == 0) {
        for (const CLI::App* command : app_->get_subcommands({})) {
          Add(begin, command->get_name(), command->get_description(), text);
        }
      }
      if (text->empty() && begin.empty() && !only_words_) AddFlags(begin, text);
    }
  }

 private:
  static void Add(const std::string& begin, const std::string& word, const std::string& what, std::string* out) {
    if (!word.empty() && word.starts_with(begin)) *out += word + "\t" + what + "\n";
  }

  void AddFlags(const std::string& begin, std::string* out) const {
    const auto shown = [](const CLI::Option* option) {
      return option->nonpositional() && !option->get_group().empty();
    };
    std::vector<const CLI::Option*> flags = app_->get_options(shown);
    if (app_ != &root_) {
      for (const CLI::Option* option : root_.get_options(shown)) {
        if (app_->get_option_no_throw(option->get_name()) == nullptr) flags.push_back(option);
      }
    }
    for (const CLI::Option* option : flags) Add(begin, option->get_name(), option->get_description(), out);
  }

  std::string OffersOfWords() const {
    const auto words = app_->get_options([](const CLI::Option* option) { return option->get_positional(); });
    return words.empty() ? "" : words[0]->get_type_name();
  }

  const CLI::Option* FindFlag(const std::string& word) const {
    const CLI::Option* flag = app_->get_option_no_throw(word);
    return flag != nullptr ? flag : root_.get_option_no_throw(word);
  }

  const CLI::App* FindCommand(const std::string& word) const {
    const auto found = app_->get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
    return found.empty() ? nullptr : found.front();
  }

  const CLI::App& root_;
  const CLI::App* app_;                    // the command so far
  const CLI::Option* value_of_ = nullptr;  // the flag whose value comes next
  size_t words_ = 0;                       // after the command
  std::string first_;                      // of them
  bool only_words_ = false;                // after --
};

}  // namespace

void Complete(const CLI::App& root, const std::vector<std::string>& words, Args* answer) {
  Cursor cursor(root);
  for (size_t i = 0; i + 1 < words.size(); ++i) cursor.Pass(words[i]);
  cursor.Offer(words.empty() ? "" : words.back(), answer);
}

std::string_view CompletionScript(std::string_view shell) {
  if (shell == "bash") return kBashScript;
  if (shell == "zsh") return kZshScript;
  return {};
}

}  // namespace sluice::ctl
