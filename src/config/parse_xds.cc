// Lists by xDS: what a cluster follows, and where the process finds its control plane.
#include <cstdlib>
#include <limits>

#include "config/file_text.h"
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "config/xds_bootstrap.h"

namespace sluice::config {
namespace {

constexpr const char* kFileVariable = "GRPC_XDS_BOOTSTRAP";
constexpr const char* kTextVariable = "GRPC_XDS_BOOTSTRAP_CONFIG";

using discovery::SourceKind;

base::Result<discovery::XdsBootstrap> LoadBootstrap(const std::string& path) {
  auto text = ReadNamedText(path);
  if (!text.ok()) return text.error();
  auto bootstrap = ParseXdsBootstrap(*text);
  if (bootstrap.ok()) return bootstrap;
  return base::MakeError(bootstrap.error().kind, Cat(path, ": ", bootstrap.error().detail));
}

// From the environment, as gRPC's clients find it.
base::Result<discovery::XdsBootstrap> FindBootstrap() {
  const auto name = [](const char* variable, const base::Error& error) {
    return base::MakeError(error.kind, Cat(variable, ": ", error.detail));
  };
  if (const char* path = std::getenv(kFileVariable); path != nullptr && *path != '\0') {
    auto bootstrap = LoadBootstrap(path);
    return bootstrap.ok() ? bootstrap : name(kFileVariable, bootstrap.error());
  }
  if (const char* text = std::getenv(kTextVariable); text != nullptr && *text != '\0') {
    auto bootstrap = ParseXdsBootstrap(text);
    return bootstrap.ok() ? bootstrap : name(kTextVariable, bootstrap.error());
  }
  return base::MakeError(
      base::ErrorKind::kNotFound,
      Cat("needs the control plane, and xds.bootstrap is missing; allowed: there a file in gRPC's bootstrap format, or "
          "the file's name in ",
          kFileVariable, ", or its text in ", kTextVariable));
}

}  // namespace

void ParseXdsSource(Section& section, discovery::DiscoveryOptions* out) {
  out->kind = SourceKind::kXds;
  section.reader().NeedXds(section.node(), section.path());
  if (!section.Text("resource", &out->xds.resource)) return;
  if (out->xds.resource.empty()) section.Fail("resource", "is empty; the name of a CDS resource is needed");
}

void FinishXdsSource(const upstream::ClusterOptions& cluster, discovery::DiscoveryOptions* out) {
  if (out->kind != SourceKind::kXds) return;
  if (out->xds.resource.empty()) out->xds.resource = cluster.name;
  out->xds.ordered = out->ordered;
  out->xds.weights_max = out->ordered ? std::numeric_limits<double>::infinity()
                                      : static_cast<double>(upstream::kRingPointsMax / cluster.ring_points);
}

void ParseXdsProcess(Section& root, Config* config) {
  root.Map("xds", [&](Section& xds) {
    std::string path;
    if (!xds.Text("bootstrap", &path) || path.empty()) return;
    path = xds.Beside("bootstrap", std::move(path));
    auto bootstrap = LoadBootstrap(path);
    config->xds_bootstrap = std::move(path);
    if (bootstrap.ok())
      config->xds = std::move(*bootstrap);
    else
      xds.Fail("bootstrap", bootstrap.error().detail);
  });
}

void FindXdsBootstrap(ParseResult* result) {
  if (!result->needs_xds || !result->config.xds.servers.empty()) return;
  auto bootstrap = FindBootstrap();
  if (bootstrap.ok()) {
    result->config.xds = std::move(*bootstrap);
    return;
  }
  ConfigError& error = result->errors.emplace_back(*result->needs_xds);
  error.message = bootstrap.error().detail;
  result->config = Config();
}

}  // namespace sluice::config
