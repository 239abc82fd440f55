// HPACK decoder (RFC 7541): header block bytes in, HeaderList out. One per direction of a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http2/header.h"
#include "http2/hpack/dynamic_table.h"

namespace sluice::http2 {

struct DecodeLimits {
  // Sum of hpack_size() above which fields are decoded (the table must stay in step) but no longer stored.
  size_t header_list_bytes_max = 64 * 1024;
  size_t header_count_max = 256;
};

enum class DecodeResult : uint8_t {
  kOk,
  kTooLarge,  // above DecodeLimits; the table is in step, the list holds what fitted: a stream error or 431, not the connection's
  kError,     // COMPRESSION_ERROR: the connection must end (RFC 9113 4.3)
};

class HpackDecoder {
 public:
  // table_bytes_max: our SETTINGS_HEADER_TABLE_SIZE.
  HpackDecoder(InternTable& interns, size_t table_bytes_max = 4096);

  // Decodes one whole header block (after CONTINUATIONs are joined) into `out`, appending.
  DecodeResult Decode(std::string_view block, const DecodeLimits& limits, HeaderList& out);

  // Our SETTINGS_HEADER_TABLE_SIZE changed and was acknowledged: larger updates are an error from now on; if it is
  // below the table's present size, the next block must start with an update (RFC 7541 4.2).
  void SetTableBytesMax(size_t bytes);
  size_t table_bytes() const { return table_.bytes(); }

 private:
  InternTable& interns_;
  DynamicTable table_;
  size_t table_bytes_max_;
  bool update_due_ = false;
};

}  // namespace sluice::http2
