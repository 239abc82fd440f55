// Limits: rates and concurrency, wherever they stand.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

constexpr uint32_t kCallsMax = 10'000'000;
constexpr uint32_t kQueueMax = 1'000'000;

// The keys that every rate has.
void ParseRateKeys(Section& section, limits::RateOptions* out) {
  section.DecimalOrZero("rate", {0.001, kCallsMax}, &out->rate);
  section.Number("burst", {1, kCallsMax}, &out->burst);
  section.Bool("capped", &out->capped);
  section.Number("queue", {0, kQueueMax}, &out->queue_max);
  if (out->capped && out->burst < 2) {
    section.Fail("burst", Cat("\"", out->burst,
                              "\" with capped: a token comes back only when its call has ended, so calls would "
                              "go one at a time; allowed: 2 or more, best 2 x rate x latency"));
  }
}

}  // namespace

void ParseRate(Reader& reader, const Node& node, std::string path, limits::RateOptions* out) {
  Section section(reader, node, std::move(path));
  ParseRateKeys(section, out);
}

void ParseConcurrency(Reader& reader, const Node& node, std::string path, limits::ConcurrencyOptions* out) {
  Section section(reader, node, std::move(path));
  section.Number("max", {0, kCallsMax}, &out->max);
  section.Number("queue", {0, kQueueMax}, &out->queue_max);
}

void ParseClientRate(Reader& reader, const Node& node, std::string path, proxy::ClientRateOptions* out) {
  Section section(reader, node, std::move(path));
  if (const Node* by = section.Find("by"); by != nullptr && by->kind == Node::Kind::kMap) {
    Section client(reader, *by, section.PathOf("by"));
    ParseMetadataName(client, "metadata", &out->metadata);
  } else if (by != nullptr && (by->kind != Node::Kind::kScalar || by->text != "peer")) {
    const std::string shown = by->kind == Node::Kind::kScalar ? Shown(by->text) + " " : "";
    section.Fail("by", Cat(shown, "is not one of: peer, {metadata: name}"));
  }
  section.Require("rate");  // without one the section does nothing
  ParseRateKeys(section, &out->rate);
  section.Number("clients_max", {16, 1'000'000}, &out->clients_max);
}

}  // namespace sluice::config
