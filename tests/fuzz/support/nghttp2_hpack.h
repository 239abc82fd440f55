// Inflater: libnghttp2's HPACK decoder, the judge of what is read and written.
#pragma once

#include <nghttp2/nghttp2.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http2/fields/header.h"

namespace sluice::fuzz {

using Pairs = std::vector<std::pair<std::string, std::string>>;

class Inflater {
 public:
  Inflater() { SLUICE_CHECK(nghttp2_hd_inflate_new(&inflater_) == 0); }
  ~Inflater() { nghttp2_hd_inflate_del(inflater_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void SetTableBytesMax(size_t bytes) { nghttp2_hd_inflate_change_table_size(inflater_, bytes); }
  size_t table_bytes() const { return nghttp2_hd_inflate_get_dynamic_table_size(inflater_); }

  // The fields of a block, in `never` whether each must never be indexed; nothing if it is refused. After that it is of
  // no more use.
  std::optional<Pairs> Decode(std::string_view block, std::vector<bool>* never = nullptr) {
    Pairs pairs;
    // Of its own size, so that ASan sees a read behind the end.
    const std::vector<uint8_t> bytes(block.begin(), block.end());
    const uint8_t* p = bytes.data();
    size_t left = bytes.size();
    for (;;) {
      nghttp2_nv nv;
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &nv, &flags, p, left, 1);
      if (used < 0) return std::nullopt;
      p += used;
      left -= static_cast<size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        pairs.emplace_back(std::string(reinterpret_cast<char*>(nv.name), nv.namelen),
                           std::string(reinterpret_cast<char*>(nv.value), nv.valuelen));
        if (never != nullptr) never->push_back((nv.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return pairs;
  }

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
};

inline Pairs PairsOf(const http2::HeaderList& list) {
  Pairs pairs;
  for (const http2::Field* field : list) pairs.emplace_back(field->name(), field->value());
  return pairs;
}

}  // namespace sluice::fuzz
