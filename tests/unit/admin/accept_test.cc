// Which format of metrics an Accept field asks for.
#include "admin/accept.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::admin {
namespace {

TEST(Accept, OpenMetricsWhereItIsNamedAndWeighsNoLess) {
  for (const char* accept : {
           "application/openmetrics-text",
           "application/openmetrics-text; version=1.0.0; charset=utf-8",
           "Application/OpenMetrics-Text;VERSION=\"1.0.0\"",
           // Prometheus 2.42 and 3.
           "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
           "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
           "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
           "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
           "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
           "text/plain, application/openmetrics-text",
           "text/plain;q=0.1,text/*;q=0.9,application/openmetrics-text;q=0.5",
           "application/openmetrics-text;q=0.001",
       }) {
    EXPECT_TRUE(WantsOpenMetrics(accept)) << accept;
  }
}

TEST(Accept, ElseThePlainText) {
  for (const char* accept : {
           "",
           "*/*",
           "text/plain",
           "application/*",
           "text/html,application/xhtml+xml,*/*;q=0.8",
           "application/openmetrics-text;q=0",
           "application/openmetrics-text;q=0.4,text/plain;q=0.5",
           "application/openmetrics-text;q=0.4,text/*;q=0.5",
           "application/openmetrics-text;q=0.4,*/*",
           "application/openmetrics-text;version=0.0.1",
           "application/openmetrics-text;version=2.0.0",
           "application/openmetrics-text;q=x",
           "application/openmetrics-text;q=-1",
           "application/openmetrics-text;q=2",
           "application/openmetrics-text;q=nan",
           "application/openmetrics-textual",
           ",,;;=,",
           "application",
       }) {
    EXPECT_FALSE(WantsOpenMetrics(accept)) << accept;
  }
}

}  // namespace
}  // namespace sluice::admin
