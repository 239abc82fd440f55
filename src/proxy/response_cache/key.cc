#include "proxy/response_cache/key.h"

#include <cstring>

namespace sluice::proxy::cache_key {
namespace {

using http2::Token;

void AppendSize(std::string& key, size_t size) {
  const auto value = static_cast<uint32_t>(size);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t SizeAt(std::string_view key, size_t offset) {
  uint32_t value;
  std::memcpy(&value, key.data() + offset, sizeof(value));
  return value;
}

void AppendSized(std::string& key, std::string_view value) {
  AppendSize(key, value.size());
  key.append(value);
}

// All values of the fields for which `is` is true, in order.
template <typename Is>
void AppendValues(std::string& key, const CanonicalRequest& request, const Is& is) {
  const size_t count_at = key.size();
  uint32_t count = 0;
  AppendSize(key, 0);
  for (const http2::Field* field : request) {
    if (!is(*field)) continue;
    AppendSized(key, field->value());
    ++count;
  }
  std::memcpy(key.data() + count_at, &count, sizeof(count));
}

// The same for a token. A repeated block's summary says which are not there: no walk over the fields for these.
void AppendValues(std::string& key, const CanonicalRequest& request, Token token) {
  if (request.Find(token) == nullptr) return AppendSize(key, 0);
  AppendValues(key, request, [token](const http2::Field& field) { return field.token == token; });
}

}  // namespace

bool IsOneMessage(std::string_view bytes) {
  if (bytes.size() < kPrefixBytes || static_cast<uint8_t>(bytes[0]) > 1) return false;
  uint32_t length = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) length = (length << 8) | static_cast<uint8_t>(bytes[i]);
  return bytes.size() - kPrefixBytes == length;
}

void Start(std::string& key, const CacheRule& rule, std::string_view cluster, const CanonicalRequest& request,
           size_t message_size) {
  const http2::Field* path_field = request.Find(Token::kPath);
  const std::string_view path = path_field != nullptr ? path_field->value() : std::string_view();
  key.reserve(256 + path.size() + message_size);
  AppendSize(key, path.size());
  AppendSize(key, message_size);
  key.append(path);

  AppendSized(key, cluster);
  // grpc-accept-encoding: what the upstream may compress its answer with.
  for (Token token :
       {Token::kAuthority, Token::kHost, Token::kContentType, Token::kGrpcEncoding, Token::kGrpcAcceptEncoding}) {
    AppendValues(key, request, token);
  }
  // Two routes may lead to one cluster: a response that one of them shares is not for the callers of the other.
  key.push_back(rule.shared ? 1 : 0);
  // The names too, so that routes with other lists have other keys.
  AppendSize(key, rule.vary.size());
  for (const std::string& name : rule.vary) {
    AppendSized(key, name);
    AppendValues(key, request, [&](const http2::Field& field) { return field.name() == name; });
  }
}

void SetMessageSize(std::string& key, size_t message_size) {
  const auto value = static_cast<uint32_t>(message_size);
  std::memcpy(key.data() + sizeof(uint32_t), &value, sizeof(value));
}

bool IsKey(std::string_view key) {
  constexpr size_t kSizes = 2 * sizeof(uint32_t);
  if (key.size() < kSizes) return false;
  const size_t path = SizeAt(key, 0), message = SizeAt(key, sizeof(uint32_t));
  return path > 0 && key.size() - kSizes >= path + message && IsOneMessage(MessageOf(key)) &&
         PathOf(key).front() == '/';
}

std::string_view PathOf(std::string_view key) { return key.substr(2 * sizeof(uint32_t), SizeAt(key, 0)); }

std::string_view MessageOf(std::string_view key) { return key.substr(key.size() - SizeAt(key, sizeof(uint32_t))); }

bool Covers(const CachePurge& what, std::string_view key) {
  if (what.service.empty()) return true;
  std::string_view path = PathOf(key);
  if (!path.starts_with('/')) return false;
  path.remove_prefix(1);
  if (!path.starts_with(what.service)) return false;
  path.remove_prefix(what.service.size());
  if (!path.starts_with('/')) return false;  // "a.B" is not "a.BC"
  path.remove_prefix(1);
  if (what.method.empty()) return true;
  if (path != what.method) return false;
  if (!what.key) return true;
  const std::string_view message = MessageOf(key);
  const bool compressed = message[0] != 0;
  return compressed || message.substr(kPrefixBytes) == *what.key;
}

}  // namespace sluice::proxy::cache_key
