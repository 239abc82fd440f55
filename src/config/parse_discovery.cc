// The source that keeps a cluster's list.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "discovery/option_table.h"

namespace sluice::config {

using discovery::SourceKind;

void ParseDiscovery(Section& section, discovery::DiscoveryOptions* out) {
  section.Options(discovery::kDiscoveryOptions, out);
  section.Choice("changes_by_rpc", discovery::kRpcRules, &out->changes_by_rpc);
  section.Map("file", [&](Section& file) {
    out->kind = SourceKind::kFile;
    std::string path;
    if (file.Require("path") == nullptr || !file.Text("path", &path)) return;
    if (path.empty())
      file.Fail("path", "is empty; a file is needed");
    else
      out->file.path = file.reader().Beside(std::move(path));
  });
  if (!out->enabled()) section.Fail("file", "is missing: discovery names no source; allowed: file");
}

}  // namespace sluice::config
