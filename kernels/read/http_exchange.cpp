// SPDX-License-Identifier: Apache-2.0
#include "read/http_exchange.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/memory.h"

namespace {

constexpr int64_t kMillisecond = 1000000;

bool number(const std::string &text, int64_t *value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *value = atoll(text.c_str());
  return true;
}

}  // namespace

HttpExchange::~HttpExchange() {
  if (content_.data && !to_) memory_give(content_.data);
}

void HttpExchange::connect() {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found))
    throw Lost{"the server can't be reached: dns error"};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  int error = 0;
  for (const addrinfo *a = found; a && !socket.is_open(); a = a->ai_next) {
    HttpSocket one(::socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol));
    if (!one.is_open()) throw Lost{strerror(errno)};
    error = ::connect(one.fd(), a->ai_addr, a->ai_addrlen) ? errno : 0;
    if (error == EINPROGRESS) {
      wait_to_connect(one.fd());
      socklen_t size = sizeof error;
      getsockopt(one.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (!error) socket = std::move(one);
  }
  if (!socket.is_open()) throw Lost{std::string("the server can't be reached: ") + strerror(error)};
  const int fd = socket.fd(), one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // From here on calls block, which saves a poll before each.
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const int64_t ns = limits_.hedge_ns > 0 ? std::clamp(limits_.hedge_ns, kMillisecond, kLookNs) : kLookNs;
  const timeval look{0, (suseconds_t)(ns / 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look);
  if (url.tls) begin_tls();
}

void HttpExchange::wait_to_connect(int fd) const {
  for (const int64_t until = now_ns() + limits_.connect_ns;;) {
    pollfd p{fd, POLLOUT, 0};
    const int n = poll(&p, 1, (int)(kLookNs / kMillisecond));
    if (n > 0) return;
    if (n < 0 && errno != EINTR) throw Lost{strerror(errno)};
    if (is_unwanted_(of_)) fail("it was no longer wanted");
    if (now_ns() > until) throw Lost{"the server can't be reached: timed out"};
  }
}

void HttpExchange::begin_tls() {
  TlsSession &session = socket.begin_tls(*url.tls, url.host);
  for (const int64_t until = now_ns() + limits_.connect_ns;;) {
    const TlsSession::Handshake state = session.shake_hands();
    if (state == TlsSession::kDone) return;
    if (state == TlsSession::kRefused) throw NoTls();
    if (state == TlsSession::kLost) throw Lost{"the server can't be reached: it ended the TLS handshake"};
    if (is_unwanted_(of_)) fail("it was no longer wanted");
    if (now_ns() > until) throw Lost{"the server can't be reached: timed out in the TLS handshake"};
  }
}

void HttpExchange::expect(size_t head) {
  const int64_t body = request_.length == RemoteRequest::kToTheEnd ? request_.expected : request_.length;
  if (!head || head > kMostHead || body <= 0 || !request_.unless.empty()) return;  // with `unless` there may be no body
  content_ = {to_ ? to_ : (char *)memory_take(body), body};
  if (content_.data) expected_head_ = head;
}

std::string HttpExchange::text_of_request() const {
  const RemoteRequest &r = request_;
  std::string t;
  t.reserve(url.path.size() + url.host.size() + url.token.size() + r.unless.size() + 160);
  t.append(r.length == RemoteRequest::kOnlySize ? "HEAD " : "GET ").append(url.path).append(" HTTP/1.1\r\nHost: ");
  t.append(url.host);
  if (url.port != (url.tls ? "443" : "80")) t.append(":").append(url.port);
  t.append("\r\nUser-Agent: penstock\r\n");
  if (!url.token.empty()) t.append(url.token).append("\r\n");
  if (r.length >= 0) {
    char range[80];
    snprintf(range, sizeof range, "Range: bytes=%lld-%lld\r\n", (long long)r.offset,
             (long long)(r.offset + r.length - 1));
    t.append(range);
  }
  if (!r.unless.empty()) t.append("If-None-Match: ").append(r.unless).append("\r\n");
  return t.append("\r\n");
}

void HttpExchange::send() {
  const std::string text = text_of_request();
  last_ns_ = began_ns_ = now_ns();
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = socket.send(text.data() + done, text.size() - done);
    if (n > 0)
      done += (size_t)n, last_ns_ = now_ns();
    else if (errno == EAGAIN)
      look();
    else if (errno != EINTR)
      throw Lost{std::string("the connection was lost: ") + strerror(errno)};
  }
}

bool HttpExchange::receive(int flags) {
  if (is_in_body_ && !flags) flags = MSG_WAITALL;
  if (!is_in_body_ && got_ == kMostHead) throw NotForUs();
  const bool is_first = !is_in_body_ && !got_ && expected_head_;
  const size_t room = is_first ? expected_head_ : std::min(kHead, kMostHead - std::min(got_, kMostHead));
  iovec parts[] = {{&head_[is_in_body_ ? 0 : got_], room}, {content_.data, (size_t)content_.size}};
  if (is_in_body_) parts[0] = {content_.data + got_, (size_t)content_.size - got_};
  const ssize_t n = socket.receive(parts, is_first ? 2 : 1, flags);
  if (!n) throw Lost{"the answer was cut off"};
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) throw Lost{std::string("the answer was cut off: ") + strerror(errno)};
    look();
    return false;
  }
  last_ns_ = now_ns();
  check_time(last_ns_);
  const size_t before = got_;
  if (is_first && (size_t)n > room) {
    take_both((size_t)n - room);
  } else {
    got_ += (size_t)n;
    if (!is_in_body_) find_end_of_head(head_, got_, before < 3 ? 0 : before - 3);
  }
  if (is_in_body_ && (int64_t)got_ == content_.size) finish();
  return true;
}

// Throws if it should not wait any longer.
void HttpExchange::look() const {
  if (is_unwanted_(of_)) fail("it was no longer wanted");
  check_time(now_ns());
}

// Also checked while data arrives, as a server may send a few bytes now and then.
void HttpExchange::check_time(int64_t now) const {
  if (now - last_ns_ > limits_.read_ns || now - began_ns_ > limits_.request_ns)
    throw Lost{"the server does not answer in time"};
}

bool HttpExchange::is_silent() const { return limits_.hedge_ns > 0 && now_ns() - last_ns_ >= limits_.hedge_ns; }

// The head was read into head_ on the assumption that it has the expected length, and `n_behind` more bytes were read
// into the body. If the length differs, puts both together again.
void HttpExchange::take_both(size_t n_behind) {
  got_ = expected_head_;
  const char *const end = &head_[expected_head_ - 4];
  if (expected_head_ >= 4 && memmem(head_, expected_head_, "\r\n\r\n", 4) == end)
    return begin_body(head_, end - head_, content_.data, n_behind);
  std::string both(head_, expected_head_);
  both.append(content_.data, n_behind);
  find_end_of_head(both.data(), both.size(), 0);
  if (is_in_body_) return;
  if (both.size() > kMostHead) throw NotForUs();
  memcpy(head_, both.data(), both.size());
  got_ = both.size();
}

void HttpExchange::find_end_of_head(const char *text, size_t size, size_t from) {
  const char *const end = (const char *)memmem(text + from, size - from, "\r\n\r\n", 4);
  if (end) begin_body(text, end - text, end + 4, size - (end + 4 - text));
}

// The head's text has `length` bytes. `rest` bytes of the body, at `from`, have been read already.
void HttpExchange::begin_body(const char *text, size_t length, const char *from, size_t rest) {
  head_size = length + 4;
  if (!head.parse(text, (int64_t)length)) throw Lost{"the answer is not HTTP"};
  // Some servers know no signed URLs, and answer with 500.
  if (head.status == 500 && request_.is_signed) throw NotForUs();
  for (const int busy : {408, 425, 429, 500, 502, 503, 504})
    if (head.status == busy) throw Busy{head.reason};
  const int64_t body = check_head();
  if ((int64_t)rest > body) throw NotForUs();  // the connection is out of step
  is_in_body_ = true, got_ = 0;
  if (is_unchanged_ || request_.length == RemoteRequest::kOnlySize) return finish();
  char *to = to_ ? to_ : content_.data;
  if (!to || (!to_ && content_.size != body)) to = (char *)memory_take(std::max<int64_t>(body, 1));
  if (!to) throw NotForUs();
  if (from != to) memcpy(to, from, rest);
  if (content_.data && content_.data != to) memory_give(content_.data);
  content_ = {to, body}, got_ = rest;
}

// Returns the length of the body.
int64_t HttpExchange::check_head() {
  const RemoteRequest &r = request_;
  if (head.status == 304 && !r.unless.empty()) return is_unchanged_ = true, 0;
  const int64_t length = head.length;
  if (!head.is_plain || head.tag.empty() || head.tag.back() != '"' || length < 0) throw NotForUs();
  if (head.status == 206 && r.length >= 0) {
    const std::string wanted = "bytes " + std::to_string(r.offset) + "-" + std::to_string(r.offset + length - 1) + "/";
    if (length != r.length || head.range.compare(0, wanted.size(), wanted) ||
        !number(head.range.substr(wanted.size()), &size_) || size_ < r.offset + length)
      throw NotForUs();
  } else if (head.status == 200 && r.length < 0 && !r.offset) {
    size_ = length;
  } else {
    throw NotForUs();
  }
  return r.length == RemoteRequest::kOnlySize ? 0 : length;
}

void HttpExchange::finish() {
  if (head.status == 200 && request_.length != RemoteRequest::kOnlySize)
    if (const char *const sum = wrong_checksum(head, content_.data, content_.size); *sum)
      throw Lost{std::string("the answer does not have the ") + sum + " checksum that the server names"};
  is_done = true;
}

void HttpExchange::hand_over(RemoteRequest &r) {
  r.is_unchanged = is_unchanged_;
  if (!is_unchanged_) r.found = {size_, version_of(head.tag.c_str())}, r.tag = head.tag;
  if (content_.data && !to_ && r.to) {
    memcpy(r.to, content_.data, content_.size);
    r.content = {r.to, content_.size};
  } else {
    r.content = content_;
    content_ = {nullptr, 0};
  }
  r.state = RemoteRequest::kDone;
}
