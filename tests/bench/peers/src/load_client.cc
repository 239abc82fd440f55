// Load client that speaks gRPC-shaped HTTP/2 the way grpc-core does and CHECKS every reply:
// :status 200, content-type, message bytes, and grpc-status: 0 in trailers with END_STREAM.
// h2load counts throughput well but cannot see a missing trailer; this can.
//
//   load_client --connect host:port -n CALLS [-c CONNS] [-m STREAMS] [--req-bytes N] [--resp-bytes N]
//            [--unique]        a different x-request-id on every call (literal, not indexed)
//            [--rate R]        open loop: R calls/s in all; latency counts from the intended start
//            [--poll]          never sleeps (epoll_wait(0) + sched_yield): a sender pays no wake-up
//            [--timeout S]     give up after S seconds (default 60)
// Prints one JSON object. Exit status 0 only if every call was right.
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "h2_decode.h"
#include "h2_wire.h"

static std::string request_message, response_message, target;
static bool unique_ids;
static uint64_t want_calls, started, finished, failed, seq;
static uint64_t bad_status, bad_ctype, bad_body, bad_trailer, resets, goaways;
static uint32_t max_streams = 1;
static std::vector<uint32_t> lat;  // ns / 10
static double rate;
static std::deque<uint64_t> due;  // open loop: intended starts not yet sent

static uint64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct Call {
  uint64_t t0 = 0;
  uint32_t to_send = 0, got = 0;
  int64_t win = 0;
  bool status_ok = false, ctype_ok = false, headers_seen = false, body_ok = true, grpc_ok = false;
};
struct Conn {
  int fd = -1;
  std::string in, out;
  size_t out_off = 0;
  bool wants_write = false, first = true, dead = false;
  int64_t conn_win = 65535, init_win = 65535;
  uint32_t peer_frame = 16384, peer_streams = 0xffffffff, peer_table = 4096, next_id = 1;
  uint64_t consumed = 0;
  std::unordered_map<uint32_t, Call> calls;
  std::deque<uint32_t> blocked;
  nghttp2_hd_inflater* inflater = nullptr;
  std::string header_block;
  uint32_t header_stream = 0;
  bool header_end_stream = false;
};

static void AppendRequestBlock(Conn* c, std::string& b) {
  // Dynamic table after the first call: 62 user-agent, 63 te, 64 content-type, 65 :path, 66 :authority
  if (c->peer_table >= 4096 && !c->first) {
    static const char kIdx[] = {(char)0x86,        (char)0x83,        (char)(0x80 | 65), (char)(0x80 | 66),
                                (char)(0x80 | 63), (char)(0x80 | 64), (char)(0x80 | 62)};
    b.append(kIdx, sizeof kIdx);
  } else {
    uint8_t k = c->peer_table >= 4096 ? 0x40 : 0;
    if (!k && c->first) b.push_back(0x20);
    AppendIndexed(b, 6);  // :scheme http
    AppendIndexed(b, 3);  // :method POST
    AppendLiteral(b, k, 1, "", target);
    AppendLiteral(b, k, 4, "", "/pkg.Service/Method");
    AppendLiteral(b, k, 31, "", "application/grpc");
    AppendLiteral(b, k, 0, "te", "trailers");
    AppendLiteral(b, k, 58, "", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)");
    c->first = false;
  }
  // Custom metadata: grpc-core sends it as plain literals, never indexed.
  AppendLiteral(b, 0, 0, "x-key", "tenant-0042");
  AppendLiteral(b, 0, 0, "x-trace-bin", "AAECAwQFBgcICQoLDA0ODw");
  char id[40];
  snprintf(id, sizeof id, "%016llx", (unsigned long long)(unique_ids ? (++seq) * 0x9e3779b97f4a7c15ull : 7));
  AppendLiteral(b, 0, 0, "x-request-id", id);
}
static bool PushBody(Conn* c, uint32_t id, Call& k) {
  while (k.to_send) {
    int64_t w = std::min(c->conn_win, k.win);
    if (w <= 0) return false;
    uint32_t n = std::min<int64_t>({w, (int64_t)c->peer_frame, (int64_t)k.to_send});
    AppendFrame(c->out, n, kData, n == k.to_send ? kEndStream : 0, id,
                request_message.data() + (request_message.size() - k.to_send));
    k.to_send -= n;
    k.win -= n;
    c->conn_win -= n;
  }
  return true;
}
static void StartCalls(Conn* c, uint64_t now) {
  while (!c->dead && c->calls.size() < std::min(max_streams, c->peer_streams)) {
    uint64_t t0 = now;
    if (rate > 0) {
      if (due.empty()) return;
      t0 = due.front();
      due.pop_front();
    } else if (started >= want_calls) {
      return;
    }
    started++;
    uint32_t id = c->next_id;
    c->next_id += 2;
    std::string b;
    AppendRequestBlock(c, b);
    AppendFrame(c->out, b.size(), kHeaders, kEndHeaders, id, b.data());
    Call& k = c->calls[id];
    k.t0 = t0;
    k.to_send = request_message.size();
    k.win = c->init_win;
    if (!c->blocked.empty() || !PushBody(c, id, k)) c->blocked.push_back(id);
  }
}
static void Finish(Conn* c, uint32_t id, Call& k) {
  bool ok = true;
  if (!k.status_ok) bad_status++, ok = false;
  if (!k.ctype_ok) bad_ctype++, ok = false;
  if (!k.body_ok || k.got != response_message.size()) bad_body++, ok = false;
  if (!k.grpc_ok) bad_trailer++, ok = false;
  if (!ok) failed++;
  finished++;
  lat.push_back((uint32_t)std::min<uint64_t>((NowNs() - k.t0) / 10, 0xffffffffu));
  c->calls.erase(id);
}
static bool OnHeaders(Conn* c, uint32_t sid, bool es, const uint8_t* p, size_t n) {
  auto it = c->calls.find(sid);
  Call* k = it == c->calls.end() ? nullptr : &it->second;
  bool trailers = k && k->headers_seen, grpc_ok = false;
  const bool decoded = DecodeBlock(c->inflater, p, n, [&](const nghttp2_nv& nv) {
    if (!k) return;
    auto is = [&](const char* a, const char* b) {
      return nv.namelen == strlen(a) && !memcmp(nv.name, a, nv.namelen) && nv.valuelen == strlen(b) &&
             !memcmp(nv.value, b, nv.valuelen);
    };
    if (is(":status", "200"))
      k->status_ok = true;
    else if (is("content-type", "application/grpc"))
      k->ctype_ok = true;
    else if (is("grpc-status", "0"))
      grpc_ok = true;
  });
  if (!decoded || !k) return decoded;
  k->headers_seen = true;
  if (trailers && es && grpc_ok) k->grpc_ok = true;
  if (es) Finish(c, sid, *k);
  return true;
}
static bool OnFrame(Conn* c, uint32_t len, uint8_t type, uint8_t flags, uint32_t sid, const uint8_t* p) {
  switch (type) {
    case kData: {
      Credit(c->out, c->consumed, len);
      auto it = c->calls.find(sid);
      if (it == c->calls.end()) return true;
      Call& k = it->second;
      Unpad(type, flags, p, len);
      if (k.got + len > response_message.size() || memcmp(response_message.data() + k.got, p, len)) k.body_ok = false;
      k.got += len;
      if (flags & kEndStream) Finish(c, sid, k);
      return true;
    }
    case kHeaders:
      Unpad(type, flags, p, len);
      if (flags & kEndHeaders) return OnHeaders(c, sid, flags & kEndStream, p, len);
      c->header_stream = sid;
      c->header_end_stream = flags & kEndStream;
      c->header_block.assign((const char*)p, len);
      return true;
    case kContinuation:
      c->header_block.append((const char*)p, len);
      if (flags & kEndHeaders)
        return OnHeaders(c, c->header_stream, c->header_end_stream, (const uint8_t*)c->header_block.data(),
                         c->header_block.size());
      return true;
    case kRstStream: {
      auto it = c->calls.find(sid);
      if (it != c->calls.end()) {
        resets++;
        failed++;
        finished++;
        c->calls.erase(it);
      }
      return true;
    }
    case kSettings:
      if (flags & kAck) return true;
      ForEachSetting(p, len, [c](uint16_t k, uint32_t v) {
        if (k == 1) c->peer_table = v;
        if (k == 3) c->peer_streams = v;
        if (k == 4) {
          for (auto& kv : c->calls) kv.second.win += (int64_t)v - c->init_win;
          c->init_win = v;
        }
        if (k == 5) c->peer_frame = std::min(v, 65536u);
      });
      AppendFrame(c->out, 0, kSettings, kAck, 0, nullptr);
      return true;
    case kPing:
      if (!(flags & kAck)) AppendFrame(c->out, 8, kPing, kAck, 0, p);
      return true;
    case kGoaway:
      goaways++;
      return true;
    case kWindowUpdate: {
      uint32_t inc = ReadU32(p) & 0x7fffffff;
      if (!sid) {
        c->conn_win += inc;
        return true;
      }
      auto it = c->calls.find(sid);
      if (it != c->calls.end()) it->second.win += inc;
      return true;
    }
    default:
      return true;
  }
}
static bool Parse(Conn* c, const uint8_t* p, size_t n, size_t* used) {
  bool ok = true;
  *used = ReadFrames(p, n, ok, [c](auto... frame) { return OnFrame(c, frame...); });
  return ok;
}
static bool Flush(Conn* c) {
  for (size_t i = c->blocked.size(); i && !c->blocked.empty() && c->conn_win > 0; i--) {
    uint32_t id = c->blocked.front();
    c->blocked.pop_front();
    auto it = c->calls.find(id);
    if (it != c->calls.end() && !PushBody(c, id, it->second)) c->blocked.push_back(id);
  }
  while (c->out_off < c->out.size()) {
    ssize_t w = send(c->fd, c->out.data() + c->out_off, c->out.size() - c->out_off, MSG_NOSIGNAL);
    if (w < 0) return errno == EAGAIN;
    c->out_off += w;
  }
  c->out.clear();
  c->out_off = 0;
  return true;
}

int main(int argc, char** argv) {
  uint32_t conns = 1, rq = 32, rs = 32;
  double timeout = 60;
  bool poll = false;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i];
    auto next = [&] {
      if (++i >= argc) {
        fprintf(stderr, "%s needs a value\n", a.c_str());
        exit(2);
      }
      return argv[i];
    };
    if (a == "--connect")
      target = next();
    else if (a == "-n")
      want_calls = strtoull(next(), nullptr, 10);
    else if (a == "-c")
      conns = atoi(next());
    else if (a == "-m")
      max_streams = atoi(next());
    else if (a == "--req-bytes")
      rq = atoi(next());
    else if (a == "--resp-bytes")
      rs = atoi(next());
    else if (a == "--unique")
      unique_ids = true;
    else if (a == "--poll")
      poll = true;
    else if (a == "--rate")
      rate = atof(next());
    else if (a == "--timeout")
      timeout = atof(next());
    else {
      fprintf(stderr, "unknown option %s\n", a.c_str());
      return 2;
    }
  }
  request_message = GrpcMessage(rq);
  response_message = GrpcMessage(rs);
  lat.reserve(want_calls);
  signal(SIGPIPE, SIG_IGN);
  int ep = epoll_create1(EPOLL_CLOEXEC);
  std::vector<Conn*> cs;
  sockaddr_in to = ParseAddress(target);
  for (uint32_t i = 0; i < conns; i++) {
    auto* c = new Conn();
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c->fd, (sockaddr*)&to, sizeof to)) Die("connect");
    SetNonBlocking(c->fd);
    SetNoDelay(c->fd);
    nghttp2_hd_inflate_new(&c->inflater);
    c->out.append(kPreface, kPrefaceBytes);
    uint8_t s[12] = {0, 2, 0, 0, 0, 0, 0, 4, 0x40, 0, 0, 0};  // no push; INITIAL_WINDOW_SIZE 2^30
    AppendFrame(c->out, 12, kSettings, 0, 0, s);
    AppendWindowUpdate(c->out, 0, 0x3fff0000);
    c->calls.reserve(max_streams * 2);
    epoll_event ev{EPOLLIN, {.u64 = i}};
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
    cs.push_back(c);
  }
  int tfd = -1;
  if (rate > 0) {
    tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    epoll_event ev{EPOLLIN, {.u64 = ~0ull}};
    epoll_ctl(ep, EPOLL_CTL_ADD, tfd, &ev);
  }
  static uint8_t buf[256 * 1024];
  epoll_event evs[256];
  uint64_t t_start = NowNs(), scheduled = 0, last_progress = t_start;
  uint32_t dead = 0, rr = 0;
  bool timed_out = false;
  for (auto* c : cs) {
    if (rate <= 0) StartCalls(c, NowNs());
    if (!Flush(c)) Die("send");
  }
  while (finished < want_calls && dead < conns) {
    if (rate > 0 && scheduled < want_calls) {
      uint64_t now = NowNs();
      while (scheduled < want_calls && t_start + (uint64_t)(scheduled * 1e9 / rate) <= now)
        due.push_back(t_start + (uint64_t)(scheduled++ * 1e9 / rate));
      uint64_t at = t_start + (uint64_t)(scheduled * 1e9 / rate);
      itimerspec it{};
      it.it_value.tv_sec = at / 1000000000ull;
      it.it_value.tv_nsec = at % 1000000000ull;
      if (!poll) timerfd_settime(tfd, TFD_TIMER_ABSTIME, &it, nullptr);
      for (uint32_t i = 0; i < conns && !due.empty(); i++) {
        Conn* c = cs[rr++ % conns];
        StartCalls(c, now);
        if (!c->dead && c->out_off < c->out.size() && !Flush(c)) {
          c->dead = true;
          dead++;
        }
      }
    }
    int n = epoll_wait(ep, evs, 256, poll ? 0 : 1000);
    if (!n && poll) sched_yield();
    uint64_t now = NowNs();
    if (now - last_progress > timeout * 1e9 || now - t_start > 10 * timeout * 1e9) {
      timed_out = true;
      break;
    }
    for (int i = 0; i < n; i++) {
      if (evs[i].data.u64 == ~0ull) {
        uint64_t x;
        (void)!read(tfd, &x, 8);
        continue;
      }
      Conn* c = cs[evs[i].data.u64];
      if (c->dead) continue;
      bool ok = true;
      if (evs[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t r = recv(c->fd, buf, sizeof buf, 0);
        if (r <= 0) {
          ok = r < 0 && errno == EAGAIN;
        } else {
          last_progress = now;
          size_t used;
          if (c->in.empty()) {
            ok = Parse(c, buf, r, &used);
            if (used < (size_t)r) c->in.assign((char*)buf + used, r - used);
          } else {
            c->in.append((char*)buf, r);
            ok = Parse(c, (const uint8_t*)c->in.data(), c->in.size(), &used);
            c->in.erase(0, used);
          }
        }
      }
      if (ok) {
        StartCalls(c, NowNs());
        ok = Flush(c);
      }
      if (!ok) {
        c->dead = true;
        dead++;
        epoll_ctl(ep, EPOLL_CTL_DEL, c->fd, nullptr);
        failed += c->calls.size();
        finished += c->calls.size();
        c->calls.clear();
        continue;
      }
      bool want = c->out_off < c->out.size();
      if (want != c->wants_write) {
        c->wants_write = want;
        epoll_event ev{EPOLLIN | (want ? (uint32_t)EPOLLOUT : 0u), {.u64 = evs[i].data.u64}};
        epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
      }
    }
  }
  double secs = (NowNs() - t_start) / 1e9;
  std::sort(lat.begin(), lat.end());
  auto pct = [&](double q) {
    return lat.empty() ? 0.0 : lat[std::min(lat.size() - 1, (size_t)(q * lat.size()))] / 100.0;
  };
  bool good = finished == want_calls && !failed && !timed_out;
  printf(
      "{\"ok\": %s, \"calls\": %llu, \"finished\": %llu, \"failed\": %llu, \"bad_status\": %llu, \"bad_content_type\": "
      "%llu, "
      "\"bad_body\": %llu, \"bad_trailers\": %llu, \"resets\": %llu, \"goaways\": %llu, \"dead_conns\": %u, "
      "\"timed_out\": %s, "
      "\"seconds\": %.6f, \"rps\": %.1f, \"p50_us\": %.2f, \"p90_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
      "\"max_us\": %.2f}\n",
      good ? "true" : "false", (unsigned long long)want_calls, (unsigned long long)finished, (unsigned long long)failed,
      (unsigned long long)bad_status, (unsigned long long)bad_ctype, (unsigned long long)bad_body,
      (unsigned long long)bad_trailer, (unsigned long long)resets, (unsigned long long)goaways, dead,
      timed_out ? "true" : "false", secs, finished / secs, pct(.5), pct(.9), pct(.99), pct(.999),
      lat.empty() ? 0.0 : lat.back() / 100.0);
  return good ? 0 : 1;
}
