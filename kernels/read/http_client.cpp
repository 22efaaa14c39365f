// SPDX-License-Identifier: Apache-2.0
#include "read/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/memory.h"
#include "read/http_head.h"

namespace {

constexpr int64_t kMillisecond = 1000000;
// So often it is looked whether what is waited for is still wanted.
constexpr int64_t kLookNs = 200 * kMillisecond;
constexpr size_t kHead = 1 << 10, kMostHead = 16 << 10;  // taken at once, and at most

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Lost {
  std::string why;
};
struct Busy {
  std::string status;
};
struct NotForUs {};

std::string encoded(const std::string &path) {
  static const char hex[] = "0123456789ABCDEF", reserved[] = "\"<>\\^`{|}";
  std::string out;
  out.reserve(path.size());
  for (const unsigned char c : path) {
    const bool is_alphanumeric = (c | 0x20u) - 'a' < 26u || c - (unsigned)'0' < 10u;
    if (is_alphanumeric || (c > 0x20 && c < 0x7f && !strchr(reserved, c))) {
      out += (char)c;
    } else {
      out += '%', out += hex[c >> 4], out += hex[c & 15];
    }
  }
  return out;
}

bool number(const std::string &text, int64_t *value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *value = atoll(text.c_str());
  return true;
}

}  // namespace

// One request and its answer on one connection. Calls block for `kLookNs` at most.
class HttpClient::Exchange {
 public:
  // `to` as in the request, whose own memory another exchange may be writing to.
  Exchange(const RemoteLimits &limits, const Url &url, const RemoteRequest &request, char *to,
           bool (*is_unwanted)(const void *), const void *of)
      : url(url), limits_(limits), request_(request), to_(to), is_unwanted_(is_unwanted), of_(of) {}
  ~Exchange() {
    if (fd >= 0) close(fd);
    if (content_.data && !to_) memory_give(content_.data);
  }
  Exchange(const Exchange &) = delete;

  void connect() {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found))
      throw Lost{"the server can't be reached: dns error"};
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
    int error = 0;
    for (const addrinfo *a = found; a; a = a->ai_next) {
      fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
      if (fd < 0) throw Lost{strerror(errno)};
      error = ::connect(fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
      if (error == EINPROGRESS) {
        wait_to_connect();
        socklen_t size = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (!error) break;
      close(fd), fd = -1;
    }
    if (fd < 0) throw Lost{std::string("the server can't be reached: ") + strerror(error)};
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    // From here on calls wait by themselves, which is one less than asking first.
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    const int64_t ns = limits_.hedge_ns > 0 ? std::clamp(limits_.hedge_ns, kMillisecond, kLookNs) : kLookNs;
    const timeval look{0, (suseconds_t)(ns / 1000)};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look);
  }

  void send() {
    const std::string text = text_of_request();
    last_ns_ = began_ns_ = now_ns();
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n > 0)
        done += (size_t)n, last_ns_ = now_ns();
      else if (errno == EAGAIN)
        look();
      else if (errno != EINTR)
        throw Lost{std::string("the connection was lost: ") + strerror(errno)};
    }
  }

  // Takes what comes next, by the `flags` of recv; false if nothing has come. If it may wait, it waits for all of the
  // body, or as long as its socket lets it: one call instead of one for each piece that comes.
  bool receive(int flags) {
    if (is_in_body_ && !flags) flags = MSG_WAITALL;
    if (!is_in_body_ && got_ == kMostHead) throw NotForUs();
    char *const to = is_in_body_ ? content_.data + got_ : &head_[got_];
    const size_t room = is_in_body_ ? (size_t)content_.size - got_ : std::min(kHead, kMostHead - got_);
    const ssize_t n = recv(fd, to, room, flags);
    if (!n) throw Lost{"the answer was cut off"};
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) throw Lost{std::string("the answer was cut off: ") + strerror(errno)};
      look();
      return false;
    }
    last_ns_ = now_ns();
    const size_t before = got_;
    got_ += (size_t)n;
    if (!is_in_body_) find_end_of_head(before < 3 ? 0 : before - 3);
    if (is_in_body_ && (int64_t)got_ == content_.size) finish();
    return true;
  }

  bool has_begun() const { return got_ > 0 || is_in_body_; }
  bool is_silent() const { return limits_.hedge_ns > 0 && now_ns() - last_ns_ >= limits_.hedge_ns; }

  // Gives the answer to the request.
  void hand_over(RemoteRequest &r) {
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

  const Url &url;
  HttpHead head;
  int fd = -1;
  bool is_done = false, was_kept = false;

 private:
  std::string text_of_request() const {
    const RemoteRequest &r = request_;
    std::string t;
    t.reserve(url.path.size() + url.host.size() + r.unless.size() + 160);
    t.append(r.length == RemoteRequest::kOnlySize ? "HEAD " : "GET ").append(url.path).append(" HTTP/1.1\r\nHost: ");
    t.append(url.host);
    if (url.port != "80") t.append(":").append(url.port);
    t.append("\r\nUser-Agent: penstock\r\n");
    if (r.length >= 0) {
      char range[80];
      snprintf(range, sizeof range, "Range: bytes=%lld-%lld\r\n", (long long)r.offset,
               (long long)(r.offset + r.length - 1));
      t.append(range);
    }
    if (!r.unless.empty()) t.append("If-None-Match: ").append(r.unless).append("\r\n");
    return t.append("\r\n");
  }

  void wait_to_connect() {
    for (const int64_t until = now_ns() + limits_.connect_ns;;) {
      pollfd p{fd, POLLOUT, 0};
      const int n = poll(&p, 1, (int)(kLookNs / kMillisecond));
      if (n > 0) return;
      if (n < 0 && errno != EINTR) throw Lost{strerror(errno)};
      if (is_unwanted_(of_)) fail("it was no longer wanted");
      if (now_ns() > until) throw Lost{"the server can't be reached: timed out"};
    }
  }
  // Whether to wait any longer.
  void look() const {
    if (is_unwanted_(of_)) fail("it was no longer wanted");
    const int64_t now = now_ns();
    if (now - last_ns_ > limits_.read_ns || now - began_ns_ > limits_.request_ns)
      throw Lost{"the server does not answer in time"};
  }

  void find_end_of_head(size_t from) {
    const char *const end = (const char *)memmem(&head_[from], got_ - from, "\r\n\r\n", 4);
    if (!end) return;
    const size_t length = end - head_, rest = got_ - length - 4;
    if (!head.parse(head_, (int64_t)length)) throw Lost{"the answer is not HTTP"};
    for (const int busy : {408, 425, 429, 500, 502, 503, 504})
      if (head.status == busy) throw Busy{head.reason};
    const int64_t body = check_head();
    if ((int64_t)rest > body) throw NotForUs();  // the connection is out of step
    is_in_body_ = true, got_ = 0;
    if (is_unchanged_ || request_.length == RemoteRequest::kOnlySize) return finish();
    content_ = {to_ ? to_ : (char *)memory_take(std::max<int64_t>(body, 1)), body};
    if (!content_.data) throw NotForUs();
    memcpy(content_.data, &head_[length + 4], rest);
    got_ = rest;
  }

  // Gives the length of the body.
  int64_t check_head() {
    const RemoteRequest &r = request_;
    if (head.status == 304 && !r.unless.empty()) return is_unchanged_ = true, 0;
    const int64_t length = head.length;
    if (!head.is_plain || head.tag.empty() || head.tag.back() != '"' || length < 0) throw NotForUs();
    if (head.status == 206 && r.length >= 0) {
      const std::string wanted =
          "bytes " + std::to_string(r.offset) + "-" + std::to_string(r.offset + length - 1) + "/";
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

  void finish() {
    if (head.status == 200 && request_.length != RemoteRequest::kOnlySize)
      if (const char *const sum = wrong_checksum(head, content_.data, content_.size); *sum)
        throw Lost{std::string("the answer does not have the ") + sum + " checksum that the server names"};
    is_done = true;
  }

  const RemoteLimits &limits_;
  const RemoteRequest &request_;
  char *const to_;
  bool (*const is_unwanted_)(const void *);
  const void *const of_;
  int64_t began_ns_ = 0, last_ns_ = 0;  // when it was asked, and when bytes came or went last
  char head_[kMostHead];
  size_t got_ = 0;  // of the head, or of the body
  bool is_in_body_ = false, is_unchanged_ = false;
  int64_t size_ = -1;
  Content content_{nullptr, 0};
};

HttpClient::~HttpClient() {
  for (auto &host : kept_)
    for (const int fd : host.second) close(fd);
}

bool HttpClient::parse(const std::string &name, Url *url) {
  if (name.compare(0, 7, "http://")) return false;
  const size_t path = std::min(name.find_first_of("/?#", 7), name.size());
  url->server = name.substr(7, path - 7);
  if (url->server.find_first_of("@[") != std::string::npos) return false;
  const size_t colon = url->server.find(':');
  url->host = url->server.substr(0, colon);
  url->port = colon == std::string::npos ? "80" : url->server.substr(colon + 1);
  url->path = encoded(name.substr(path, name.find('#', path) - path));
  return !url->host.empty() && !url->path.empty() && url->path[0] == '/';
}

int HttpClient::take(const Url &url) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto &fds = kept_[url.server];
  if (fds.empty()) return -1;
  const int fd = fds.back();
  fds.pop_back();
  return fd;
}

void HttpClient::keep(const Url &url, int fd) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_[url.server].push_back(fd);
}

// False: the connection was kept, and the server had closed it meanwhile.
bool HttpClient::begin(Exchange &e, bool may_be_kept) {
  e.fd = may_be_kept ? take(e.url) : -1;
  e.was_kept = e.fd >= 0;
  try {
    if (!e.was_kept) e.connect();
    e.send();
    while (!e.is_done && !e.is_silent()) e.receive(0);
  } catch (const Lost &) {
    if (e.was_kept && !e.has_begun()) return false;
    throw;
  }
  return true;
}

// Until one of them is done; one that fails leaves it to the other.
void HttpClient::race(Exchange &first, Exchange &second) {
  Exchange *left[] = {&first, &second};
  int n = 2;
  const auto attempt = [&](auto step) {
    try {
      step();
    } catch (const Lost &) {
      if (!--n) throw;
      return false;
    } catch (const Busy &) {
      if (!--n) throw;
      return false;
    }
    return true;
  };
  if (!attempt([&] { second.connect(), second.send(); })) left[1] = nullptr;
  while (!first.is_done && !second.is_done) {
    pollfd p[2];
    for (int i = 0; i < 2; i++) p[i] = {left[i] ? left[i]->fd : -1, POLLIN, 0};
    poll(p, 2, (int)(kLookNs / kMillisecond));
    for (int i = 0; i < 2 && !first.is_done; i++)  // without an event it looks whether to wait any longer
      if (left[i] && !attempt([&] { left[i]->receive(MSG_DONTWAIT); })) left[i] = nullptr;
  }
}

bool HttpClient::carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of, int *hedged) {
  Url url;
  if (!parse(request.name, &url)) return false;
  const auto finish = [&](Exchange &e) {
    e.hand_over(request);
    if (e.head.is_kept) keep(url, e.fd), e.fd = -1;
  };
  try {
    for (const bool may_be_kept : {true, false}) {
      Exchange first(limits_, url, request, request.to, is_unwanted, of);
      if (!begin(first, may_be_kept)) continue;
      if (!first.is_done) {
        Exchange second(limits_, url, request, nullptr, is_unwanted, of);
        ++*hedged;
        race(first, second);
        finish(first.is_done ? first : second);
      } else {
        finish(first);
      }
      return true;
    }
    return false;
  } catch (const NotForUs &) {
    return false;
  } catch (const Busy &busy) {
    request.state = RemoteRequest::kFailed, request.why = kServerBusy;
    request.error = "the server answers " + busy.status;
    return true;
  } catch (const Lost &lost) {
    request.state = RemoteRequest::kFailed, request.why = kNotReachable, request.error = lost.why;
    return true;
  }
}
