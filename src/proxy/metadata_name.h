// MetadataName: a name of metadata that an option says, recognised once: a call looks for the field by its token, and
// by the letters only among fields of that token.
//
// Thread safety: as a string.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "http2/fields/bin_value.h"
#include "http2/fields/field.h"

namespace sluice::proxy {

class MetadataName {
 public:
  MetadataName() = default;  // none
  MetadataName(std::string name)
      : text_(std::move(name)), token_(http2::TokenOf(text_)), is_bin_(http2::IsBinName(text_)) {}
  MetadataName(const char* name) : MetadataName(std::string(name)) {}

  const std::string& text() const { return text_; }
  http2::Token token() const { return token_; }
  bool is_bin() const { return is_bin_; }  // its values are base64 (gRPC over HTTP/2, "-bin")
  bool empty() const { return text_.empty(); }
  bool operator==(const MetadataName& other) const { return text_ == other.text_; }
  bool operator==(std::string_view other) const { return text_ == other; }

 private:
  std::string text_;
  http2::Token token_ = http2::Token::kOther;
  bool is_bin_ = false;
};

}  // namespace sluice::proxy
