// SPDX-License-Identifier: Apache-2.0
// Requests for bytes of remote objects. Python threads with a client library (src/penstock/core/object_stores.py) take
// them from here and carry them out. Retries and statistics are handled here.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "read/storage.h"
#include "read/url.h"

// A request, as given to a Python thread.
struct RemoteTask {
  void *request;
  const char *name;        // of an object, null-terminated; or names whose URLs are to be signed, each null-terminated
  int64_t offset, length;  // as in `RemoteRequest`, or number of bytes in `name` and kSign
  const char *unless;      // the ETag of a version whose bytes are not wanted, or ""
  int64_t waiting;         // number of requests still in the queue
};

// Statistics of a reader's requests. Threads increase them concurrently with `add`.
struct RemoteCounts {
  int64_t requests, retries, failed, bytes, cached_bytes, hedged;
};
inline void add(int64_t &count, int64_t n) { __atomic_fetch_add(&count, n, __ATOMIC_RELAXED); }

// Why a request failed.
enum RemoteFailure : int32_t {
  kForGood,      // not worth a retry: there is no such object, or access is denied
  kServerBusy,   // the server refuses for now
  kNotReachable  // no answer, or an incomplete one
};

// Limits of time and retries.
struct RemoteLimits {
  int64_t patience_ns;                      // how long a request without an answer is retried
  int64_t most_tries;                       // of a request that the server refuses for now
  int64_t connect_ns, read_ns, request_ns;  // maximum time to connect, without any data, and of a request
  int64_t hedge_ns;                         // time without data after which a second connection is tried; 0: never
};

// Size and version of an object when it was read. The version is a hash of the ETag.
struct RemoteVersion {
  int64_t size;
  uint64_t version;
};

struct RemoteRequest {
  static constexpr int64_t kToTheEnd = -1, kOnlySize = -2, kSign = -3;
  enum State { kWaiting, kCopying, kDone, kFailed, kGivenUp };
  std::string name;
  int64_t offset, length;  // bytes, or one of the constants above
  char *to;                // null: into a block of the memory pool
  int64_t expected = 0;    // size of an object that is read to its end; 0 if unknown
  State state = kWaiting;
  std::shared_ptr<std::condition_variable> answered;  // for requests in the queue
  std::string unless;                                 // an ETag: no bytes if the object still has it
  // The answer:
  bool is_unchanged = false;  // the ETag is `unless`
  std::string tag;            // the ETag
  Content content{nullptr, 0};
  RemoteVersion found{-1, 0};
  RemoteFailure why = kForGood;
  std::string error;
  bool is_signed = false;     // sent by a signed URL
  bool has_begun = false;     // the answer has begun to arrive
  bool keeps_content = true;  // the destructor does not free `content`, which has another owner

  ~RemoteRequest();
  RemoteRequest(const std::string &n, int64_t o, int64_t l, char *t, const std::string &u)
      : name(n), offset(o), length(l), to(t), unless(u) {}
};

// A version: a hash of the ETag.
uint64_t version_of(const char *tag);

class HttpClient;
class SignedUrls;

class RemoteQueue {
 public:
  // Requests that `http` can't carry out, or all if it is null, wait for Python threads. It reads objects in buckets by
  // signed URLs.
  RemoteQueue(const RemoteLimits &limits, std::unique_ptr<HttpClient> http);
  ~RemoteQueue();

  // Waits for the answer and updates `counts`. Fails with the reason, or if the reader is `closing`.
  std::shared_ptr<RemoteRequest> ask(const std::string &name, int64_t offset, int64_t length, char *to,
                                     const std::string &unless, int64_t expected, RemoteCounts &counts,
                                     const std::atomic<bool> &closing);

  // As in `Storage`.
  void will_read(const std::vector<std::string> &names);
  bool ask_ahead(const char *name, int64_t offset, int64_t length);
  void drop_asked();

  // For threads that carry out requests. `take` waits for the next one; false if there is none for so long, and another
  // thread waits, too.
  bool take(RemoteTask *task, double most_s);
  void answer(void *request, const char *data, int64_t bytes, RemoteVersion found, const char *tag);
  void has_begun(void *request);
  void is_unchanged(void *request);
  void refuse(void *request, RemoteFailure why, const char *error);
  void are_signed(void *request, const char *urls, double used_for_s);

  // Cancels what this thread reads once it is true. Null if it cannot be cancelled.
  static thread_local const std::atomic<bool> *unwanted;
  static thread_local int64_t n_asked;  // number of times that this thread has called `ask`

 private:
  typedef std::shared_ptr<RemoteRequest> Request;
  void carry_out(Request &request, RemoteCounts &counts, const std::atomic<bool> &closing);
  bool carry_out_by_http(RemoteRequest &request, const std::string &url, RemoteCounts &counts,
                         const std::atomic<bool> &closing);
  void carry_out_by_python(Request &request, RemoteCounts &counts, const std::atomic<bool> &closing);
  void ask_for_signatures();
  void push(const Request &request);
  void give_up(const Request &request);
  void wait_before_retry(const RemoteRequest &request, int tries, int64_t since, const std::atomic<bool> &closing);

  const RemoteLimits limits_;
  const std::unique_ptr<HttpClient> http_;
  const std::unique_ptr<SignedUrls> signed_;  // null if http_ is
  std::mutex mutex_;
  std::condition_variable to_take_;
  int waiting_ = 0;  // threads in `take`
  std::deque<std::shared_ptr<RemoteRequest>> queue_;
  std::unordered_map<void *, std::shared_ptr<RemoteRequest>> taken_;
  int64_t last_line_ns_ = 0;  // time of the last warning that a server does not answer
};
