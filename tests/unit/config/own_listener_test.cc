// Endpoints that are listeners of the same configuration.
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

// The error of a cluster with that endpoint beside that listener; empty: there is none.
std::string ErrorOf(const std::string& listener, const std::string& endpoint) {
  const ParseResult result =
      Parse("listeners: [{address: '" + listener + "'}]\nclusters: [{name: c, endpoints: ['a:1', " + endpoint +
                "]}]\nroutes: [{cluster: c}]\n",
            "f");
  if (result.ok()) return "";
  EXPECT_EQ(result.errors.size(), 1u);
  return result.errors[0].ToString();
}

TEST(OwnListenerTest, AnEndpointThatIsAListenerIsAnError) {
  EXPECT_EQ(
      ErrorOf("127.0.0.1:7070", "'127.0.0.1:7070'"),
      "f:2:41: clusters[0].endpoints[1]: 127.0.0.1:7070 leads to this process's own listener 127.0.0.1:7070: calls "
      "would go round in a circle");
  EXPECT_NE(ErrorOf("0.0.0.0:7070", "{address: '127.0.0.1:7070', name: b}"), "");
  EXPECT_NE(ErrorOf("[::]:7070", "'localhost:7070'"), "");
  EXPECT_NE(ErrorOf("unix:/run/s.sock", "'unix:/run/s.sock'"), "");
  EXPECT_EQ(ErrorOf("0.0.0.0:7070", "'127.0.0.1:7071'"), "");
  EXPECT_EQ(ErrorOf("127.0.0.1:7070", "'127.0.0.2:7070'"), "");
}

}  // namespace
}  // namespace sluice::config
