// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 request and its answer, on one connection.
#pragma once
#include <string>

#include "read/http_head.h"
#include "read/http_socket.h"
#include "read/remote_queue.h"
#include "read/waiting.h"

struct HttpUrl {
  const Tls *tls;                        // null for http://
  std::string server, host, port, path;  // server: scheme, host and port
  std::string token;                     // a line of the request's head, or ""
};

// Calls check at least every `kLookNs`, except during a DNS look-up, whether to keep waiting. They throw Lost, Busy,
// NotForUs, NoTls, or, if cancelled, what `fail` throws.
class HttpExchange {
 public:
  struct Lost {
    std::string why;
  };
  struct Busy {
    std::string status;
  };
  struct NotForUs {};  // the general client is needed
  struct NoTls {};     // also for every other request to this server

  // `to` replaces request.to, which another exchange may be writing to.
  HttpExchange(const RemoteLimits &limits, const HttpUrl &url, const RemoteRequest &request, char *to,
               bool (*is_unwanted)(const void *), const void *of)
      : url(url), limits_(limits), request_(request), to_(to), is_unwanted_(is_unwanted), of_(of) {}
  ~HttpExchange();
  HttpExchange(const HttpExchange &) = delete;

  void connect();
  // The answer probably has a head of this size in bytes, and a body of the requested length: one call then reads both
  // into place.
  void expect(size_t head);
  void send();
  int64_t sent_ns() const { return began_ns_; }
  void was_sent(int64_t ns) { last_ns_ = began_ns_ = ns; }  // the request was sent by another exchange
  // Reads available data with these recv flags; returns false if there is none. With flags 0 it waits: in the body,
  // for all of it or until the socket's timeout, so one call replaces one for each packet.
  bool receive(int flags);
  bool has_begun() const { return got_ > 0 || is_in_body_; }
  bool is_silent() const;
  // Moves the answer into the request.
  void hand_over(RemoteRequest &request);

  const HttpUrl &url;
  HttpHead head;
  HttpSocket socket;
  size_t head_size = 0;
  bool is_done = false, was_kept = false;

 private:
  static constexpr size_t kHead = 1 << 10, kMostHead = 16 << 10;  // bytes per read, and maximum size of a head
  std::string text_of_request() const;
  void wait_to_connect(int fd) const;
  void begin_tls();
  void look() const;
  void check_time(int64_t now) const;
  void take_both(size_t n_behind);
  void find_end_of_head(const char *text, size_t size, size_t from);
  void begin_body(const char *text, size_t length, const char *from, size_t rest);
  int64_t check_head();
  void finish();

  const RemoteLimits &limits_;
  const RemoteRequest &request_;
  char *const to_;
  bool (*const is_unwanted_)(const void *);
  const void *const of_;
  int64_t began_ns_ = 0, last_ns_ = 0;  // when the request was sent, and the last bytes were sent or received
  char head_[kMostHead];
  size_t got_ = 0;  // bytes of the head, or once in the body, of the body
  size_t expected_head_ = 0;
  bool is_in_body_ = false, is_unchanged_ = false;
  int64_t size_ = -1;
  Content content_{nullptr, 0};
};
