// A file with one cluster and one route, for tests of what a route may say; and the errors of a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "unit/config/test_descriptors.h"

namespace sluice::config {

// kTestDescriptors, as a file that lasts as long as the process.
inline const std::string& DescriptorFile() {
  static const TestFile file("one_route.pb", Serialized(kTestDescriptors));
  static const std::string path = file.path();
  return path;
}

// `route`: keys beside its cluster. `descriptors`: with a descriptor_set.
inline std::string OneRoute(std::string_view route, bool descriptors = false) {
  return "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]}]\nroutes:\n  - {cluster: "
         "users, " +
         std::string(route) + "}\n" + (descriptors ? "descriptor_set: " + DescriptorFile() + "\n" : "");
}

inline std::vector<std::string> ErrorsOf(const std::string& yaml) {
  std::vector<std::string> out;
  for (const ConfigError& error : Parse(yaml, "f").errors) out.push_back(error.ToString());
  return out;
}

}  // namespace sluice::config
