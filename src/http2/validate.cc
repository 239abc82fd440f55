#include "http2/validate.h"

#include <algorithm>

namespace sluice::http2 {
namespace {

// Bits of a byte's class. RFC 9113 8.2.1.
constexpr uint8_t kNameByte = 1;   // not 0x00-0x20, 'A'-'Z', 0x7f-0xff, ':'
constexpr uint8_t kValueByte = 2;  // not NUL, LF, CR

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    bool name = c > 0x20 && c < 0x7f && !(c >= 'A' && c <= 'Z') && c != ':';
    bool value = c != 0 && c != '\n' && c != '\r';
    classes[static_cast<size_t>(c)] = static_cast<uint8_t>((name ? kNameByte : 0) | (value ? kValueByte : 0));
  }
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

bool AllOf(std::string_view text, uint8_t wanted) {
  uint8_t both = wanted;
  for (char c : text) both &= kClasses[static_cast<uint8_t>(c)];
  return both == wanted;
}

// RFC 9110 8.6: digits only. -1: not a length.
int64_t ParseLength(std::string_view text) {
  if (text.empty() || text.size() > 18) return -1;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

// RFC 9113 8.3.2: three digits.
uint32_t ParseStatus(std::string_view text) {
  if (text.size() != 3) return 0;
  uint32_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return 0;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  return value >= 100 ? value : 0;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

constexpr uint32_t Bit(Token token) { return 1u << static_cast<uint32_t>(token); }

// Walks a field section once and keeps what the rules about the whole need.
class Walk {
 public:
  Walk(uint32_t allowed_pseudo, CheckedFields& checked)
      : allowed_pseudo_(allowed_pseudo), checked_(checked) {}

  // Null, or the rule that was broken.
  const char* Run(const HeaderList& fields) {
    for (const Field* field : fields) {
      if (const char* broken = Visit(*field)) return broken;
    }
    return nullptr;
  }
  bool has(Token token) const { return (seen_ & Bit(token)) != 0; }

  std::string_view method, scheme, path, authority, host, status;
  int64_t content_length = -1;

 private:
  const char* Visit(const Field& field) {
    if (!checked_.Contains(field)) {
      if (!ValidFieldName(field.name())) return "illegal field name";     // RFC 9113 8.2.1
      if (!ValidFieldValue(field.value())) return "illegal field value";  // RFC 9113 8.2.1
      checked_.Add(field);
    }
    if (IsPseudo(field.token)) return VisitPseudo(field);
    regular_ = true;
    switch (field.token) {
      case Token::kConnection:
      case Token::kProxyConnection:
      case Token::kKeepAlive:
      case Token::kTransferEncoding:
      case Token::kUpgrade:
        return "connection-specific field";  // RFC 9113 8.2.2
      case Token::kTe:
        return field.value() == "trailers" ? nullptr : "te other than trailers";  // RFC 9113 8.2.2
      case Token::kHost:
        host = field.value();
        return nullptr;
      case Token::kContentLength: {
        int64_t length = ParseLength(field.value());
        // RFC 9110 8.6: an unreadable length, or two that differ, make the message's end a matter of opinion.
        if (length < 0 || (content_length >= 0 && content_length != length)) return "invalid content-length";
        content_length = length;
        return nullptr;
      }
      default:
        return nullptr;
    }
  }

  const char* VisitPseudo(const Field& field) {
    if (regular_) return "pseudo-header after a regular field";  // RFC 9113 8.3
    uint32_t bit = Bit(field.token);
    if ((bit & allowed_pseudo_) == 0) return "undefined or misplaced pseudo-header";  // RFC 9113 8.3
    if ((bit & seen_) != 0) return "repeated pseudo-header";                          // RFC 9113 8.3
    seen_ |= bit;
    switch (field.token) {
      case Token::kMethod:
        method = field.value();
        break;
      case Token::kScheme:
        scheme = field.value();
        break;
      case Token::kPath:
        path = field.value();
        break;
      case Token::kAuthority:
        authority = field.value();
        break;
      case Token::kStatus:
        status = field.value();
        break;
      default:
        break;
    }
    return nullptr;
  }

  const uint32_t allowed_pseudo_;
  CheckedFields& checked_;
  uint32_t seen_ = 0;
  bool regular_ = false;
};

const char* CheckRequestLine(const Walk& walk) {
  if (walk.method.empty()) return "no :method";  // RFC 9113 8.3.1
  if (walk.method == "CONNECT") {
    // RFC 9113 8.5: only the authority. We never offer RFC 8441's :protocol.
    if (walk.has(Token::kScheme) || walk.has(Token::kPath)) return "CONNECT with :scheme or :path";
    if (walk.authority.empty()) return "CONNECT without :authority";
    return nullptr;
  }
  if (walk.scheme.empty()) return "no :scheme";  // RFC 9113 8.3.1
  // RFC 9113 8.3.1: not empty; starts with '/', but for OPTIONS *.
  if (walk.path.empty()) return "no :path";
  if (walk.path[0] != '/' && !(walk.path == "*" && walk.method == "OPTIONS")) return "invalid :path";
  // RFC 9113 8.3.1: a host field that names another authority.
  if (!walk.host.empty() && walk.has(Token::kAuthority) && !EqualIgnoringCase(walk.host, walk.authority)) {
    return "host differs from :authority";
  }
  return nullptr;
}

}  // namespace

bool ValidFieldName(std::string_view name) {
  if (!name.empty() && name[0] == ':') name.remove_prefix(1);
  return !name.empty() && AllOf(name, kNameByte);
}

bool ValidFieldValue(std::string_view value) {
  if (value.empty()) return true;
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  return !blank(value.front()) && !blank(value.back()) && AllOf(value, kValueByte);
}

MessageHead ValidateRequest(const HeaderList& fields, CheckedFields& checked) {
  Walk walk(Bit(Token::kMethod) | Bit(Token::kScheme) | Bit(Token::kPath) | Bit(Token::kAuthority), checked);
  MessageHead head;
  head.malformed = walk.Run(fields);
  if (head.malformed == nullptr) head.malformed = CheckRequestLine(walk);
  head.content_length = walk.content_length;
  head.head = walk.method == "HEAD";
  return head;
}

MessageHead ValidateResponse(const HeaderList& fields, CheckedFields& checked) {
  Walk walk(Bit(Token::kStatus), checked);
  MessageHead head;
  head.malformed = walk.Run(fields);
  if (head.malformed != nullptr) return head;
  head.status = ParseStatus(walk.status);
  if (head.status == 0) head.malformed = "no valid :status";           // RFC 9113 8.3.2
  if (head.status == 101) head.malformed = "101 Switching Protocols";  // RFC 9113 8.6
  head.content_length = walk.content_length;
  return head;
}

const char* ValidateTrailers(const HeaderList& fields, CheckedFields& checked) {
  return Walk(0, checked).Run(fields);  // RFC 9113 8.1: no pseudo-headers
}

}  // namespace sluice::http2
