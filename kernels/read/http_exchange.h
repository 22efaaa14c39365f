// SPDX-License-Identifier: Apache-2.0
// One request by HTTP/1.1 and its answer, on one connection.
#pragma once
#include <string>

#include "read/http_head.h"
#include "read/remote_queue.h"

struct HttpUrl {
  std::string server, host, port, path;
};

// So often it is looked whether what is waited for is still wanted.
constexpr int64_t kLookNs = 200000000;

// Calls block for `kLookNs` at most, and throw these, or what says that nobody waits for it any more.
class HttpExchange {
 public:
  struct Lost {
    std::string why;
  };
  struct Busy {
    std::string status;
  };
  struct NotForUs {};  // it takes another client to understand this

  // `to` as in the request, whose own memory another exchange may be writing to.
  HttpExchange(const RemoteLimits &limits, const HttpUrl &url, const RemoteRequest &request, char *to,
               bool (*is_unwanted)(const void *), const void *of)
      : url(url), limits_(limits), request_(request), to_(to), is_unwanted_(is_unwanted), of_(of) {}
  ~HttpExchange();
  HttpExchange(const HttpExchange &) = delete;

  void connect();
  // The answer is likely to have a head of so many bytes, and a body of as many as are wanted: it is then put where it
  // belongs by one call.
  void expect(size_t head);
  void send();
  int64_t sent_ns() const { return began_ns_; }
  void was_sent(int64_t ns) { last_ns_ = began_ns_ = ns; }  // by another exchange
  // Takes what comes next, by the `flags` of recv; false if nothing has come. If it may wait, it waits for all of the
  // body, or as long as its socket lets it: one call instead of one for each piece that comes.
  bool receive(int flags);
  bool has_begun() const { return got_ > 0 || is_in_body_; }
  bool is_silent() const;
  // Gives the answer to the request.
  void hand_over(RemoteRequest &request);

  const HttpUrl &url;
  HttpHead head;
  int fd = -1;
  size_t head_size = 0;
  bool is_done = false, was_kept = false;

 private:
  static constexpr size_t kHead = 1 << 10, kMostHead = 16 << 10;  // taken at once, and at most
  std::string text_of_request() const;
  void wait_to_connect();
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
  int64_t began_ns_ = 0, last_ns_ = 0;  // when it was asked, and when bytes came or went last
  char head_[kMostHead];
  size_t got_ = 0;  // of the head, or of the body
  size_t expected_head_ = 0;
  bool is_in_body_ = false, is_unchanged_ = false;
  int64_t size_ = -1;
  Content content_{nullptr, 0};
};
