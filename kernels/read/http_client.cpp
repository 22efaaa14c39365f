// SPDX-License-Identifier: Apache-2.0
#include "read/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/memory.h"

namespace {

constexpr int64_t kConnectNs = 10000000000, kLookMs = 200;
constexpr size_t kMostHead = 16 << 10;

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
  static const char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : path) {
    if (c > 0x20 && c < 0x7f && !strchr("\"<>\\^`{|}", c)) {
      out += (char)c;
    } else {
      out += '%', out += hex[c >> 4], out += hex[c & 15];
    }
  }
  return out;
}

// The value of a header, without spaces around it; "" if there is none.
std::string header(const std::string &head, const char *name) {
  const size_t length = strlen(name);
  for (size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    const char *line = head.c_str() + at + 2;
    if (strncasecmp(line, name, length) || line[length] != ':') continue;
    const char *begin = line + length + 1, *end = strstr(begin, "\r\n");
    if (!end) end = head.c_str() + head.size();
    while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) end--;
    return std::string(begin, end);
  }
  return "";
}

bool number(const std::string &text, int64_t *value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *value = atoll(text.c_str());
  return true;
}

}  // namespace

// One request and its answer on one connection.
class HttpClient::Exchange {
 public:
  Exchange(HttpClient &c, const Url &u, bool (*is)(const void *), const void *of)
      : client_(c), url_(u), is_unwanted_(is), of_(of) {}
  ~Exchange() {
    if (fd_ >= 0) close(fd_);
  }
  // False: the connection was kept, and the server had closed it meanwhile.
  bool run(RemoteRequest &r, bool may_be_kept) {
    fd_ = may_be_kept ? client_.take(url_) : -1;
    const bool was_kept = fd_ >= 0;
    if (!was_kept) connect();
    std::string head, rest;
    try {
      send(text_of(r));
      receive_head(&head, &rest);
    } catch (const Lost &) {
      if (was_kept && head.empty() && rest.empty()) return false;
      throw;
    }
    finish(r, head, rest);
    if (strcasecmp(header(head, "Connection").c_str(), "close") && !head.compare(0, 8, "HTTP/1.1"))
      client_.keep(url_, fd_), fd_ = -1;
    return true;
  }

 private:
  std::string text_of(const RemoteRequest &r) const {
    std::string t = (r.length == RemoteRequest::kOnlySize ? "HEAD " : "GET ") + url_.path +
                    " HTTP/1.1\r\nHost: " + url_.host + (url_.port == "80" ? "" : ":" + url_.port) +
                    "\r\nUser-Agent: penstock\r\n";
    if (r.length >= 0)
      t += "Range: bytes=" + std::to_string(r.offset) + "-" + std::to_string(r.offset + r.length - 1) + "\r\n";
    if (!r.unless.empty()) t += "If-None-Match: " + r.unless + "\r\n";
    return t + "\r\n";
  }
  void wait(short events, int64_t longest, const char *why) {
    const int64_t until = now_ns() + longest;
    for (;;) {
      pollfd p{fd_, events, 0};
      const int n = poll(&p, 1, kLookMs);
      if (n > 0) return;
      if (n < 0 && errno != EINTR) throw Lost{strerror(errno)};
      if (is_unwanted_(of_)) fail("it was no longer wanted");
      if (now_ns() > until) throw Lost{why};
    }
  }
  void connect() {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(url_.host.c_str(), url_.port.c_str(), &hints, &found))
      throw Lost{"the server can't be reached: dns error"};
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
    int error = 0;
    for (const addrinfo *a = found; a; a = a->ai_next) {
      fd_ = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
      if (fd_ < 0) throw Lost{strerror(errno)};
      error = ::connect(fd_, a->ai_addr, a->ai_addrlen) ? errno : 0;
      if (error == EINPROGRESS) {
        wait(POLLOUT, kConnectNs, "the server can't be reached: timed out");
        socklen_t size = sizeof error;
        getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (!error) break;
      close(fd_), fd_ = -1;
    }
    if (fd_ < 0) throw Lost{std::string("the server can't be reached: ") + strerror(error)};
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  void send(const std::string &text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n > 0)
        done += (size_t)n;
      else if (errno == EAGAIN)
        wait(POLLOUT, client_.read_ns_, "the server does not answer in time");
      else if (errno != EINTR)
        throw Lost{std::string("the connection was lost: ") + strerror(errno)};
    }
  }
  int64_t some(char *to, int64_t room) {
    for (;;) {
      const ssize_t n = recv(fd_, to, (size_t)room, 0);
      if (n > 0) return n;
      if (!n) throw Lost{"the answer was cut off"};
      if (errno == EAGAIN)
        wait(POLLIN, client_.read_ns_, "the server does not answer in time");
      else if (errno != EINTR)
        throw Lost{std::string("the answer was cut off: ") + strerror(errno)};
    }
  }
  void receive_head(std::string *head, std::string *rest) {
    char data[kMostHead];
    size_t got = 0;
    for (;;) {
      if (got == kMostHead) throw NotForUs();
      got += (size_t)some(data + got, (int64_t)(kMostHead - got));
      const char *end = (const char *)memmem(data, got, "\r\n\r\n", 4);
      if (!end) continue;
      head->assign(data, end - data);
      rest->assign(end + 4, data + got - (end + 4));
      return;
    }
  }
  void finish(RemoteRequest &r, const std::string &head, const std::string &rest) {
    if (head.size() < 12 || head.compare(0, 7, "HTTP/1.")) throw Lost{"the answer is not HTTP"};
    const int status = atoi(head.c_str() + 9);
    const std::string tag = header(head, "ETag");
    int64_t length = 0, size = 0;
    const bool is_plain = header(head, "Transfer-Encoding").empty() && header(head, "Content-Encoding").empty();
    for (const int busy : {408, 425, 429, 500, 502, 503, 504})
      if (status == busy) throw Busy{head.substr(9, head.find("\r\n") - 9)};
    if (status == 304 && !r.unless.empty() && rest.empty()) {
      r.is_unchanged = true, r.state = RemoteRequest::kDone;
      return;
    }
    if (!is_plain || tag.empty() || tag.back() != '"' || !number(header(head, "Content-Length"), &length))
      throw NotForUs();
    if (status == 206 && r.length >= 0) {
      const std::string range = header(head, "Content-Range"), wanted = "bytes " + std::to_string(r.offset) + "-" +
                                                                        std::to_string(r.offset + length - 1) + "/";
      if (range.compare(0, wanted.size(), wanted) || !number(range.substr(wanted.size()), &size) || length > r.length)
        throw NotForUs();
      if (length < r.length || size < r.offset + length) throw NotForUs();
    } else if (status == 200 && r.length < 0 && !r.offset) {
      size = length;
    } else {
      throw NotForUs();
    }
    r.found = {size, version_of(tag.c_str())}, r.tag = tag;
    if (r.length != RemoteRequest::kOnlySize)
      receive_body(r, length, rest);
    else if (!rest.empty())
      throw NotForUs();  // a body that nobody asked for: the connection is out of step
    r.state = RemoteRequest::kDone;
  }
  void receive_body(RemoteRequest &r, int64_t length, const std::string &rest) {
    if ((int64_t)rest.size() > length) throw NotForUs();
    std::unique_ptr<char, decltype(&memory_give)> block(
        r.to ? nullptr : (char *)memory_take(std::max<int64_t>(length, 1)), &memory_give);
    if (!r.to && !block) throw NotForUs();
    char *const to = r.to ? r.to : block.get();
    memcpy(to, rest.data(), rest.size());
    for (int64_t done = (int64_t)rest.size(); done < length;) done += some(to + done, length - done);
    block.release();
    r.content = {to, length};
  }

  HttpClient &client_;
  const Url &url_;
  bool (*const is_unwanted_)(const void *);
  const void *const of_;
  int fd_ = -1;
};

HttpClient::~HttpClient() {
  for (auto &host : kept_)
    for (const int fd : host.second) close(fd);
}

bool HttpClient::parse(const std::string &name, Url *url) {
  if (name.compare(0, 7, "http://")) return false;
  const size_t path = std::min(name.find_first_of("/?#", 7), name.size());
  const std::string server = name.substr(7, path - 7);
  if (server.find('@') != std::string::npos || server.find('[') != std::string::npos) return false;
  const size_t colon = server.find(':');
  url->host = server.substr(0, colon);
  url->port = colon == std::string::npos ? "80" : server.substr(colon + 1);
  url->path = encoded(name.substr(path, name.find('#', path) - path));
  return !url->host.empty() && !url->path.empty() && url->path[0] == '/';
}

int HttpClient::take(const Url &url) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto &fds = kept_[url.host + ":" + url.port];
  if (fds.empty()) return -1;
  const int fd = fds.back();
  fds.pop_back();
  return fd;
}

void HttpClient::keep(const Url &url, int fd) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_[url.host + ":" + url.port].push_back(fd);
}

bool HttpClient::carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of) {
  Url url;
  if (!parse(request.name, &url)) return false;
  try {
    if (!Exchange(*this, url, is_unwanted, of).run(request, true))
      Exchange(*this, url, is_unwanted, of).run(request, false);
    return true;
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
