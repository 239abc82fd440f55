// docs/access-log.md says what the code does: each field with its key, each reason with its status.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "proxy/grpc_status.h"
#include "unit/proxy/access_log/log_lines.h"

namespace sluice::proxy {
namespace {

using base::ErrorKind;

// The cells of the table rows below a heading, until the next one.
std::vector<std::vector<std::string>> RowsBelow(const std::string& heading) {
  std::ifstream in(SLUICE_SOURCE_DIR "/docs/access-log.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    if (!inside || !line.starts_with("| `")) continue;
    std::vector<std::string>& cells = rows.emplace_back();
    std::istringstream row(line.substr(2));
    for (std::string cell; std::getline(row, cell, '|');)
      cells.push_back(cell.substr(0, cell.find_last_not_of(' ') + 1));
    for (std::string& cell : cells) cell.erase(0, cell.find_first_not_of(' '));
  }
  return rows;
}

std::string Code(std::string_view text) {
  std::string out(1, '`');
  return out.append(text).append(1, '`');
}

TEST(AccessLogPage, HasEachFieldInOrderWithItsKeyInText) {
  std::vector<std::pair<std::string, std::string>> said, real;
  for (const auto& row : RowsBelow("Fields")) {
    if (row.size() == 3) said.emplace_back(row[0], row[1]);
  }
  CallRecord call = FailedCall();
  for (auto member : {&CallRecord::cache, &CallRecord::waits, &CallRecord::limit}) call.*member = "x";
  for (size_t i = 0; i < std::size(kAccessFieldNames); ++i) {
    AccessLogOptions options = TextLog();
    options.fields = {{.field = static_cast<AccessField>(i)}};
    const std::string line = LineOf(options, call);
    const size_t equals = line.find_first_of("=\":");  // of a key there is none but letters before
    const bool has_key = equals != line.npos && line[equals] == '=';
    real.emplace_back(Code(kAccessFieldNames[i]), has_key ? Code(line.substr(0, equals + 1)) : "*value*");
  }
  EXPECT_EQ(said, real);
}

TEST(AccessLogPage, HasEachBoundOfATextInBytes) {
  std::map<std::string, uint16_t> said;
  for (const auto& row : RowsBelow("Fields")) {
    if (row.size() != 2) continue;
    std::istringstream names(row[0]);
    for (std::string name; names >> name;)
      said[name.substr(0, name.find(','))] = static_cast<uint16_t>(std::stoi(row[1]));
  }
  EXPECT_EQ(said["`path`"], kLogPathBytesMax);
  EXPECT_EQ(said["`detail`"], kLogDetailBytesMax);
  EXPECT_EQ(said["metadata"], kLogMetadataBytesMax);
  EXPECT_EQ(said["`tries`"], kLogListBytesMax);
  EXPECT_EQ(said["`waited`"], kLogListBytesMax);
}

TEST(AccessLogPage, HasEachReasonOfACallWithItsStatus) {
  const std::set<ErrorKind> control = {
      ErrorKind::kInvalidArgument, ErrorKind::kNotFound, ErrorKind::kConflict, ErrorKind::kIo, ErrorKind::kBusy,
      ErrorKind::kRemoved};
  std::map<std::string, std::string> said, real;
  for (const auto& row : RowsBelow("Reasons")) said[row.at(0)] = row.at(1);
  std::ifstream in(SLUICE_SOURCE_DIR "/docs/access-log.md");
  std::stringstream page;
  page << in.rdbuf();
  for (size_t i = 0; i < base::kErrorKinds; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    const std::string token = Code(base::Reason(kind));
    if (!control.contains(kind)) {
      real[token] = std::string(ToString(ToGrpcCode(kind)));
    } else {
      EXPECT_NE(page.str().find(token), std::string::npos) << token;
    }
  }
  EXPECT_EQ(said, real);
}

}  // namespace
}  // namespace sluice::proxy
