// A connection: read a request (one deadline) -> answer (another) -> read the next, or close. Everything below runs on
// the server's one thread; closing after an error response reads on for a moment, since data unread at close makes the
// kernel send a reset that can destroy the response on its way (RFC 9112 9.6).
#include "admin/http_server.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <utility>

#include "admin/control_acceptor.h"
#include "admin/control_loop.h"
#include "admin/http_routes.h"
#include "net/descriptor_reserve.h"

namespace sluice::admin {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Code = boost::system::error_code;

class Connection;

// What every connection shares; the server's, and only its thread touches the lists.
struct Shared {
  Backend& backend;
  HttpOptions options;
  // Those that wait for a request, and those that wait until their client has taken what was sent: the longest first.
  std::list<Connection*> reading, writing;
  size_t open() const { return reading.size() + writing.size(); }
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
    stream_.close();
    Enter(gone_);
  }

 private:
  void Enter(std::list<Connection*>& list) {
    list.splice(list.end(), *in_, place_);
    in_ = &list;
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
    const std::string_view method(request.method_string().data(), request.method_string().size());
    const std::string_view target(request.target().data(), request.target().size());
    Reply(HandleHttp(shared_.backend, method, target), request.version(), request.keep_alive(), method == "HEAD");
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
    response_.set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
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
  std::list<Connection*>* in_;   // one of the three
  std::list<Connection*>::iterator place_;
  beast::flat_buffer buffer_{shared_.options.header_bytes_max + 1024};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  char scrap_[512];
};

}  // namespace

struct HttpServer::Impl {
  Impl(Backend& backend, const HttpOptions& options) : shared{backend, options, {}, {}} {}

  void Accepted(int fd, const tcp& protocol) {
    tcp::socket socket(loop.context());
    Code error;
    if (socket.assign(protocol, fd, error); error) {
      ::close(fd);
    } else {
      // One that says nothing first; one that reads nothing where all of them have asked for something.
      if (shared.open() >= shared.options.connections_max)
        (shared.reading.empty() ? shared.writing : shared.reading).front()->Drop();
      std::make_shared<Connection>(std::move(socket), shared)->Read();
    }
  }

  Shared shared;  // outlives the loop, whose destruction ends the connections
  ControlLoop loop;
  std::optional<ControlAcceptor> acceptor;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { impl_->loop.Stop(); }

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& text, Backend& backend,
                                                            HttpOptions options) {
  const base::Result<net::Address> address = net::Address::Parse(text);
  if (!address.ok()) return address.error();
  if (address->kind() == net::Address::Kind::kUnix) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "the HTTP port must be ip:port, not " + text);
  }
  base::Result<net::ListenSocket> socket =
      net::ListenSocket::Open(*address, {.backlog = static_cast<int>(options.connections_max)});
  if (!socket.ok()) return socket.error();
  auto impl = std::make_unique<Impl>(backend, options);
  const tcp protocol = address->host().find(':') == std::string::npos ? tcp::v4() : tcp::v6();
  impl->acceptor.emplace(impl->loop.context(), std::move(*socket), "admin HTTP", net::DescriptorReserve::kNothingKept,
                         [raw = impl.get(), protocol](int fd) { raw->Accepted(fd, protocol); });
  impl->loop.Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->acceptor->address().port(); }
std::string HttpServer::address() const { return impl_->acceptor->address().ToString(); }

}  // namespace sluice::admin
