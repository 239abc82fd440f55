#include "http2/fields/validate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "http2/fields/respell.h"

namespace sluice::http2 {
namespace {

// Bits of a byte's class. RFC 9113 8.2.1, and for the pseudo-headers what they stand for.
constexpr uint8_t kNameByte = 1;     // not 0x00-0x20, 'A'-'Z', 0x7f-0xff, ':'
constexpr uint8_t kValueByte = 2;    // not NUL, LF, CR
constexpr uint8_t kMethodByte = 4;   // RFC 9110 5.6.2, token
constexpr uint8_t kSchemeByte = 8;   // RFC 3986 3.1, all but the first
constexpr uint8_t kTargetByte = 16;  // of path and authority: not 0x00-0x20, 0x7f, '#'

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    bool name = c > 0x20 && c < 0x7f && !(c >= 'A' && c <= 'Z') && c != ':';
    bool value = c != 0 && c != '\n' && c != '\r';
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    bool method = letter || std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
    bool scheme = letter || c == '+' || c == '-' || c == '.';
    bool target = c > 0x20 && c != 0x7f && c != '#';
    classes[static_cast<size_t>(c)] =
        static_cast<uint8_t>((name ? kNameByte : 0) | (value ? kValueByte : 0) | (method ? kMethodByte : 0) |
                             (scheme ? kSchemeByte : 0) | (target ? kTargetByte : 0));
  }
  return classes;
}
constexpr std::array<uint8_t, 256> kByteClasses = MakeClasses();

constexpr uint64_t kOnes = 0x0101010101010101;

bool AllOf(std::string_view text, uint8_t wanted) {
  uint8_t both = wanted;
  for (char c : text) both &= kByteClasses[static_cast<uint8_t>(c)];
  return both == wanted;
}

// RFC 9113 8.3.1: one valid value. A space in a method or a path makes two requests of one where a recipient behind us
// writes it into an HTTP/1.1 request line.
bool ValidPseudoValue(Token token, std::string_view value) {
  switch (token) {
    case Token::kMethod:
      return AllOf(value, kMethodByte);
    case Token::kScheme:
      return AllOf(value, kSchemeByte) && (value.empty() || (value[0] | 0x20) >= 'a');
    case Token::kPath:
    case Token::kAuthority:
      return AllOf(value, kTargetByte);
    default:
      return true;
  }
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
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

bool IsHttp(std::string_view scheme) { return EqualIgnoringCase(scheme, "http") || EqualIgnoringCase(scheme, "https"); }

// RFC 3986 6.2.3: the scheme's default port says nothing, and neither does an empty one.
std::string_view WithoutDefaultPort(std::string_view authority, std::string_view scheme) {
  if (authority.ends_with(':')) return authority.substr(0, authority.size() - 1);
  std::string_view port = EqualIgnoringCase(scheme, "http") ? ":80" : EqualIgnoringCase(scheme, "https") ? ":443" : "";
  if (authority.ends_with(port)) authority.remove_suffix(port.size());
  return authority;
}

constexpr uint32_t Bit(Token token) { return 1u << static_cast<uint32_t>(token); }

// Walks a field section once and keeps what the rules about the whole need.
class Walk {
 public:
  explicit Walk(uint32_t allowed_pseudo) : allowed_pseudo_(allowed_pseudo) {}

  // Null, or the rule that was broken. Inlined, as a message's verdict is then in registers.
  [[gnu::always_inline]] const char* Over(const HeaderList& fields) {
    size_t i = 0;
    if (FieldRun* run = fields.run()) {
      if (run->check == FieldRun::Check::kNotYet) Summarize(*run);
      if (run->check == FieldRun::Check::kWellFormed) {
        if ((run->pseudo & ~allowed_pseudo_) != 0) return kMisplacedPseudo;
        seen_ = run->pseudo;
        regular_ = run->regular;
        host_ = run->has(Token::kHost);
        content_length = run->content_length;
        i = run->count;
      }
    }
    for (; i < fields.size(); ++i) {
      if (const char* broken = Visit(fields[i])) return broken;
    }
    return nullptr;
  }
  bool has(Token token) const { return (seen_ & Bit(token)) != 0; }
  bool has_host() const { return host_; }
  // All that the request line is judged by lies in the run.
  bool JudgedBy(const FieldRun& run) const { return seen_ == run.pseudo && !host_; }

  int64_t content_length = -1;

 private:
  static constexpr const char* kMisplacedPseudo = "undefined or misplaced pseudo-header";

  // What a walk over the run would find, whatever kind of message it begins.
  [[gnu::noinline, gnu::cold]] static void Summarize(FieldRun& run) {
    Walk walk(Bit(Token::kMethod) | Bit(Token::kScheme) | Bit(Token::kPath) | Bit(Token::kAuthority) |
              Bit(Token::kStatus));
    run.check = FieldRun::Check::kBroken;
    for (uint32_t i = 0; i < run.count; ++i) {
      if (walk.Visit(*run.fields()[i]) != nullptr) return;
    }
    run.check = FieldRun::Check::kWellFormed;
    run.pseudo = walk.seen_;
    run.regular = walk.regular_;
    run.content_length = walk.content_length;
  }

  [[gnu::always_inline]] const char* Visit(const Field& field) {
    if (!field.checked) {
      // A name that we know is a legal one.
      const bool known_name = field.token != Token::kOther && field.token != Token::kUnknownPseudo;
      if (!known_name && !ValidFieldName(field.name())) return "illegal field name";  // RFC 9113 8.2.1
      if (field.respell) return kToRespell;
      if (!ValidCharacters(field.value())) return "illegal field value";  // RFC 9113 8.2.1
      if (IsPseudo(field.token)) {
        if (!ValidPseudoValue(field.token, field.value())) return "illegal pseudo-header value";
      } else if (SpellingOf(field) == Spelling::kOther) {
        if (field.interned()) const_cast<Field&>(field).respell = true;
        return kToRespell;
      }
      if (field.interned()) const_cast<Field&>(field).checked = true;
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
        return std::exchange(host_, true) ? "repeated host" : nullptr;  // RFC 9110 7.2
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
    if ((bit & allowed_pseudo_) == 0) return kMisplacedPseudo;  // RFC 9113 8.3
    if ((bit & seen_) != 0) return "repeated pseudo-header";    // RFC 9113 8.3
    seen_ |= bit;
    return nullptr;
  }

  const uint32_t allowed_pseudo_;
  uint32_t seen_ = 0;
  bool regular_ = false;
  bool host_ = false;
};

// Empty where there is none.
std::string_view ValueOf(const HeaderList& fields, Token token) {
  const Field* field = fields.Find(token);
  return field != nullptr ? field->value() : std::string_view();
}

const char* CheckRequestLine(const Walk& walk, const HeaderList& fields, std::string_view method) {
  if (method.empty()) return "no :method";  // RFC 9113 8.3.1
  const std::string_view authority = ValueOf(fields, Token::kAuthority);
  if (method == "CONNECT") {
    // RFC 9113 8.5: only the authority. We never offer RFC 8441's :protocol.
    if (walk.has(Token::kScheme) || walk.has(Token::kPath)) return "CONNECT with :scheme or :path";
    if (authority.empty()) return "CONNECT without :authority";
    return nullptr;
  }
  const std::string_view scheme = ValueOf(fields, Token::kScheme);
  if (scheme.empty()) return "no :scheme";  // RFC 9113 8.3.1
  // RFC 9113 8.3.1: no userinfo in these two schemes; it is there to mislead (RFC 9110 4.2.4).
  if (authority.find('@') != std::string_view::npos && IsHttp(scheme)) return "userinfo in :authority";
  // RFC 9113 8.3.1: not empty; starts with '/', but for OPTIONS *.
  const std::string_view path = ValueOf(fields, Token::kPath);
  if (path.empty()) return "no :path";
  if (path[0] != '/' && !(path == "*" && method == "OPTIONS")) return "invalid :path";
  if (!walk.has_host()) return nullptr;
  const std::string_view host = ValueOf(fields, Token::kHost);
  if (!ValidPseudoValue(Token::kAuthority, host)) return "illegal host";
  // RFC 9113 8.3.1: a host field that names another authority, compared as 8.3.1 asks of an intermediary.
  if (!host.empty() && walk.has(Token::kAuthority) &&
      !EqualIgnoringCase(WithoutDefaultPort(host, scheme), WithoutDefaultPort(authority, scheme))) {
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
  return !blank(value.front()) && !blank(value.back()) && ValidCharacters(value);
}

bool ValidCharacters(std::string_view value) {
  while (value.size() >= 8) {
    // A byte below 0x0e, among them the three that are forbidden, borrows from its top bit.
    uint64_t word;
    std::memcpy(&word, value.data(), 8);
    if (((word - kOnes * 0x0e) & ~word & kOnes * 0x80) != 0 && !AllOf(value.substr(0, 8), kValueByte)) return false;
    value.remove_prefix(8);
  }
  return AllOf(value, kValueByte);
}

bool IsPlain(const Field& field) {
  constexpr uint64_t kJudgedTogether =
      uint64_t{1} << static_cast<uint32_t>(Token::kHost) | uint64_t{1} << static_cast<uint32_t>(Token::kContentLength);
  const auto token = static_cast<uint32_t>(field.token);
  const bool specific = IsPseudo(field.token) || (field.token >= Token::kConnection && field.token <= Token::kTe);
  if (specific || (kJudgedTogether >> token & 1) != 0) return false;
  if (field.checked) return true;
  if (field.token == Token::kOther && !ValidFieldName(field.name())) return false;
  return !field.respell && ValidCharacters(field.value()) && SpellingOf(field) == Spelling::kPlain;
}

MessageHead WalkRequest(const HeaderList& fields) {
  Walk walk(Bit(Token::kMethod) | Bit(Token::kScheme) | Bit(Token::kPath) | Bit(Token::kAuthority));
  MessageHead head;
  head.malformed = walk.Over(fields);
  head.content_length = walk.content_length;
  FieldRun* run = fields.run();
  const bool by_run = run != nullptr && walk.JudgedBy(*run);
  if (head.malformed != nullptr || (by_run && run->request_line)) return head;
  const std::string_view method = ValueOf(fields, Token::kMethod);
  head.malformed = CheckRequestLine(walk, fields, method);
  head.head = method == "HEAD";
  head.authority_in_host = walk.has_host() && !walk.has(Token::kAuthority) && ValueOf(fields, Token::kPath) != "*" &&
                           !ValueOf(fields, Token::kHost).empty();
  head.connect = method == "CONNECT";
  if (by_run) run->request_line = head.malformed == nullptr && !head.head && !head.connect;
  return head;
}

MessageHead WalkResponse(const HeaderList& fields) {
  Walk walk(Bit(Token::kStatus));
  MessageHead head;
  head.malformed = walk.Over(fields);
  if (head.malformed != nullptr) return head;
  head.status = ParseStatus(ValueOf(fields, Token::kStatus));
  if (head.status == 0) head.malformed = "no valid :status";           // RFC 9113 8.3.2
  if (head.status == 101) head.malformed = "101 Switching Protocols";  // RFC 9113 8.6
  head.content_length = walk.content_length;
  if (head.malformed == nullptr && IsWholeRun(fields)) fields.run()->status = static_cast<uint16_t>(head.status);
  return head;
}

const char* WalkTrailers(const HeaderList& fields) {
  Walk walk(0);  // RFC 9113 8.1: no pseudo-headers
  if (const char* broken = walk.Over(fields)) return broken;
  // RFC 9110 6.5.1: fields of framing and routing. A recipient that reads trailers as headers would take them for the
  // message's.
  if (walk.content_length >= 0 || walk.has_host()) return "content-length or host in trailers";
  if (IsWholeRun(fields)) fields.run()->trailers = true;
  return nullptr;
}

}  // namespace sluice::http2
