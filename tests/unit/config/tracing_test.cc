// The section `tracing`: where the collector is, what is sampled, and what is no collector.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "config/config.h"

namespace sluice::config {
namespace {

using proxy::TracingOptions;

std::string WithTracing(const std::string& tracing) {
  return "listeners: [{address: 127.0.0.1:7070}]\nclusters: [{name: c, endpoints: [10.0.0.1:1]}]\n"
         "routes: [{cluster: c}]\ntracing:\n" +
         tracing;
}

TEST(ParseTracing, AllThatMayStandThere) {
  const ParseResult result =
      Parse(WithTracing("  endpoint: collector.internal:4317\n  service_name: shop\n"
                        "  sample: {parent: false, errors: false, slower_than: 250ms, ratio: 0.01}\n"
                        "  propagate: all\n  buffer: 2MiB\n  batch: 64\n  export_timeout: 2s\n"),
            "t.yaml");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  TracingOptions wanted;
  wanted.endpoint = "collector.internal:4317";
  wanted.service_name = "shop";
  wanted.parent = wanted.errors = false;
  wanted.slower_than = std::chrono::milliseconds(250);
  wanted.ratio = 0.01;
  wanted.propagate = TracingOptions::Propagate::kAll;
  wanted.buffer_bytes = 2 << 20;
  wanted.batch_max = 64;
  wanted.export_timeout = std::chrono::milliseconds(2000);
  EXPECT_EQ(result.config.tracing, wanted);
}

TEST(ParseTracing, WithoutACollectorItIsOff) {
  for (const char* text : {"  {}\n", "  endpoint: \"\"\n"}) {
    const ParseResult result = Parse(WithTracing(text), "t.yaml");
    ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
    EXPECT_FALSE(result.config.tracing.enabled());
  }
}

TEST(ParseTracing, CollectorsOfEachKind) {
  for (const char* endpoint : {"127.0.0.1:4317", "[::1]:4317", "unix:/run/otel.sock", "collector:1"}) {
    const ParseResult result = Parse(WithTracing("  endpoint: \"" + std::string(endpoint) + "\"\n"), "t.yaml");
    ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
    EXPECT_EQ(result.config.tracing.endpoint, endpoint);
  }
}

TEST(ParseTracing, WhatIsNoCollectorSaysWhatIsAllowed) {
  const std::pair<const char*, const char*> cases[] = {
      {"endpoint: localhost", "is no collector; allowed: host:port, unix:/path"},
      {"endpoint: http://localhost:4317", "is no collector"},
      {"endpoint: localhost:0", "is no collector"},
      {"endpoint: localhost:65536", "is no collector"},
      {"endpoint: \":4317\"", "is no collector"},
      {"endpoint: \"::1:4317\"", "is no collector"},
      {"endpoint: \"unix:otel.sock\"", "is no collector"},
      {"endpoint: \"unix:/\"", "is no collector"},
      {"sample: {ratio: 1.5}", "0"},
      {"sample: {rate: 1}", "unknown key"},
      {"propagate: some", "sampled, all"},
      {"batch: 0", "1"},
  };
  for (const auto& [text, message] : cases) {
    const ParseResult result = Parse(WithTracing("  " + std::string(text) + "\n"), "t.yaml");
    ASSERT_EQ(result.errors.size(), 1u) << text;
    EXPECT_NE(result.errors[0].ToString().find(message), std::string::npos) << result.errors[0].ToString();
    EXPECT_EQ(result.errors[0].line, 5) << text;
  }
}

}  // namespace
}  // namespace sluice::config
