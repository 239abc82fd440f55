// Whatever a file holds, Parse returns: a whole config or errors in order, never an exception or a crash.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "config/config.h"

namespace sluice::config {
namespace {

std::string Mutated(std::string text, base::Random& random) {
  static constexpr std::string_view kPieces[] = {"[",
                                                 "]",
                                                 "{",
                                                 "}",
                                                 ": ",
                                                 "- ",
                                                 "\n",
                                                 "\n  ",
                                                 "&a ",
                                                 "*a",
                                                 "\"",
                                                 "'",
                                                 "#",
                                                 "|\n",
                                                 ">",
                                                 "!!str ",
                                                 "? ",
                                                 "---\n",
                                                 "...\n",
                                                 "%YAML 1.2\n",
                                                 "\t",
                                                 "\r\n",
                                                 "~",
                                                 "<<: ",
                                                 "0",
                                                 "-1",
                                                 "99999999999999999999",
                                                 "\x80",
                                                 "\xef\xbb\xbf",
                                                 "\\x",
                                                 ",",
                                                 "@",
                                                 "`"};
  for (uint64_t n = 1 + random.Below(6); n > 0 && !text.empty(); --n) {
    const size_t at = random.Below(text.size());
    const size_t size = random.Below(std::min<size_t>(text.size() - at, 40) + 1);
    switch (random.Below(5)) {
      case 0:
        text[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, kPieces[random.Below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(random.Below(text.size()), text.substr(at, size));
        break;
      case 4:
        text.resize(at + 1);
        break;
    }
  }
  return text;
}

TEST(Mutation, NoFileCrashesTheParserAndErrorsStayInOrder) {
  const char* given = std::getenv("SLUICE_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  base::Random random(seed);
  std::vector<std::string> texts;
  for (const char* name : {"reference.yaml", "quickstart.yaml", "minimal.yaml", "cached.yaml"}) {
    std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/config/" + name);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    ASSERT_FALSE(texts.back().empty());
  }
  int good = 0;
  int bad = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = Mutated(texts[random.Below(texts.size())], random);
    const ParseResult result = Parse(text, std::string(SLUICE_SOURCE_DIR) + "/config/f");
    ++(result.ok() ? good : bad);
    if (!result.ok()) {
      ASSERT_EQ(result.config, Config());
    }
    for (size_t k = 1; k < result.errors.size(); ++k) {
      const ConfigError& a = result.errors[k - 1];
      const ConfigError& b = result.errors[k];
      ASSERT_LE(std::pair(a.line, a.column), std::pair(b.line, b.column)) << text;
    }
  }
  EXPECT_GT(good, 100);  // both sides of the parser must have been reached
  EXPECT_GT(bad, 1000);
}

}  // namespace
}  // namespace sluice::config
