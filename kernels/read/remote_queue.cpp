// SPDX-License-Identifier: Apache-2.0
#include "read/remote_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "core/export.h"
#include "core/memory.h"
#include "read/http_client.h"
#include "read/signed_urls.h"
#include "read/waiting.h"

namespace {

constexpr int64_t kMillisecond = 1000000, kSecond = 1000 * kMillisecond;
constexpr std::chrono::nanoseconds kLook(kLookNs);
constexpr int64_t kFirstDelay = 50 * kMillisecond, kLongestDelay = 10 * kSecond;
constexpr int64_t kSilent = 3 * kSecond;  // retries are silent for this long, then there is a warning

uint64_t hash_of(const std::string &text) { return std::hash<std::string>()(text); }

}  // namespace

thread_local const std::atomic<bool> *RemoteQueue::unwanted = nullptr;
thread_local int64_t RemoteQueue::n_asked = 0;

RemoteRequest::~RemoteRequest() {
  if (!keeps_content && content.data) memory_give(content.data);
}

RemoteQueue::RemoteQueue(const RemoteLimits &limits, std::unique_ptr<HttpClient> http)
    : limits_(limits),
      http_(std::move(http)),
      signed_(http_ ? std::make_unique<SignedUrls>([this] { ask_for_signatures(); }) : nullptr) {}
RemoteQueue::~RemoteQueue() = default;

uint64_t version_of(const char *tag) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (; *tag; tag++) h = (h ^ (unsigned char)*tag) * 0x100000001b3ull;
  return (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
}

static bool nobody_wants_it(const std::atomic<bool> &closing) {
  return closing.load() || (RemoteQueue::unwanted && RemoteQueue::unwanted->load());
}
static bool is_unwanted(const void *closing) { return nobody_wants_it(*(const std::atomic<bool> *)closing); }

std::shared_ptr<RemoteRequest> RemoteQueue::ask(const std::string &name, int64_t offset, int64_t length, char *to,
                                                const std::string &unless, int64_t expected, RemoteCounts &counts,
                                                const std::atomic<bool> &closing) {
  const int64_t since = now_ns();
  n_asked++;
  for (int tries = 1;; tries++) {
    if (nobody_wants_it(closing)) fail("it was no longer wanted");
    auto r = std::make_shared<RemoteRequest>(name, offset, length, to, unless);
    r->expected = expected;
    add(counts.requests, 1);
    carry_out(r, counts, closing);
    if (r->state == RemoteRequest::kDone) {
      add(counts.bytes, r->content.size);
      return r;
    }
    const bool lasts = r->why == kForGood || (r->why == kServerBusy && tries >= limits_.most_tries) ||
                       (r->why == kNotReachable && now_ns() - since >= limits_.patience_ns);
    if (lasts) {
      add(counts.failed, 1);
      if (tries == 1) fail("%s", r->error.c_str());
      fail("%s (tried %d times in %.0f s)", r->error.c_str(), tries, (double)(now_ns() - since) / kSecond);
    }
    add(counts.retries, 1);
    wait_before_retry(*r, tries, since, closing);
  }
}

void RemoteQueue::will_read(const std::vector<std::string> &names) {
  if (signed_ && !names.empty()) signed_->want(names);
}

bool RemoteQueue::ask_ahead(const char *name, int64_t offset, int64_t length) {
  if (!http_) return false;
  const std::string url = is_in_bucket(name) ? signed_->find(name, true) : name;
  return !url.empty() && http_->ask_ahead(url, offset, length);
}

void RemoteQueue::drop_asked() {
  if (http_) http_->drop_asked();
}

// Requires mutex_.
void RemoteQueue::push(const Request &r) {
  queue_.push_back(r);
  to_take_.notify_one();
}

// Requires mutex_. A request whose bytes are being copied has no waiter.
void RemoteQueue::give_up(const Request &r) {
  if (r->state != RemoteRequest::kWaiting) return;
  r->state = RemoteRequest::kGivenUp;
  queue_.erase(std::remove(queue_.begin(), queue_.end(), r), queue_.end());
}

void RemoteQueue::ask_for_signatures() {
  const auto r = std::make_shared<RemoteRequest>("", 0, RemoteRequest::kSign, nullptr, "");
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_front(r);  // others wait for them
  to_take_.notify_one();
}

void RemoteQueue::carry_out(Request &r, RemoteCounts &counts, const std::atomic<bool> &closing) {
  if (!http_) return carry_out_by_python(r, counts, closing);
  if (!is_in_bucket(r->name.c_str())) {
    if (!carry_out_by_http(*r, r->name, counts, closing)) carry_out_by_python(r, counts, closing);
    return;
  }
  std::string url;
  if (r->length != RemoteRequest::kOnlySize)  // the signature is one for GET
    url = signed_->find(r->name, false, is_unwanted, &closing);
  r->is_signed = !url.empty();
  if (r->is_signed && carry_out_by_http(*r, url, counts, closing)) return;
  carry_out_by_python(r, counts, closing);
  if (!url.empty() && r->state == RemoteRequest::kDone) signed_->leave_bucket(r->name);
}

bool RemoteQueue::carry_out_by_http(RemoteRequest &r, const std::string &url, RemoteCounts &counts,
                                    const std::atomic<bool> &closing) {
  int hedged = 0;
  const bool is_done = http_->carry_out(r, url, is_unwanted, &closing, &hedged);
  if (hedged) add(counts.hedged, hedged), add(counts.requests, hedged);
  return is_done;
}

void RemoteQueue::carry_out_by_python(Request &r, RemoteCounts &counts, const std::atomic<bool> &closing) {
  const auto has_ended = [](const Request &q) {
    return q->state == RemoteRequest::kDone || q->state == RemoteRequest::kFailed;
  };
  const int64_t begun = now_ns();
  const auto look = std::min<std::chrono::nanoseconds>(
      kLook, std::chrono::nanoseconds(limits_.hedge_ns ? limits_.hedge_ns : INT64_MAX));
  Request second;  // a second request for the same bytes
  r->answered = std::make_shared<std::condition_variable>();
  std::unique_lock<std::mutex> lock(mutex_);
  push(r);
  while (!has_ended(r)) {
    r->answered->wait_for(lock, look);
    if (r->state == RemoteRequest::kWaiting && nobody_wants_it(closing)) {
      for (const Request &q : {r, second})
        if (q) give_up(q);
      fail("it was no longer wanted");
    }
    if (second && second->state == RemoteRequest::kDone && r->state == RemoteRequest::kWaiting) {
      give_up(r);
      if (r->to && second->content.data) {
        memcpy(r->to, second->content.data, second->content.size);
        memory_give(second->content.data);
        second->content.data = r->to;
      }
      second->keeps_content = true;
      r = std::move(second);
      return;
    }
    if (!second && limits_.hedge_ns && !r->has_begun && r->state == RemoteRequest::kWaiting &&
        now_ns() - begun >= limits_.hedge_ns) {
      second = std::make_shared<RemoteRequest>(r->name, r->offset, r->length, nullptr, r->unless);
      second->answered = r->answered, second->keeps_content = false;
      add(counts.hedged, 1), add(counts.requests, 1);
      push(second);
    }
  }
  if (second) give_up(second);
}

// Exponential backoff with random jitter, so that threads do not all retry at once.
void RemoteQueue::wait_before_retry(const RemoteRequest &r, int tries, int64_t since,
                                    const std::atomic<bool> &closing) {
  const int64_t longest = std::min(kLongestDelay, kFirstDelay << std::min(tries - 1, 16));
  const int64_t now = now_ns(), differs = (int64_t)((hash_of(r.name) ^ (uint64_t)now) % (uint64_t)(longest / 2 + 1));
  const int64_t until = now + longest / 2 + differs;
  std::unique_lock<std::mutex> lock(mutex_);
  if (now - since > kSilent && now - last_line_ns_ > kSecond * 60) {
    last_line_ns_ = now;
    fprintf(stderr, "penstock: %s: %s; trying again for up to %lld s\n", without_secrets(r.name).c_str(),
            r.error.c_str(), (long long)(limits_.patience_ns / kSecond));
  }
  lock.unlock();
  for (int64_t left = until - now; left > 0; left = until - now_ns()) {
    if (nobody_wants_it(closing)) fail("it was no longer wanted");
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLook, std::chrono::nanoseconds(left)));
  }
}

bool RemoteQueue::take(RemoteTask *task, double most_s) {
  std::unique_lock<std::mutex> lock(mutex_);
  waiting_++;
  while (!to_take_.wait_for(lock, std::chrono::duration<double>(most_s), [&] { return !queue_.empty(); }))
    if (waiting_ > 1) return waiting_--, false;
  waiting_--;
  auto r = std::move(queue_.front());
  queue_.pop_front();
  if (r->length == RemoteRequest::kSign) r->name = signed_->take_wanted(), r->offset = (int64_t)r->name.size();
  *task = {r.get(), r->name.c_str(), r->offset, r->length, r->unless.c_str(), (int64_t)queue_.size()};
  taken_.emplace(r.get(), std::move(r));
  return true;
}

void RemoteQueue::answer(void *request, const char *data, int64_t bytes, RemoteVersion found, const char *tag) {
  std::shared_ptr<RemoteRequest> r;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto place = taken_.find(request);
    r = std::move(place->second);
    taken_.erase(place);
    if (r->state == RemoteRequest::kGivenUp) return;
    r->state = RemoteRequest::kCopying;
  }
  const int64_t length = std::max<int64_t>(r->length, 0);
  const int64_t wanted = r->length == RemoteRequest::kToTheEnd ? found.size - r->offset : length;
  auto state = RemoteRequest::kDone;
  if (bytes != wanted) {
    char text[kErrorSize];
    snprintf(text, sizeof text, "the answer has %lld of %lld bytes", (long long)bytes, (long long)wanted);
    state = RemoteRequest::kFailed, r->why = kNotReachable, r->error = text;
  } else if (r->length != RemoteRequest::kOnlySize) {
    char *to = r->to ? r->to : (char *)memory_take(std::max<int64_t>(bytes, 1));
    if (to) {
      memcpy(to, data, bytes);
      r->content = {to, bytes};
    } else {
      state = RemoteRequest::kFailed, r->error = "out of memory for the object";
    }
  }
  r->found = found, r->tag = tag;
  std::lock_guard<std::mutex> lock(mutex_);
  r->state = state;
  r->answered->notify_one();
}

void RemoteQueue::has_begun(void *request) {
  std::lock_guard<std::mutex> lock(mutex_);
  taken_.find(request)->second->has_begun = true;
}

void RemoteQueue::is_unchanged(void *request) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto place = taken_.find(request);
  RemoteRequest &r = *place->second;
  if (r.state == RemoteRequest::kWaiting) r.state = RemoteRequest::kDone, r.is_unchanged = true;
  r.answered->notify_one();
  taken_.erase(place);
}

void RemoteQueue::refuse(void *request, RemoteFailure why, const char *error) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto place = taken_.find(request);
  RemoteRequest &r = *place->second;
  if (r.state == RemoteRequest::kWaiting) r.state = RemoteRequest::kFailed, r.why = why, r.error = error;
  r.answered->notify_one();
  taken_.erase(place);
}

void RemoteQueue::are_signed(void *request, const char *urls, double used_for_s) {
  std::shared_ptr<RemoteRequest> r;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto place = taken_.find(request);
    r = std::move(place->second);
    taken_.erase(place);
  }
  signed_->answer(r->name, urls, used_for_s);
}

// The queue lives until the process ends, as threads wait in it. Returns null if out of memory. Without `by_http`,
// Python threads carry out all requests.
EXPORT RemoteQueue *remote_queue_create(double patience_s, int64_t most_tries, double connect_s, double read_s,
                                        double request_s, double hedge_s, int32_t by_http) {
  try {
    const auto ns = [](double s) { return (int64_t)(s * (double)kSecond); };
    const RemoteLimits limits{ns(patience_s), most_tries, ns(connect_s), ns(read_s), ns(request_s), ns(hedge_s)};
    return new RemoteQueue(limits, by_http ? std::make_unique<HttpClient>(limits) : nullptr);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_SHORT(remote_queue_create)
EXPORT int64_t remote_take(RemoteQueue *queue, RemoteTask *task, double most_s) { return queue->take(task, most_s); }
EXPORT_LONG(remote_take)
EXPORT void remote_answer(RemoteQueue *queue, void *request, const char *data, int64_t bytes, int64_t size,
                          uint64_t version, const char *tag) {
  queue->answer(request, data, bytes, {size, version}, tag);
}
EXPORT_LONG(remote_answer)
EXPORT void remote_has_begun(RemoteQueue *queue, void *request) { queue->has_begun(request); }
EXPORT_SHORT(remote_has_begun)
EXPORT void remote_is_unchanged(RemoteQueue *queue, void *request) { queue->is_unchanged(request); }
EXPORT_SHORT(remote_is_unchanged)
EXPORT void remote_refuse(RemoteQueue *queue, void *request, int32_t why, const char *error) {
  queue->refuse(request, (RemoteFailure)why, error);
}
EXPORT_SHORT(remote_refuse)
EXPORT void remote_are_signed(RemoteQueue *queue, void *request, const char *urls, double used_for_s) {
  queue->are_signed(request, urls, used_for_s);
}
EXPORT_LONG(remote_are_signed)
EXPORT uint64_t remote_version(const char *tag) { return version_of(tag); }
EXPORT_SHORT(remote_version)
