// Benchmark upstream: answers every HTTP/2 (prior knowledge) POST as a gRPC unary call:
// HEADERS + DATA (one gRPC message) + trailers (grpc-status: 0). One thread, epoll, hand-made
// frames, so it costs far less per call than any proxy in front of it.
//
//   backend --listen host:port[,host:port...] --resp-bytes N --req-bytes N [--verify] [--stats FILE]
//           [--poll]         never sleeps (epoll_wait(0) + sched_yield): a sender pays no wake-up
//           [--fault trailers|status|body]   every 500th reply is wrong on purpose: tests the load client
//
// It always checks that each request's DATA adds up to 5 + req-bytes. With --verify it also
// HPACK-decodes every request and checks the headers and the body bytes a gRPC server needs.
// Counters live in FILE (mmap of struct Stats) so a harness can read them while it runs.
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "h2_decode.h"
#include "h2_wire.h"

struct Stats {  // read by bed.py, in this order
  uint64_t requests, bad_len, bad_hdr, conns, rst, goaway, reads, writes;
};
static Stats* stats;
static bool verify;
static std::string fault;
static std::string request_message, response_message;
static bool stop_flag;

enum { kOutCap = 256 * 1024 };

struct Slot {
  uint32_t id = 0;
  uint32_t got = 0;   // request DATA bytes so far
  int64_t win = 0;    // peer's stream window for our DATA
  uint32_t sent = 0;  // response bytes sent
  bool open = false, ended = false, hdr_ok = true, body_ok = true;
};

struct Conn {
  int fd;
  bool preface = true, closed = false, wants_write = false;
  std::string in, out;
  size_t out_off = 0;
  int64_t conn_win = 65535, init_win = 65535;
  uint32_t peer_frame = 16384, table = 4096;
  int table_state = 0;  // dynamic table: 0 empty, 1 holds the two response headers, 2 holds grpc-status too
  bool table_update_sent = false;
  uint64_t consumed = 0;
  uint32_t live = 0, header_stream = 0;
  bool header_end_stream = false;
  std::string header_block;
  std::vector<Slot> slots = std::vector<Slot>(64);  // by stream id; doubled when two live ids collide
  std::deque<uint32_t> blocked;                     // streams with response left to send
  nghttp2_hd_inflater* inflater = nullptr;
};

static Slot& SlotFor(Conn* c, uint32_t id) { return c->slots[(id >> 1) & (c->slots.size() - 1)]; }
static Slot& NewSlot(Conn* c, uint32_t id) {
  while (SlotFor(c, id).open) {
    std::vector<Slot> bigger(c->slots.size() * 2);
    if (bigger.size() > (1u << 20)) {
      fprintf(stderr, "backend: too many open streams\n");
      exit(3);
    }
    for (auto& s : c->slots)
      if (s.open) bigger[(s.id >> 1) & (bigger.size() - 1)] = s;
    c->slots.swap(bigger);
  }
  return SlotFor(c, id);
}

static void AppendResponseHeaders(Conn* c, uint32_t id) {
  std::string b;
  if (c->table >= 4096) {
    AppendIndexed(b, 8);  // :status 200
    if (c->table_state == 0) {
      AppendLiteral(b, 0x40, 31, "", "application/grpc");
      AppendLiteral(b, 0x40, 0, "grpc-accept-encoding", "identity, deflate, gzip");
    } else {
      AppendIndexed(b, c->table_state == 1 ? 63 : 64);
      AppendIndexed(b, c->table_state == 1 ? 62 : 63);
    }
    if (c->table_state == 0) c->table_state = 1;
  } else {
    if (!c->table_update_sent) {
      b.push_back(0x20);
      c->table_update_sent = true;
    }
    AppendIndexed(b, 8);
    AppendLiteral(b, 0, 31, "", "application/grpc");
    AppendLiteral(b, 0, 0, "grpc-accept-encoding", "identity, deflate, gzip");
  }
  AppendFrame(c->out, b.size(), kHeaders, kEndHeaders, id, b.data());
}
static void AppendTrailers(Conn* c, uint32_t id) {
  uint8_t f[64];
  if (c->table >= 4096 && c->table_state == 2) {
    WriteFrameHeader(f, 1, kHeaders, kEndHeaders | kEndStream, id);
    f[9] = 0x80 | 62;
    c->out.append((char*)f, 10);
    return;
  }
  std::string b;
  if (c->table >= 4096) {
    AppendLiteral(b, 0x40, 0, "grpc-status", "0");
    c->table_state = 2;
  } else {
    AppendLiteral(b, 0, 0, "grpc-status", "0");
  }
  AppendFrame(c->out, b.size(), kHeaders, kEndHeaders | kEndStream, id, b.data());
}

// Sends as much of one response as the windows and the output cap allow. True when finished.
static void ReplyWrongly(Conn* c, Slot& s) {
  std::string b, body = response_message;
  if (fault == "body") body[body.size() / 2] ^= 1;
  if (c->table < 4096 && !c->table_update_sent) {
    b.push_back(0x20);
    c->table_update_sent = true;
  }
  AppendIndexed(b, fault == "status" ? 14 : 8);  // 500 or 200
  AppendLiteral(b, 0, 31, "", "application/grpc");
  AppendFrame(c->out, b.size(), kHeaders, kEndHeaders, s.id, b.data());
  AppendFrame(c->out, body.size(), kData, fault == "trailers" ? kEndStream : 0, s.id, body.data());
  if (fault != "trailers") AppendTrailers(c, s.id);
  s.open = false;
  c->live--;
}
static bool PushBody(Conn* c, Slot& s, uint32_t budget) {
  while (s.sent < response_message.size()) {
    int64_t w = std::min(c->conn_win, s.win);
    if (w <= 0 || c->out.size() - c->out_off >= kOutCap || !budget) return false;
    uint32_t n = std::min<int64_t>({w, (int64_t)c->peer_frame, (int64_t)(response_message.size() - s.sent)});
    AppendFrame(c->out, n, kData, 0, s.id, response_message.data() + s.sent);
    s.sent += n;
    s.win -= n;
    c->conn_win -= n;
    budget--;
  }
  AppendTrailers(c, s.id);
  s.open = false;
  c->live--;
  return true;
}
static void Respond(Conn* c, Slot& s) {
  s.ended = true;
  stats->requests++;
  if (s.got != request_message.size()) stats->bad_len++;
  if (!s.hdr_ok || !s.body_ok) stats->bad_hdr++;
  if (!fault.empty() && stats->requests % 500 == 0) return ReplyWrongly(c, s);
  // Fast path for the common unary call: one small copy of a prepared pattern.
  if (c->table >= 4096 && c->table_state == 2 && response_message.size() <= 16384 && c->blocked.empty() &&
      s.win >= (int64_t)response_message.size() && c->conn_win >= (int64_t)response_message.size()) {
    uint8_t h[9 + 3 + 9];
    WriteFrameHeader(h, 3, kHeaders, kEndHeaders, s.id);
    h[9] = 0x88;
    h[10] = 0x80 | 64;
    h[11] = 0x80 | 63;
    WriteFrameHeader(h + 12, response_message.size(), kData, 0, s.id);
    c->out.append((char*)h, sizeof h);
    c->out += response_message;
    c->conn_win -= response_message.size();
    AppendTrailers(c, s.id);
    s.open = false;
    c->live--;
    return;
  }
  AppendResponseHeaders(c, s.id);
  if (!c->blocked.empty() || !PushBody(c, s, ~0u)) c->blocked.push_back(s.id);
}
static void Pump(Conn* c) {  // round robin over blocked streams, one frame each
  size_t stuck = 0;
  while (!c->blocked.empty() && stuck < c->blocked.size() && c->conn_win > 0 && c->out.size() - c->out_off < kOutCap) {
    uint32_t id = c->blocked.front();
    c->blocked.pop_front();
    Slot& s = SlotFor(c, id);
    if (s.id != id || !s.open) {
      stuck = 0;
      continue;
    }
    uint32_t before = s.sent;
    if (PushBody(c, s, 1)) {
      stuck = 0;
      continue;
    }
    stuck = s.sent == before ? stuck + 1 : 0;
    c->blocked.push_back(id);
  }
}

static void CheckHeaders(Conn* c, Slot& s, const uint8_t* p, size_t n) {
  if (!c->inflater) nghttp2_hd_inflate_new(&c->inflater);
  unsigned seen = 0;
  const bool decoded = DecodeBlock(c->inflater, p, n, [&](const nghttp2_nv& nv) {
    std::string k((char*)nv.name, nv.namelen), v((char*)nv.value, nv.valuelen);
    if (k == ":method" && v == "POST")
      seen |= 1;
    else if (k == ":path" && v == "/pkg.Service/Method")
      seen |= 2;
    else if (k == "content-type" && v == "application/grpc")
      seen |= 4;
    else if (k == "te" && v == "trailers")
      seen |= 8;
    else if (k == "x-key" && v == "tenant-0042")
      seen |= 16;
    else if (k == "x-trace-bin" && v == "AAECAwQFBgcICQoLDA0ODw")
      seen |= 32;
    else if (k == "user-agent" && !v.compare(0, 8, "grpc-c++"))
      seen |= 64;
    else if (k == ":authority" && !v.empty())
      seen |= 128;
    else if (k == ":scheme" && v == "http")
      seen |= 256;
    if (getenv("BACKEND_DUMP")) fprintf(stderr, "  %s: %s\n", k.c_str(), v.c_str());
  });
  if (!decoded) {
    stats->bad_hdr++;
    return;
  }
  // user-agent (64) may legitimately be rewritten by a gRPC proxy: the call is still good.
  if ((seen | 64) != 511) {
    static int shown;
    if (shown++ < 5) fprintf(stderr, "backend: request header set incomplete, mask %u of 511\n", seen);
    s.hdr_ok = false;
  }
}

static bool OnFrame(Conn* c, uint32_t len, uint8_t type, uint8_t flags, uint32_t sid, const uint8_t* p) {
  switch (type) {
    case kData: {
      Slot& s = SlotFor(c, sid);
      Credit(c->out, c->consumed, len);
      if (s.id != sid || !s.open) return true;
      Unpad(type, flags, p, len);
      if (verify && (s.got + len > request_message.size() || memcmp(request_message.data() + s.got, p, len)))
        s.body_ok = false;
      s.got += len;
      if (flags & kEndStream) Respond(c, s);
      return true;
    }
    case kHeaders: {
      Unpad(type, flags, p, len);
      if (SlotFor(c, sid).open && SlotFor(c, sid).id == sid) {
        stats->bad_hdr++;
        return true;
      }  // request trailers: none here
      Slot& s = NewSlot(c, sid);
      s = Slot();
      s.id = sid;
      s.open = true;
      s.win = c->init_win;
      c->live++;
      c->header_end_stream = flags & kEndStream;
      if (!(flags & kEndHeaders)) {
        c->header_stream = sid;
        c->header_block.assign((const char*)p, len);
        return true;
      }
      if (verify) CheckHeaders(c, s, p, len);
      if (c->header_end_stream) Respond(c, s);
      return true;
    }
    case kContinuation: {
      c->header_block.append((const char*)p, len);
      if (flags & kEndHeaders) {
        Slot& s = SlotFor(c, c->header_stream);
        if (verify) CheckHeaders(c, s, (const uint8_t*)c->header_block.data(), c->header_block.size());
        if (c->header_end_stream) Respond(c, s);
      }
      return true;
    }
    case kRstStream: {
      stats->rst++;
      Slot& s = SlotFor(c, sid);
      if (s.id == sid && s.open) {
        s.open = false;
        c->live--;
      }
      return true;
    }
    case kSettings:
      if (flags & kAck) return true;
      ForEachSetting(p, len, [c](uint16_t k, uint32_t v) {
        if (k == 1) c->table = v;
        if (k == 4) {
          int64_t d = (int64_t)v - c->init_win;
          for (auto& s : c->slots)
            if (s.open) s.win += d;
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
      stats->goaway++;
      return true;
    case kWindowUpdate: {
      uint32_t inc = ReadU32(p) & 0x7fffffff;
      if (!sid) {
        c->conn_win += inc;
        return true;
      }
      Slot& s = SlotFor(c, sid);
      if (s.id == sid && s.open) s.win += inc;
      return true;
    }
    default:
      return true;
  }
}

static size_t Parse(Conn* c, const uint8_t* p, size_t n) {
  size_t o = 0;
  if (c->preface) {
    if (n < kPrefaceBytes) return 0;
    if (memcmp(p, kPreface, kPrefaceBytes)) {
      fprintf(stderr, "backend: not an HTTP/2 preface\n");
      c->closed = true;
      return 0;
    }
    o = kPrefaceBytes;
    c->preface = false;
    uint8_t s[6] = {0, 4, 0x40, 0, 0, 0};  // INITIAL_WINDOW_SIZE 2^30
    AppendFrame(c->out, 6, kSettings, 0, 0, s);
    AppendWindowUpdate(c->out, 0, 0x3fff0000);
  }
  bool ok = true;
  o += ReadFrames(p + o, n - o, ok, [c](auto... frame) { return OnFrame(c, frame...); });
  c->closed = !ok;
  return o;
}

static bool Flush(Conn* c) {  // false: connection lost
  for (;;) {
    if (!c->blocked.empty()) Pump(c);
    while (c->out_off < c->out.size()) {
      ssize_t w = send(c->fd, c->out.data() + c->out_off, c->out.size() - c->out_off, MSG_NOSIGNAL);
      stats->writes++;
      if (w < 0) {
        if (errno == EAGAIN) {
          if (c->out_off > kOutCap) {
            c->out.erase(0, c->out_off);
            c->out_off = 0;
          }
          return true;
        }
        return false;
      }
      c->out_off += w;
    }
    c->out.clear();
    c->out_off = 0;
    if (c->blocked.empty()) return true;
    size_t before = c->out.size();
    Pump(c);
    if (c->out.size() == before) return true;
  }
}

int main(int argc, char** argv) {
  std::string listen_s, stats_file;
  uint32_t rq = 32, rs = 32;
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
    if (a == "--listen")
      listen_s = next();
    else if (a == "--resp-bytes")
      rs = atoi(next());
    else if (a == "--req-bytes")
      rq = atoi(next());
    else if (a == "--stats")
      stats_file = next();
    else if (a == "--poll")
      poll = true;
    else if (a == "--fault")
      fault = next();
    else if (a == "--verify")
      verify = true;
    else {
      fprintf(stderr, "unknown option %s\n", a.c_str());
      return 2;
    }
  }
  request_message = GrpcMessage(rq);
  response_message = GrpcMessage(rs);
  if (stats_file.empty()) {
    stats = new Stats();
  } else {
    int f = open(stats_file.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (f < 0 || ftruncate(f, sizeof(Stats))) Die("--stats");
    stats = (Stats*)mmap(nullptr, sizeof(Stats), PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  }
  signal(SIGPIPE, SIG_IGN);
  struct sigaction sa {};
  sa.sa_handler = [](int) { stop_flag = true; };
  sigaction(SIGTERM, &sa, nullptr);
  sigaction(SIGINT, &sa, nullptr);

  int ep = epoll_create1(EPOLL_CLOEXEC);
  std::unordered_map<int, Conn*> conns;
  std::unordered_map<int, bool> listeners;
  for (size_t p = 0; p < listen_s.size();) {
    size_t e = listen_s.find(',', p);
    if (e == std::string::npos) e = listen_s.size();
    int l = ListenOn(listen_s.substr(p, e - p));
    listeners[l] = true;
    epoll_event ev{EPOLLIN, {.u64 = (uint64_t)l}};
    epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev);
    p = e + 1;
  }
  static uint8_t buf[256 * 1024];
  epoll_event evs[256];
  while (!stop_flag) {
    int n = epoll_wait(ep, evs, 256, poll ? 0 : -1);
    if (!n && poll) sched_yield();
    for (int i = 0; i < n; i++) {
      int fd = evs[i].data.u64 & 0xffffffff;
      auto it = conns.find(fd);
      if (it == conns.end()) {
        if (!listeners.count(fd)) continue;
        int s = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (s < 0) continue;
        SetNoDelay(s);
        stats->conns++;
        auto* c = new Conn();
        c->fd = s;
        conns[s] = c;
        epoll_event ev{EPOLLIN, {.u64 = (uint64_t)s}};
        epoll_ctl(ep, EPOLL_CTL_ADD, s, &ev);
        continue;
      }
      Conn* c = it->second;
      bool ok = true;
      if (evs[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t r = recv(fd, buf, sizeof buf, 0);
        stats->reads++;
        if (r <= 0) {
          ok = r < 0 && errno == EAGAIN;
        } else if (c->in.empty()) {
          size_t used = Parse(c, buf, r);
          if (used < (size_t)r) c->in.assign((char*)buf + used, r - used);
        } else {
          c->in.append((char*)buf, r);
          size_t used = Parse(c, (const uint8_t*)c->in.data(), c->in.size());
          c->in.erase(0, used);
        }
      }
      if (ok && !c->closed) ok = Flush(c);
      if (!ok || c->closed) {
        conns.erase(fd);
        close(fd);
        if (c->inflater) nghttp2_hd_inflate_del(c->inflater);
        delete c;
        continue;
      }
      bool want = c->out_off < c->out.size();
      if (want != c->wants_write) {
        c->wants_write = want;
        epoll_event ev{EPOLLIN | (want ? (uint32_t)EPOLLOUT : 0u), {.u64 = (uint64_t)fd}};
        epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
      }
    }
  }
  fprintf(stderr, "backend: requests %llu bad_len %llu bad_hdr %llu conns %llu rst %llu\n",
          (unsigned long long)stats->requests, (unsigned long long)stats->bad_len, (unsigned long long)stats->bad_hdr,
          (unsigned long long)stats->conns, (unsigned long long)stats->rst);
  return 0;
}
