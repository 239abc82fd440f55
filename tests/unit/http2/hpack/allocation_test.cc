// A repeated call's headers cost no heap allocation: counted through the global operator new.
#include <gtest/gtest.h>

#include <cstdio>

#include "unit/http2/allocation_counter.h"
#include "unit/http2/hpack/support.h"

#ifndef SLUICE_SANITIZED  // sanitizers bring their own operator new

namespace sluice::http2 {
namespace {

TEST(HpackAllocation, ASteadyCallAllocatesNothing) {
  InternTable interns;
  HpackEncoder client(interns), upstream(interns);
  HpackDecoder decoder(interns);
  uint8_t block[2048], forwarded[2048];
  uint64_t before = 0;
  for (int call = 0; call < 1000; ++call) {
    if (call == 300) before = AllocationsForTest();
    // New each time: a field to be indexed, which goes through the intern table, and literals.
    char id[32], timeout[32];
    std::snprintf(id, sizeof(id), "%026d", call);
    std::snprintf(timeout, sizeof(timeout), "%dm", 100000 + call);
    HeaderList request(&interns);
    request.AddInterned(InternTable::Static(3));
    request.AddInterned(interns.Intern(":path", "/helloworld.Greeter/SayHello"));
    request.AddInterned(interns.Intern("content-type", "application/grpc"));
    request.AddInterned(interns.Intern("x-request-id", id));
    request.Add("grpc-timeout", timeout);
    request.Add("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    request.Add("authorization", "Bearer abcdefghijklmnopqrstuvwxyz", Indexing::kNever);
    const size_t size = client.Encode(request, block);

    HeaderList received(&interns);
    ASSERT_EQ(decoder.Decode({reinterpret_cast<char*>(block), size}, {}, received), DecodeResult::kOk);
    received.Set(Token::kGrpcTimeout, "grpc-timeout", "99m");
    HeaderList moved = std::move(received);
    upstream.Encode(moved, forwarded);
  }
  EXPECT_EQ(AllocationsForTest() - before, 0u);
}

}  // namespace
}  // namespace sluice::http2
#endif
