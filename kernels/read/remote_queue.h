// SPDX-License-Identifier: Apache-2.0
// Requests for bytes of objects that other machines keep. Threads of Python with a client library
// (src/penstock/core/object_stores.py) take them from here and carry them out. What is tried again, for how long, and
// what is counted is decided here.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "read/storage.h"

// What a thread that carries out requests gets.
struct RemoteTask {
  void *request;
  const char *name;
  int64_t offset, length;  // as in `RemoteRequest`
  const char *unless;      // the ETag of a version whose bytes are not wanted, or ""
  int64_t waiting;         // how many others nobody has taken yet
};

// What came of the requests of a reader. Any number of threads `add` to it.
struct RemoteCounts {
  int64_t requests, retries, failed, bytes, cached_bytes, hedged;
};
inline void add(int64_t &count, int64_t n) { __atomic_fetch_add(&count, n, __ATOMIC_RELAXED); }

// Why a request failed.
enum RemoteFailure : int32_t {
  kForGood,      // there is no such object, or it may not be read
  kServerBusy,   // the server says that it can't do it now
  kNotReachable  // there was no answer, or not all of it
};

// How long things may take.
struct RemoteLimits {
  int64_t patience_ns;                      // a request without an answer is tried again for so long
  int64_t most_tries;                       // of one that the server refuses for now
  int64_t connect_ns, read_ns, request_ns;  // the longest time to connect, silence, and time of a request
  int64_t hedge_ns;                         // the silence after which another connection is asked, too; 0: never
};

// Of an object, when it was read. A version is a hash of its ETag.
struct RemoteVersion {
  int64_t size;
  uint64_t version;
};

struct RemoteRequest {
  static constexpr int64_t kToTheEnd = -1, kOnlySize = -2;
  enum State { kWaiting, kCopying, kDone, kFailed, kGivenUp };
  std::string name;
  int64_t offset, length;  // bytes, or one of the constants above
  char *to;                // null: to a block of the memory pool
  int64_t expected = 0;    // bytes of an object that is read to its end, if that is known
  State state = kWaiting;
  std::shared_ptr<std::condition_variable> answered;  // of one that is in the queue
  std::string unless;                                 // an ETag: no bytes are wanted of the version that has it
  // The answer:
  bool is_unchanged = false;  // it is that version
  std::string tag;            // the ETag
  Content content{nullptr, 0};
  RemoteVersion found{-1, 0};
  RemoteFailure why = kForGood;
  std::string error;
  bool has_begun = false;     // an answer to come
  bool keeps_content = true;  // as it is not handed on

  ~RemoteRequest();
  RemoteRequest(const std::string &n, int64_t o, int64_t l, char *t, const std::string &u)
      : name(n), offset(o), length(l), to(t), unless(u) {}
};

// A URL without user, password and query, which may have a signature in it.
std::string without_secrets(const std::string &url);

// What tells versions apart: a hash of the ETag.
uint64_t version_of(const char *tag);

class HttpClient;

class RemoteQueue {
 public:
  // What `http`, if there is one, can't carry out waits for threads of Python.
  RemoteQueue(const RemoteLimits &limits, std::unique_ptr<HttpClient> http);
  ~RemoteQueue();

  // Waits for the answer, and counts. Fails with the reason, and when the reader is `closing`.
  std::shared_ptr<RemoteRequest> ask(const std::string &name, int64_t offset, int64_t length, char *to,
                                     const std::string &unless, int64_t expected, RemoteCounts &counts,
                                     const std::atomic<bool> &closing);

  // As in `Storage`.
  bool ask_ahead(const char *name, int64_t offset, int64_t length);
  void drop_asked();

  // For threads that carry out requests. `take` waits for the next one.
  void take(RemoteTask *task);
  void answer(void *request, const char *data, int64_t bytes, RemoteVersion found, const char *tag);
  void has_begun(void *request);
  void is_unchanged(void *request);
  void refuse(void *request, RemoteFailure why, const char *error);

  // What this thread reads is no longer wanted once it says so. Null: nobody can say so.
  static thread_local const std::atomic<bool> *unwanted;

 private:
  typedef std::shared_ptr<RemoteRequest> Request;
  void carry_out(Request &request, RemoteCounts &counts, const std::atomic<bool> &closing);
  void push(const Request &request);
  void give_up(const Request &request);
  void wait_before_retry(const RemoteRequest &request, int tries, int64_t since, const std::atomic<bool> &closing);

  const RemoteLimits limits_;
  const std::unique_ptr<HttpClient> http_;
  std::mutex mutex_;
  std::condition_variable to_take_;
  std::deque<std::shared_ptr<RemoteRequest>> queue_;
  std::unordered_map<void *, std::shared_ptr<RemoteRequest>> taken_;
  int64_t last_line_ns_ = 0;  // when it was said that a server does not answer
};
