// docs/metrics.md says what the code has: each name, kind, label and value of a closed label, and which series are
// there before anything was counted. And the names follow Prometheus' conventions.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "integration/support/temp_dir.h"
#include "integration/support/wait_until.h"
#include "server/server.h"
#include "support/tls_certificates.h"

namespace sluice::server {
namespace {

using Words = std::set<std::string>;

// Their values are the configuration's or the machine's.
const Words kOpenLabels = {"route", "cluster", "endpoint", "limit",    "worker", "used_by",
                           "file",  "name",    "key",      "provider", "le"};

struct Family {
  std::string kind, help;
  Words labels;                              // but for le
  std::map<std::string, Words> values = {};  // of closed labels
  std::string untouched = {};                // "always", "counted", or "some"
  size_t lines = 0, zeros = 0;
};
using Families = std::map<std::string, Family>;

// The words between backquotes.
Words Quoted(const std::string& cell) {
  Words out;
  for (size_t at = 0; (at = cell.find('`', at)) != cell.npos;) {
    const size_t end = cell.find('`', at + 1);
    if (end == cell.npos) break;
    out.insert(cell.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return out;
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// The cells of the rows below the table's head, which begins with `head`.
std::vector<std::vector<std::string>> Table(const std::string& head) {
  std::ifstream page(std::string(SLUICE_SOURCE_DIR) + "/docs/metrics.md");
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(page, line) && !line.starts_with(head)) {
  }
  std::getline(page, line);  // |---|
  while (std::getline(page, line) && line.starts_with("|")) {
    std::vector<std::string> cells;
    std::istringstream row(line.substr(1));
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(Trimmed(cell));
    rows.push_back(std::move(cells));
  }
  return rows;
}

Families OfThePage() {
  Families out;
  for (const auto& cells : Table("| metric | kind | labels | before")) {
    if (cells.size() != 5 || Quoted(cells[0]).size() != 1) {
      ADD_FAILURE() << "a row of the first table has not 5 cells, or not one name: " << cells[0];
      continue;
    }
    const std::string name = *Quoted(cells[0]).begin();
    EXPECT_FALSE(out.contains(name)) << name << " is there twice";
    out[name] = {cells[1], cells[4], Quoted(cells[2])};
    out[name].untouched = cells[3] == "always" || cells[3] == "counted" ? cells[3] : "some";
  }
  for (const auto& cells : Table("| label | of | values")) {
    if (cells.size() != 3) {
      ADD_FAILURE() << "a row of the second table has not 3 cells: " << cells[0];
      continue;
    }
    for (const std::string& name : Quoted(cells[1])) {
      for (const std::string& label : Quoted(cells[0])) out[name].values[label] = Quoted(cells[2]);
    }
  }
  return out;
}

// Of a text that a scraper gets.
Families Parse(const std::string& text) {
  Families out;
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
      out[name].help = line.substr(7 + name.size() + 1);
    } else if (line.starts_with("# TYPE ")) {
      out[name].kind = line.substr(line.rfind(' ') + 1);
    } else {
      Family& family = out[name];
      ++family.lines;
      family.zeros += line.ends_with(" 0");
      size_t at = line.find('{');
      if (at == line.npos) continue;
      while (line[at] != '}') {
        const size_t equals = line.find("=\"", at), end = line.find('"', equals + 2);
        const std::string label = line.substr(at + 1, equals - at - 1);
        if (label != "le") family.labels.insert(label);
        if (!kOpenLabels.contains(label)) family.values[label].insert(line.substr(equals + 2, end - equals - 2));
        at = end + 1;
      }
    }
  }
  return out;
}

std::string Shown(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "`" : " `") + word + "`";
  return out;
}

class MetricsPage : public ::testing::Test {
 public:
  // Something of each kind that has metrics. Nothing listens at port 1.
  MetricsPage() {
    const test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
    const test::TlsCert own = test::MakeCert({.common_name = "own", .names = "IP:127.0.0.1"}, &ca);
    dir.Write("ca.crt", ca.certificate_pem);
    dir.Write("a.crt", own.certificate_pem);
    dir.Write("a.key", own.key_pem);
    dir.Write("xds.json", R"({"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}],
                             "node": {"id": "n"}})");
    dir.Write("found.yaml", "endpoints: [127.0.0.1:1]\n");
    dir.Write("jwks.json", R"({"keys": []})");
    dir.Write("sluice.yaml", R"(
workers: 1
listeners: [{address: "127.0.0.1:0", tls: {certificate: a.crt, key: a.key, client_ca: ca.crt}}]
admin: {grpc: ""}
xds: {bootstrap: xds.json}
clusters:
  - {name: c, endpoints: [127.0.0.1:1], tls: {ca: ca.crt}}
  - {name: limited, endpoints: [127.0.0.1:1], concurrency: {max: 10}}
  - {name: found, discovery: {file: {path: found.yaml}}}
  - {name: by-xds, discovery: {xds: {}}}
jwt: [{name: p, jwks_file: jwks.json, issuer: me}]
routes:
  - {name: cached, service: s, method: M, cluster: c, failover: limited, cache: {ttl: 1s}}
  - {name: shared, service: t, clusters: [{name: c, weight: 1}, {name: limited, weight: 1}]}
  - {name: rest, cluster: c, mirror: {cluster: found}}
announce:
  - {address: "10.0.0.1:1", etcd: {servers: ["127.0.0.1:1"], prefix: /s/}}
)");
    auto parsed = config::Load(dir.File("sluice.yaml"));
    for (const auto& error : parsed.errors) ADD_FAILURE() << error.ToString();
    auto started = Server::Start(parsed.config, {dir.File("sluice.yaml")});
    EXPECT_TRUE(started.ok()) << started.error().detail;
    server = std::move(*started);
    // The list is in force: its endpoint is in both texts.
    EXPECT_TRUE(integration::WaitUntil([&] {
      return server->backend().RenderMetrics().find("{cluster=\"found\",result=\"applied\"} 1") != std::string::npos;
    }));
    code = Parse(server->registry().RenderPrometheus(metrics::Show::kAlways));
    const Families now = Parse(server->backend().RenderMetrics());
    // Sources of lists count meanwhile: what has a value says nothing of what is shown without one.
    for (auto& [name, family] : code) {
      const Family& shown = now.at(name);
      family.untouched = shown.lines == family.lines ? "always" : shown.zeros == 0 ? "counted" : "some";
    }
  }

  integration::TempDir dir;
  std::unique_ptr<Server> server;
  Families code;
};

TEST_F(MetricsPage, SaysWhatThereIs) {
  const Families page = OfThePage();
  EXPECT_GT(code.size(), 60u);
  for (const auto& [name, family] : page)
    EXPECT_TRUE(code.contains(name)) << "the page has " << name << ", the code has not";
  for (const auto& [name, family] : code) {
    const auto it = page.find(name);
    if (it == page.end()) {
      ADD_FAILURE() << "the page has not: | `" << name << "` | " << family.kind << " | " << Shown(family.labels)
                    << " | " << family.untouched << " | " << family.help << " |";
      continue;
    }
    EXPECT_EQ(it->second.kind, family.kind) << name;
    EXPECT_EQ(Shown(it->second.labels), Shown(family.labels)) << name;
    EXPECT_EQ(it->second.untouched, family.untouched) << name;
  }
}

TEST_F(MetricsPage, SaysWhatALabelMayBe) {
  Families page = OfThePage();
  for (const auto& [name, family] : code) {
    for (const auto& [label, values] : family.values)
      EXPECT_EQ(Shown(page[name].values[label]), Shown(values)) << name << " " << label;
    for (const auto& [label, values] : page[name].values)
      EXPECT_TRUE(family.values.contains(label)) << name << " has no label " << label;
  }
}

// prometheus.io/docs/practices/naming
TEST_F(MetricsPage, NamesFollowPrometheus) {
  for (const auto& [name, family] : code) {
    EXPECT_TRUE(name.starts_with("sluice_")) << name;
    EXPECT_EQ(name.ends_with("_total"), family.kind == "counter") << name;
    EXPECT_TRUE(family.kind != "histogram" || name.ends_with("_seconds") || name.ends_with("_bytes")) << name;
    for (const char* unit :
         {"_ms", "_milli", "_micro", "_nano", "_kb", "_kib", "_mb", "_minutes", "_hours", "_percent"})
      EXPECT_EQ(name.find(unit), name.npos) << name << " is not in the base unit";
    for (const char* kept : {"_count", "_sum", "_bucket", "_info"}) EXPECT_FALSE(name.ends_with(kept)) << name;
    EXPECT_TRUE(family.help.ends_with(".")) << name << ": " << family.help;
    for (const std::string& label : family.labels) EXPECT_EQ(label.find("__"), label.npos) << name << " " << label;
  }
}

}  // namespace
}  // namespace sluice::server
