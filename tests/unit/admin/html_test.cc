// Text of pages: what came from outside is visible and escaped; numbers are short.
#include "admin/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::admin {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(VisibleTextTest, MarkupIsText) {
  EXPECT_EQ(EscapeHtml("<a href='x\"'>&"), "&lt;a href=&#39;x&quot;&#39;&gt;&amp;");
  EXPECT_EQ(EscapeHtml("\x01"), "\\x01");
}

TEST(VisibleTextTest, StringsOfJsonCannotBeLeft) {
  EXPECT_EQ(JsonString("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(JsonString("\n"), "\"\\\\x0a\"");
}

TEST(HtmlTest, MarksSayWithoutColoursWhatIsBad) {
  EXPECT_EQ(Marked(Mark::kBad, "<x>"), "<span class=\"bad\">▲ &lt;x&gt;</span>");
  EXPECT_NE(Marked(Mark::kGood, "x").find("●"), std::string::npos);
}

TEST(HtmlTest, APageThatIsNotThereIsTheNearest) {
  EXPECT_EQ(PageRange(0, 50, 1).pages, 1u);
  EXPECT_EQ(PageRange(0, 50, 1).to, 0u);
  EXPECT_EQ(PageRange(101, 50, 9).from, 100u);
  EXPECT_EQ(PageRange(101, 50, 9).to, 101u);
  EXPECT_EQ(PageRange(101, 50, 0).page, 1u);
}

TEST(HtmlTest, PagersLinkToBothSides) {
  std::string out;
  AppendPager(out, 5, "things", 1, 1, "/?page=");
  EXPECT_EQ(out, "");
  AppendPager(out, 1500, "things", 2, 3, "/?page=");
  EXPECT_THAT(out, AllOf(HasSubstr("1,500 things, page 2 of 3"), HasSubstr("/?page=1\">previous"),
                         HasSubstr("/?page=3\">next")));
  out.clear();
  AppendPager(out, 1500, "things", 3, 3, "/?page=");
  EXPECT_THAT(out, Not(HasSubstr("next")));
}

TEST(HtmlTest, QuantitiesHaveTheUnitThatFits) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'234'567), "1,234,567");
  EXPECT_EQ(NumberText(99.96), "100");
  EXPECT_EQ(NumberText(9.996), "10.0");
  EXPECT_EQ(LatencyText(std::chrono::microseconds(250)), "0.25 ms");
  EXPECT_EQ(LatencyText(std::chrono::milliseconds(1500)), "1.50 s");
  EXPECT_EQ(BytesText(512), "512 B");
  EXPECT_EQ(BytesText(64 << 20), "64.0 MiB");
}

TEST(HtmlTest, SpansAndNumbersAreShort) {
  EXPECT_EQ(SpanText(std::chrono::milliseconds(999)), "0 s");
  EXPECT_EQ(SpanText(seconds(47)), "47 s");
  EXPECT_EQ(SpanText(seconds(60)), "1 min");
  EXPECT_EQ(SpanText(seconds(3'661)), "1 h 1 min");
  EXPECT_EQ(SpanText(seconds(86'400 + 59)), "1 d");
  EXPECT_EQ(SpanText(seconds(2 * 86'400 + 3'600)), "2 d 1 h");
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.256), "0.26");
  EXPECT_EQ(NumberText(15.04), "15.0");
  EXPECT_EQ(NumberText(12345.4), "12,345");
}

TEST(HtmlTest, TextIsNotCutInACharacter) {
  std::string out;
  Cell(out, std::string(kShownBytesMax - 1, 'x') + "\xc3\xa4\xc3\xa4");
  EXPECT_EQ(out, "<td>" + std::string(kShownBytesMax - 1, 'x') + "...</td>");
}

}  // namespace
}  // namespace sluice::admin
