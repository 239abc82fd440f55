// A connection: read a request (one deadline) -> make the answer -> send it (another) -> read the next, or close. It is
// the first thread's. What takes long to make is made by the second one, one after the other, so that probes do not
// wait for it. Closing after an error response reads on for a moment, since data unread at close makes the kernel send
// a reset that can destroy the response on its way (RFC 9112 9.6).
#include "admin/http_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <utility>

#include "admin/control_acceptor.h"
#include "admin/control_loop.h"
#include "admin/http_routes.h"
#include "admin/traffic_history.h"
#include "base/clock.h"
#include "net/descriptor_reserve.h"

namespace sluice::admin {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Code = boost::system::error_code;

class Connection;

// Of several fields one list (RFC 9110 5.3).
std::string AcceptOf(const http::request<http::empty_body>& request) {
  std::string out;
  const auto [begin, end] = request.equal_range(http::field::accept);
  for (auto it = begin; it != end; ++it) {
    if (!out.empty()) out += ',';
    out.append(it->value().data(), it->value().size());
  }
  return out;
}

// Of a request without the field (HTTP/1.0), too: no browser sends such a one.
bool HostIsLocal(const http::request<http::empty_body>& request) {
  const auto [begin, end] = request.equal_range(http::field::host);
  return std::all_of(begin, end, [](const auto& field) {
    return IsLocalHost(std::string_view(field.value().data(), field.value().size()));
  });
}

constexpr const char* kMisdirected =
    "Host: on a loopback address only IP addresses and localhost are answered, so that no other site's page reads "
    "this\n";

// What every connection shares; the server's. Only the first thread touches the lists.
struct Shared {
  Backend& backend;
  HttpOptions options;
  bool loopback = false;  // only this machine's programs reach the port, browsers among them
  // Those that wait for a request, for an answer that is made, and until their client has taken what was sent: the
  // longest first.
  std::list<Connection*> reading, waiting, writing;
  size_t open() const { return reading.size() + waiting.size() + writing.size(); }
  uint64_t moves = 0;
  size_t queued = 0;               // answers to be made, for connections that are gone too
  TrafficHistory history{};        // the second thread's
  ControlLoop sockets{}, pages{};  // the first and the second thread
};

// Lives as long as an operation of it does (each holds a shared_ptr).
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)),
        shared_(shared),
        in_(&shared.reading),
        place_(shared.reading.insert(shared.reading.end(), this)) {}
  ~Connection() { in_->erase(place_); }

  // Grows with each connection that enters a list.
  uint64_t entered() const { return entered_; }

  void Read() {
    Enter(shared_.reading);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.options.header_bytes_max));
    parser_->body_limit(0);
    stream_.expires_after(shared_.options.request_timeout);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](Code error, size_t) { self->OnRead(error); });
  }

  // Its operation ends with an error, and it goes. Its place is free at once.
  void Drop() {
    dropped_.store(true, std::memory_order_relaxed);
    stream_.close();
    Enter(gone_);
  }

 private:
  void Enter(std::list<Connection*>& list) {
    list.splice(list.end(), *in_, place_);
    in_ = &list;
    entered_ = ++shared_.moves;
  }

  void OnRead(Code error) {
    if (error == http::error::end_of_stream || error == http::error::partial_message) return Close();
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return Refuse(http::status::request_header_fields_too_large, "the request's header is too large\n");
    }
    if (error == http::error::body_limit) return Refuse(http::status::payload_too_large, "no body is expected\n");
    if (error.category() == http::make_error_code(http::error::bad_method).category()) {
      return Refuse(http::status::bad_request, "malformed request: " + error.message() + "\n");
    }
    if (error) return;  // timed out, reset or stopped: there is no peer to answer
    const auto& request = parser_->get();
    // No request here has a body. A coding that is not known would leave open where the next request begins (RFC 9112
    // 6.3).
    if (request.find(http::field::transfer_encoding) != request.end())
      return Refuse(http::status::bad_request, "no body is expected\n");
    const std::string_view method(request.method_string().data(), request.method_string().size());
    const std::string_view target(request.target().data(), request.target().size());
    if (AnsweredAtOnce(method, target)) {
      return Reply(HandleHttp(shared_.backend, shared_.history, method, target), request.version(),
                   request.keep_alive(), method == "HEAD");
    }
    if (shared_.loopback && !HostIsLocal(request)) return Refuse(http::status::misdirected_request, kMisdirected);
    if (shared_.queued == shared_.options.pages_max)
      return Refuse(http::status::service_unavailable, "too many requests at once\n");
    ++shared_.queued;
    Enter(shared_.waiting);
    stream_.expires_never();
    asio::post(shared_.pages.context(), [self = shared_from_this()]() mutable { MakeReply(std::move(self)); });
  }

  // On the second thread; the connection itself is the first one's, where it is put back, and destroyed. Its parser is
  // not touched meanwhile.
  static void MakeReply(std::shared_ptr<Connection> self) {
    Shared& shared = self->shared_;
    HttpReply reply;
    if (!self->dropped_.load(std::memory_order_relaxed)) {
      const auto& request = self->parser_->get();
      reply = HandleHttp(shared.backend, shared.history,
                         std::string_view(request.method_string().data(), request.method_string().size()),
                         std::string_view(request.target().data(), request.target().size()), AcceptOf(request));
    }
    asio::post(shared.sockets.context(), [self = std::move(self), reply = std::move(reply)]() mutable {
      --self->shared_.queued;
      const auto& request = self->parser_->get();
      if (!self->dropped_.load(std::memory_order_relaxed))
        self->Reply(std::move(reply), request.version(), request.keep_alive(), request.method() == http::verb::head);
    });
  }

  void Refuse(http::status status, std::string why) {
    HttpReply reply;
    reply.status = static_cast<int>(status);
    reply.body = std::move(why);
    Reply(std::move(reply), 11, false, false);
  }

  void Reply(HttpReply reply, unsigned version, bool keep_alive, bool head) {
    response_ = {};
    response_.version(version);
    response_.result(static_cast<unsigned>(reply.status));
    response_.keep_alive(keep_alive);
    response_.set(http::field::content_type, reply.content_type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Content-Security-Policy",
                  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
                  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    if (reply.wrong_method) response_.set(http::field::allow, "GET, HEAD");
    response_.content_length(reply.body.size());
    if (!head) response_.body() = std::move(reply.body);
    Enter(shared_.writing);
    stream_.expires_after(shared_.options.write_timeout);
    http::async_write(stream_, response_, [self = shared_from_this(), keep_alive](Code error, size_t) {
      if (error) return;
      self->response_.body() = {};  // an idle connection holds no page
      keep_alive ? self->Read() : self->Close();
    });
  }

  // Says that nothing more comes, then swallows what does, for a bounded time and amount.
  void Close() {
    Code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(2));
    Swallow(64 << 10);
  }

  void Swallow(size_t bytes_left) {
    stream_.async_read_some(asio::buffer(scrap_), [self = shared_from_this(), bytes_left](Code error, size_t n) {
      if (!error && n < bytes_left) self->Swallow(bytes_left - n);
    });
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  std::list<Connection*> gone_;  // of this one alone, when it was dropped
  std::list<Connection*>* in_;   // one of the four
  uint64_t entered_ = 0;
  std::atomic<bool> dropped_{false};
  std::list<Connection*>::iterator place_;
  beast::flat_buffer buffer_{shared_.options.header_bytes_max + 1024};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  char scrap_[512];
};

}  // namespace

struct HttpServer::Impl {
  Impl(Backend& backend, const HttpOptions& options) : shared{.backend = backend, .options = options} {}

  // On the second thread: reads the traffic now, and every kPeriod from then on.
  void KeepHistory() {
    shared.history.Add(shared.backend.ListTraffic(), shared.backend.ListReasons(), base::Clock::Steady().Now());
    history_timer.expires_after(TrafficHistory::kPeriod);
    history_timer.async_wait([this](Code error) {
      if (!error) KeepHistory();
    });
  }

  // The one that has waited for its client for the longest: never a probe that has only just come, whatever the others
  // do. Those that wait for their page go only while they have more than a quarter of the places: strangers that
  // connect must not keep a scrape from its answer, nor those that ask for pages a probe.
  void DropOldest() {
    if (shared.waiting.size() * 4 > shared.options.connections_max) return shared.waiting.front()->Drop();
    Connection* oldest = nullptr;
    for (const auto* list : {&shared.reading, &shared.writing}) {
      if (!list->empty() && (oldest == nullptr || list->front()->entered() < oldest->entered())) oldest = list->front();
    }
    if (oldest != nullptr) oldest->Drop();
  }

  void Accepted(int fd, const tcp& protocol) {
    tcp::socket socket(shared.sockets.context());
    Code error;
    if (socket.assign(protocol, fd, error); error) {
      ::close(fd);
    } else {
      if (shared.open() >= shared.options.connections_max) DropOldest();
      std::make_shared<Connection>(std::move(socket), shared)->Read();
    }
  }

  Shared shared;
  asio::steady_timer history_timer{shared.pages.context()};
  std::optional<ControlAcceptor> acceptor;
  net::Address address;
  int listener = -1;  // the acceptor's
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->shared.pages.Stop();
  impl_->shared.sockets.Stop();
}

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& text, Backend& backend,
                                                            HttpOptions options,
                                                            std::optional<net::ListenSocket> passed) {
  const base::Result<net::Address> address = net::Address::Parse(text);
  if (!address.ok()) return address.error();
  if (address->kind() == net::Address::Kind::kUnix) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "the HTTP port must be ip:port, not " + text);
  }
  base::Result<net::ListenSocket> socket =
      passed ? base::Result<net::ListenSocket>(std::move(*passed))
             : net::ListenSocket::Open(*address, {.backlog = static_cast<int>(options.backlog)});
  if (!socket.ok()) return socket.error();
  auto impl = std::make_unique<Impl>(backend, options);
  impl->shared.loopback = address->is_loopback();
  impl->address = socket->address();
  impl->listener = socket->fd();
  const tcp protocol = address->host().find(':') == std::string::npos ? tcp::v4() : tcp::v6();
  impl->acceptor.emplace(impl->shared.sockets.context(), std::move(*socket), "admin HTTP",
                         net::DescriptorReserve::kNothingKept,
                         [raw = impl.get(), protocol](int fd) { raw->Accepted(fd, protocol); });
  asio::post(impl->shared.pages.context(), [raw = impl.get()] { raw->KeepHistory(); });
  impl->shared.pages.Start();
  impl->shared.sockets.Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->address.port(); }
std::string HttpServer::address() const { return impl_->address.ToString(); }
int HttpServer::fd() const { return impl_->listener; }

void HttpServer::StopAccepting() {
  asio::post(impl_->shared.sockets.context(), [impl = impl_.get()] { impl->acceptor.reset(); });
}

}  // namespace sluice::admin
