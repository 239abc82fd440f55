// What is exported is a message that protobuf itself reads, whatever clients have sent.
#include "tracing/otlp_writer.h"

#include <gtest/gtest.h>
#include <opentelemetry/proto/collector/trace/v1/trace_service.pb.h>

#include <string>

namespace sluice::tracing {
namespace {

using opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
using proxy::SpanView;

// Every text of a call, and of its attempt and its wait, is `text`.
ExportTraceServiceRequest Exported(const std::string& text) {
  SpanView call;
  call.words.trace = {1, 2};
  call.words.span = 3;
  call.words.status = 13;
  call.words.durations = {1, 2, 3};
  for (std::string_view& of : call.texts) of = text;
  call.attempts.push_back({4, 1, 2, 14, false, text, text});
  call.waits.push_back({1, 1, text});
  OtlpWriter writer("service", "1", 7);
  writer.Add(call, 0);
  const ReverseBuffer bytes = writer.Take();
  ExportTraceServiceRequest out;
  EXPECT_TRUE(out.ParseFromArray(bytes.view().data(), static_cast<int>(bytes.view().size())));
  return out;
}

// A receiver that looks at UTF-8, as protobuf's own parsers do, refuses the whole message with all calls in it.
TEST(OtlpWriter, BytesThatAreNoUtf8AreSpelled) {
  const auto request = Exported("/a\xff.S/b\xc3");
  ASSERT_EQ(request.resource_spans_size(), 1);
  const auto& spans = request.resource_spans(0).scope_spans(0).spans();
  ASSERT_EQ(spans.size(), 2);
  for (const auto& span : spans) {
    EXPECT_EQ(span.name(), "a\\xff.S/b\\xc3");
    EXPECT_NE(span.status().message().find("\\xff"), std::string::npos);
    EXPECT_EQ(span.trace_state().find('\xff'), std::string::npos);
  }
}

TEST(OtlpWriter, CharactersStay) {
  const auto request = Exported("/S/\xc3\xa4");
  EXPECT_EQ(request.resource_spans(0).scope_spans(0).spans(0).name(), "S/\xc3\xa4");
}

}  // namespace
}  // namespace sluice::tracing
