// HPACK decoding for the two ends of the side-by-side benchmark, by nghttp2.
#pragma once
#include <nghttp2/nghttp2.h>
#include <stdio.h>

// Calls fn(nghttp2_nv) for each field of a header block. False, and a line on stderr: it cannot be decoded.
template <typename Fn>
bool DecodeBlock(nghttp2_hd_inflater* inflater, const uint8_t* p, size_t n, Fn fn) {
  for (;;) {
    nghttp2_nv nv;
    int fl = 0;
    ssize_t r = nghttp2_hd_inflate_hd2(inflater, &nv, &fl, p, n, 1);
    if (r < 0) {
      fprintf(stderr, "hpack error %zd\n", r);
      return false;
    }
    p += r;
    n -= r;
    if (fl & NGHTTP2_HD_INFLATE_EMIT) fn(nv);
    if (fl & NGHTTP2_HD_INFLATE_FINAL) {
      nghttp2_hd_inflate_end_headers(inflater);
      return true;
    }
    if (!(fl & NGHTTP2_HD_INFLATE_EMIT) && !n) return true;
  }
}
