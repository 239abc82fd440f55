#include "proxy/access_log/line_format.h"

#include <array>
#include <utility>

#include "proxy/call_id.h"
#include "proxy/grpc_status.h"

namespace sluice::proxy {
namespace {

enum class Value : uint8_t { kTime, kStatus, kCount, kMillis, kCallId, kText };
// How a text looks in the text format.
enum class Look : uint8_t { kWord, kQuoted, kQuotedOrDash };

struct Row {
  AccessField field;
  std::string_view key;  // in the text format; empty: the value stands alone
  Value value;
  size_t index = 0;  // of LogRecord's counts or durations
  std::string_view CallRecord::*text = nullptr;
  uint16_t bytes_max = 0;
  Look look = Look::kWord;
};

// By AccessField.
constexpr Row kRows[] = {
    {AccessField::kTime, "", Value::kTime},
    {AccessField::kPeer, "", Value::kText, 0, &CallRecord::peer, kLogNameBytesMax},
    {AccessField::kClient, "client", Value::kText, 0, &CallRecord::client, kLogNameBytesMax, Look::kQuotedOrDash},
    {AccessField::kAuthority, "authority", Value::kText, 0, &CallRecord::authority, kLogNameBytesMax, Look::kQuoted},
    {AccessField::kPath, "", Value::kText, 0, &CallRecord::path, kLogPathBytesMax, Look::kQuoted},
    {AccessField::kStatus, "", Value::kStatus},
    {AccessField::kRoute, "route", Value::kText, 0, &CallRecord::route, kLogNameBytesMax},
    {AccessField::kCluster, "cluster", Value::kText, 0, &CallRecord::cluster, kLogNameBytesMax},
    {AccessField::kEndpoint, "endpoint", Value::kText, 0, &CallRecord::endpoint, kLogNameBytesMax},
    {AccessField::kAttempts, "attempts", Value::kCount, 0},
    {AccessField::kTries, "tries", Value::kText, 0, &CallRecord::tries, kLogListBytesMax},
    {AccessField::kRequestBytes, "in", Value::kCount, 1},
    {AccessField::kResponseBytes, "out", Value::kCount, 2},
    {AccessField::kUpstreamMs, "upstream_ms", Value::kMillis, 0},
    {AccessField::kResponseMs, "response_ms", Value::kMillis, 1},
    {AccessField::kTotalMs, "total_ms", Value::kMillis, 2},
    {AccessField::kCache, "cache", Value::kText, 0, &CallRecord::cache, kLogNameBytesMax},
    {AccessField::kWaited, "waited", Value::kText, 0, &CallRecord::waits, kLogListBytesMax},
    {AccessField::kLimit, "limit", Value::kText, 0, &CallRecord::limit, kLogNameBytesMax},
    {AccessField::kCause, "cause", Value::kText, 0, &CallRecord::cause, kLogNameBytesMax},
    {AccessField::kProcessed, "processed", Value::kText, 0, &CallRecord::processed, kLogNameBytesMax},
    {AccessField::kDetail, "detail", Value::kText, 0, &CallRecord::detail, kLogDetailBytesMax, Look::kQuoted},
    {AccessField::kCallId, "call_id", Value::kCallId},
    {AccessField::kRequestId, "request_id", Value::kText, 0, &CallRecord::request_id, kLogNameBytesMax},
};
static_assert(std::size(kRows) == std::size(kAccessFieldNames));
constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].field != static_cast<AccessField>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

// A line of text where nothing else is configured. JSON has all fields, in the order of AccessField.
constexpr AccessField kTextFields[] = {
    AccessField::kTime,       AccessField::kPeer,       AccessField::kPath,         AccessField::kStatus,
    AccessField::kClient,     AccessField::kRoute,      AccessField::kCluster,      AccessField::kEndpoint,
    AccessField::kAttempts,   AccessField::kTries,      AccessField::kRequestBytes, AccessField::kResponseBytes,
    AccessField::kUpstreamMs, AccessField::kResponseMs, AccessField::kTotalMs,      AccessField::kCache,
    AccessField::kWaited,     AccessField::kLimit,      AccessField::kCause,        AccessField::kProcessed,
    AccessField::kDetail,     AccessField::kCallId,     AccessField::kRequestId};

std::string Quoted(std::string_view text) {
  std::string out(text.size() * kQuotedBytesPerByte + 2, '\0');
  out.resize(static_cast<size_t>(PutQuoted(out.data(), text) - out.data()));
  return out;
}

}  // namespace

LineFormat::LineFormat(const AccessLogOptions& options) {
  const bool json = options.format == AccessLogOptions::Format::kJson;
  std::vector<AccessLogField> fields = options.fields;
  if (fields.empty() && json) {
    for (const Row& row : kRows) fields.push_back({.field = row.field});
  } else if (fields.empty()) {
    for (const AccessField field : kTextFields) fields.push_back({.field = field});
  }
  for (const AccessLogField& field : fields) Add(field, json);
  end_ = json ? "}\n" : "\n";
  literal_bytes_ += end_.size();
}

void LineFormat::Add(const AccessLogField& field, bool json) {
  const bool of_call = field.source == AccessLogField::Source::kCall;
  const Row* row = of_call ? &kRows[static_cast<size_t>(field.field)] : nullptr;
  std::string key = field.as;
  if (key.empty() && json)
    key = of_call ? std::string(kAccessFieldNames[static_cast<size_t>(field.field)]) : field.name;
  if (key.empty()) key = of_call ? std::string(row->key) : field.name;
  std::string before = pieces_.empty() ? (json ? "{" : "") : (json ? "," : " ");
  if (json) {
    before += Quoted(key) + ":";
  } else if (!key.empty()) {
    before += key + "=";
  }
  if (!of_call) {
    layout_.AddMetadata(field.source, field.name);
    return AddPiece(std::move(before), json ? Kind::kQuoted : Kind::kQuotedOrDash);
  }
  switch (row->value) {
    case Value::kTime:
      return AddPiece(std::move(before), json ? Kind::kTimeQuoted : Kind::kTime);
    case Value::kStatus:
      return AddPiece(std::move(before), json ? Kind::kStatusQuoted : Kind::kStatus);
    case Value::kCount:
      return AddPiece(std::move(before), Kind::kCount, row->index);
    case Value::kMillis:
      return AddPiece(std::move(before), json ? Kind::kMillisOrNull : Kind::kMillis, row->index);
    case Value::kCallId:
      return AddPiece(std::move(before), json ? Kind::kCallIdQuoted : Kind::kCallId);
    case Value::kText:
      break;
  }
  layout_.AddText(row->text, row->bytes_max);
  const bool quoted = json || row->look == Look::kQuoted;
  AddPiece(std::move(before), quoted ? Kind::kQuoted : row->look == Look::kWord ? Kind::kWord : Kind::kQuotedOrDash);
}

void LineFormat::AddPiece(std::string before, Kind kind, size_t index) {
  literal_bytes_ += before.size() + kLinePieceBytesMax;
  pieces_.push_back({std::move(before), kind, static_cast<uint8_t>(index)});
}

char* LineFormat::Put(char* to, LogRecordView record, int64_t wall_offset, TimeText& time) const {
  const LogRecord& words = *record.words;
  for (const Piece& piece : pieces_) {
    to = PutText(to, piece.before);
    switch (piece.kind) {
      case Kind::kTime:
        to = time.Put(to, words.ended + wall_offset);
        break;
      case Kind::kTimeQuoted:
        *to++ = '"';
        to = time.Put(to, words.ended + wall_offset);
        *to++ = '"';
        break;
      case Kind::kStatus:
        to = PutText(to, ToString(static_cast<GrpcCode>(words.status)));
        break;
      case Kind::kStatusQuoted:
        *to++ = '"';
        to = PutText(to, ToString(static_cast<GrpcCode>(words.status)));
        *to++ = '"';
        break;
      case Kind::kCount:
        to = PutNumber(to, words.counts[piece.index]);
        break;
      case Kind::kMillis:
      case Kind::kMillisOrNull:
        if (const int64_t nanos = words.durations[piece.index]; nanos >= 0) {
          to = PutMillis(to, nanos);
        } else {
          to = PutText(to, piece.kind == Kind::kMillis ? "-" : "null");
        }
        break;
      case Kind::kCallId:
        to = words.call_id == 0 ? PutText(to, "-") : CallId{words.call_id}.Put(to);
        break;
      case Kind::kCallIdQuoted:
        *to++ = '"';
        to = CallId{words.call_id}.Put(to);
        *to++ = '"';
        break;
      case Kind::kWord:
        to = PutWord(to, record.NextText());
        break;
      case Kind::kQuoted:
        to = PutQuoted(to, record.NextText());
        break;
      case Kind::kQuotedOrDash:
        const std::string_view text = record.NextText();
        to = text.empty() ? PutText(to, "-") : PutQuoted(to, text);
        break;
    }
  }
  return PutText(to, end_);
}

}  // namespace sluice::proxy
