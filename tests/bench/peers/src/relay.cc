// The smallest possible L4 relay: epoll, one thread, recv into one buffer, send to the other side.
// It marks the syscall floor: what two sockets per client connection cost when no byte is looked at.
//   relay LISTEN UPSTREAM        (host:port each)
#include <signal.h>
#include <sys/epoll.h>

#include <vector>

#include "h2_wire.h"

struct Side {
  int fd = -1;
  Side* other = nullptr;
  std::string pend;  // bytes read from `other` that this socket would not take yet
  uint32_t ev = EPOLLIN;
  bool dead = false;
};
static int ep;
static void Arm(Side* s, uint32_t ev) {
  if (s->ev == ev) return;
  s->ev = ev;
  epoll_event e{ev, {.ptr = s}};
  epoll_ctl(ep, EPOLL_CTL_MOD, s->fd, &e);
}
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  signal(SIGPIPE, SIG_IGN);
  int l = ListenOn(argv[1]);
  sockaddr_in up = ParseAddress(argv[2]);
  ep = epoll_create1(EPOLL_CLOEXEC);
  Side ls;
  ls.fd = l;
  epoll_event e{EPOLLIN, {.ptr = &ls}};
  epoll_ctl(ep, EPOLL_CTL_ADD, l, &e);
  static char buf[256 * 1024];
  epoll_event evs[256];
  std::vector<Side*> trash;
  for (;;) {
    int n = epoll_wait(ep, evs, 256, -1);
    for (int i = 0; i < n; i++) {
      Side* s = (Side*)evs[i].data.ptr;
      if (s == &ls) {
        int a = accept4(l, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (a < 0) continue;
        int b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(b, (sockaddr*)&up, sizeof up)) {
          close(a);
          close(b);
          continue;
        }
        SetNonBlocking(b);
        SetNoDelay(a);
        SetNoDelay(b);
        auto *x = new Side, *y = new Side;
        x->fd = a;
        y->fd = b;
        x->other = y;
        y->other = x;
        for (Side* z : {x, y}) {
          epoll_event ev{EPOLLIN, {.ptr = z}};
          epoll_ctl(ep, EPOLL_CTL_ADD, z->fd, &ev);
        }
        continue;
      }
      if (s->dead) continue;
      Side* o = s->other;
      bool ok = true;
      if (evs[i].events & EPOLLOUT) {
        ssize_t w = send(s->fd, s->pend.data(), s->pend.size(), MSG_NOSIGNAL);
        if (w > 0)
          s->pend.erase(0, w);
        else
          ok = errno == EAGAIN;
        if (s->pend.empty()) {
          Arm(s, s->ev & ~EPOLLOUT);
          Arm(o, o->ev | EPOLLIN);
        }
      }
      if (ok && (evs[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && (s->ev & EPOLLIN)) {
        ssize_t r = recv(s->fd, buf, sizeof buf, 0);
        if (r <= 0) {
          ok = r < 0 && errno == EAGAIN;
        } else {
          ssize_t w = send(o->fd, buf, r, MSG_NOSIGNAL);
          if (w < 0 && errno != EAGAIN) ok = false;
          if (ok && w < r) {
            if (w < 0) w = 0;
            o->pend.assign(buf + w, r - w);
            Arm(o, o->ev | EPOLLOUT);
            Arm(s, s->ev & ~EPOLLIN);
          }
        }
      }
      if (!ok) {
        for (Side* z : {s, o}) {
          z->dead = true;
          close(z->fd);
          trash.push_back(z);
        }
      }
    }
    for (Side* z : trash) delete z;
    trash.clear();
  }
}
