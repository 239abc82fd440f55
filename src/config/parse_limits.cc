// Rates, wherever they stand.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "limits/option_table.h"
#include "proxy/option_table.h"

namespace sluice::config {
void ParseRate(Section& section, limits::RateOptions* out) {
  section.Options(limits::kRateOptions, out);
  if (out->rate == 0 && section.Find("rate") == nullptr && !section.node().items.empty())
    section.reader().Warn(section.node(), section.path(), "has no rate, so that there is no limit");
  // A variable may switch the limit off on purpose.
  if (const Node* rate = section.Find("rate"); out->rate == 0 && rate != nullptr && rate->written == nullptr)
    section.Warn("rate", "0 is no limit, rather than a limit that lets no call go; leave the section out for none");
  if (out->capped && out->burst < 2) {
    section.Fail("burst", Cat("\"", out->burst,
                              "\" with capped: a token comes back only when its call has ended, so calls would "
                              "go one at a time; allowed: 2 or more, best 2 x rate x latency"));
  }
  // The limiter looks at the time once a millisecond, and gives at most a burst then (docs/configuration.md, "Limits").
  constexpr double kLooks = 1000;
  if (out->rate > kLooks * out->burst) {
    section.Warn("rate", Cat("a burst of ", out->burst, " lets at most ", uint64_t{out->burst} * uint64_t{1000},
                             " calls a second go; a burst of at least rate x 1 ms is needed, best twice that"));
  }
}

void ParseClientRate(Section& section, proxy::ClientRateOptions* out) {
  if (const Node* by = section.Find("by"); by != nullptr && by->kind == Node::Kind::kMap) {
    Section client(section.reader(), *by, section.PathOf("by"));
    if (std::string name; ParseMetadataName(client, "metadata", &name)) out->metadata = std::move(name);
    client.Choice("repeated", proxy::kRepeated, &out->repeated);
  } else if (by != nullptr && (by->kind != Node::Kind::kScalar || by->text != "peer")) {
    const std::string shown = by->kind == Node::Kind::kScalar ? Shown(by->text) + " " : "";
    section.Fail("by", Cat(shown, "is not one of: peer, {metadata: name}"));
  }
  section.Require("rate");  // without one the section does nothing
  ParseRate(section, &out->rate);
  section.Options(proxy::kClientRateOptions, out);
}

}  // namespace sluice::config
