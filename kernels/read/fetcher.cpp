// SPDX-License-Identifier: Apache-2.0
#include "read/fetcher.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "core/native_time.h"
#include "core/python.h"
#include "read/parsed_sample.h"
#include "read/waiting.h"

// Nanoseconds per run (per processor) that justify one more thread: the result is at most processors / kWorthAThread
// runs per second. Runs that take less than kTooShort wait for nothing; more threads than processors would only wake
// each other.
static constexpr int64_t kWorthAThread = 16'000, kTooShort = 64'000;
// All threads are used when no run has finished for this long.
static constexpr auto kNoProgress = std::chrono::milliseconds(5);
// Maximum number of runs that a thread takes at once: it requests all of them before it reads the first one, and then
// wakes up once for all of them; or they are short, and it reads one after the other. At least kThreadsAtLeast threads
// work while there is enough to request, and each processor takes short runs kTurnsAtLeast times from a batch.
static constexpr int kMostOfAThread = 8, kThreadsAtLeast = 4, kTurnsAtLeast = 4;
// Number of objects of unknown size that are read ahead until the size of one is known.
static constexpr int kFirstWhole = 16;

Fetcher::Fetcher(int n_threads, int64_t most_bytes, bool waits)
    : most_bytes_(most_bytes),
      whole_bytes_(most_bytes / kFirstWhole),
      n_threads_(n_threads),
      waits_(waits),
      processors_(std::max((int)std::thread::hardware_concurrency(), 1)),
      most_busy_(n_threads),
      run_ns_(n_threads * kWorthAThread) {
  try {
    for (int t = 0; t < n_threads; t++) threads_.emplace_back([this] { work(); });
  } catch (...) {
    if (threads_.empty()) throw;  // fewer will do
  }
}

Fetcher::~Fetcher() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto &t : threads_) t.join();
}

bool Fetcher::may_go_on() const {
  return !to_begin_.empty() && (held_ < most_bytes_ || to_begin_.front() == to_collect_.front());
}

FetchJob *Fetcher::begin(const Fetch &fetch, const int64_t *index, int64_t n, Tensor *out, void *const *dense,
                         RemoteStorage *remote) {
  Storage *storage = remote ? remote : storage_.get();
  auto job = std::make_unique<FetchJob>(fetch, index, n, out, dense, storage);
  if (remote) job->tell_names();
  FetchJob::Arena arena{job.get(), job->number};
  Scratch scratch;
  job->parse_rest(arena, scratch);
  job->done.begin_ns = job->done.end_ns = now_ns();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    to_collect_.push_back(job.get());
    if (job->runs_left) to_begin_.push_back(job.get());
  }
  wake_.notify_one();
  return job.release();
}

void Fetcher::goes_first(FetchJob *job) {
  for (auto *jobs : {&to_begin_, &to_collect_}) {
    auto place = std::find(jobs->begin(), jobs->end(), job);
    if (place != jobs->end()) std::rotate(jobs->begin(), place, place + 1);
  }
  if (may_go_on()) wake_.notify_one();
}

void Fetcher::wait_for_most(FetchJob *job) {
  std::unique_lock<std::mutex> lock(mutex_);
  goes_first(job);
  job->progress.wait(lock, [&] { return job->runs_left <= job->last_quarter(); });
}

int Fetcher::wait(FetchJob *job) {
  std::unique_lock<std::mutex> lock(mutex_);
  goes_first(job);
  job->progress.wait(lock, [&] { return !job->runs_left; });
  collect(job);
  job->done.most_held = most_held_;
  return job->failed();
}

void Fetcher::cancel(FetchJob *job) {
  job->unwanted = true;
  std::unique_lock<std::mutex> lock(mutex_);
  auto place = std::find(to_begin_.begin(), to_begin_.end(), job);
  if (place != to_begin_.end()) {
    to_begin_.erase(place);
    job->runs_left -= (int)job->runs.size() - job->next_run;
  }
  job->progress.wait(lock, [&] { return !job->runs_left; });
  collect(job);
}

void Fetcher::collect(FetchJob *job) {
  if (job->collected) return;
  job->collected = true;
  to_collect_.erase(std::find(to_collect_.begin(), to_collect_.end(), job));
  held_ -= job->done.bytes_read;
  if (may_go_on()) wake_.notify_one();
}

bool Fetcher::are_short() const { return run_ns_ < kTooShort; }

int Fetcher::most_at_once(const FetchJob &job) const {
  const int runs = (int)job.runs.size();
  return std::clamp(are_short() ? runs / (processors_ * kTurnsAtLeast) : most_busy_ / kThreadsAtLeast, 1,
                    kMostOfAThread);
}

void Fetcher::learn(int64_t run_ns) {
  finished_++;
  run_ns_ += (run_ns - run_ns_) / 32;
  const int64_t wanted = are_short() ? 0 : run_ns_ * processors_ / kWorthAThread;
  most_busy_ = (int)std::clamp<int64_t>(wanted, std::min(processors_, n_threads_), n_threads_);
}

void Fetcher::hold(int64_t bytes) {
  held_ += bytes;
  most_held_ = std::max(most_held_, held_);
}

void Fetcher::watch(std::unique_lock<std::mutex> &lock) {
  const int64_t before = finished_;
  watched_ = true;
  const auto status = wake_.wait_for(lock, kNoProgress);
  watched_ = false;
  if (status == std::cv_status::timeout && finished_ == before) most_busy_ = std::min(2 * most_busy_, n_threads_);
}

namespace {
struct Taken {
  int run;
  int64_t known, expected;  // bytes
};
}  // namespace

void Fetcher::work() {
#if defined(__linux__)
  // A thread that wakes up for an answer must not preempt one that processes a sample.
  const sched_param none{};
  if (waits_) sched_setscheduler(0, SCHED_BATCH, &none);
#endif
  Scratch scratch;
  FetchJob::Arena arena;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    while (!stop_ && (!may_go_on() || busy_ >= most_busy_)) {
      if (may_go_on() && !watched_)
        watch(lock);
      else
        wake_.wait(lock);
    }
    if (stop_) return;
    FetchJob *const job = to_begin_.front();
    Storage *const storage = job->storage;
    const bool in_turn = are_short();
    const int most = most_at_once(*job);
    Taken taken[kMostOfAThread];
    int n = 0;
    int64_t began = now_ns();
    bool asked_ahead;
    do {
      const int run = job->next_run++;
      if (!run) job->done.begin_ns = began;
      if (job->next_run == (int)job->runs.size()) to_begin_.pop_front();
      const int64_t known = job->bytes_of(run), expected = known < 0 ? whole_bytes_ : std::min(known, most_bytes_);
      if (!in_turn || !n) busy_++;
      hold(expected);
      taken[n++] = {run, known, expected};
      asked_ahead = false;
      if (!in_turn && most > 1) {
        lock.unlock();
        asked_ahead = job->ask_ahead(run);
        lock.lock();
      }
    } while ((in_turn || (asked_ahead && busy_ < most_busy_)) && n < most && may_go_on() && to_begin_.front() == job);
    const bool more = may_go_on() && (busy_ < most_busy_ || !watched_);
    lock.unlock();
    if (more) wake_.notify_one();
    if (arena.number != job->number) arena = {job, job->number};
    for (int i = 0; i < n; i++) {
      const Taken &t = taken[i];
      const int64_t asked_before = RemoteQueue::n_asked;
      const int64_t bytes = job->read(t.run, arena, scratch), ended = now_ns();
      // What the cache had waited for nothing, however long it took while other threads had the processors.
      const bool waited = !waits_ || RemoteQueue::n_asked != asked_before;
      if (i + 1 == n) storage->drop_asked();
      lock.lock();
      if (!in_turn || i + 1 == n) busy_--;
      learn(waited ? ended - began : 0);
      if (in_turn) began = ended;
      hold(bytes - t.expected);
      if (t.known < 0) whole_bytes_ += (bytes - whole_bytes_) / kFirstWhole;
      job->done.bytes_read += bytes;
      job->runs_left--;
      if (!job->runs_left) job->done.end_ns = ended;
      if (!job->runs_left || job->runs_left == job->last_quarter()) job->progress.notify_all();
      if (i + 1 < n) lock.unlock();
    }
  }
}

EXPORT Fetcher *fetcher_create(int32_t n_threads, int64_t most_bytes, int32_t waits) {
  try {
    return new Fetcher(n_threads, most_bytes, waits);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_LONG(fetcher_create)
EXPORT void fetcher_destroy(Fetcher *fetcher) { delete fetcher; }
EXPORT_LONG(fetcher_destroy)

namespace {
// A job that a Python capsule owns.
struct Owned {
  Fetcher *fetcher;  // null once the job is collected
  FetchJob *job;
  PyObject *alive;  // owns all memory that the job refers to
  uint32_t process;
};
constexpr const char *kFetch = "penstock.fetch";

void end(PyObject *capsule) {
  auto *owned = static_cast<Owned *>(python.pointer(capsule, kFetch));
  if (owned->fetcher) {  // not collected
    // Leaks the job if its threads can't be waited for: they are the parent process's, or some need the GIL.
    if (python.ends || owned->process != python.processes) return;
    void *thread = python.drop_lock();
    owned->fetcher->cancel(owned->job);
    python.take_lock(thread);
  }
  NativeTime time;
  delete owned->job;
  python.let_go(owned->alive);
  delete owned;
}
}  // namespace

// Returns a capsule that owns the job and a reference to `alive`; null, with an exception set, if out of memory.
EXPORT PyObject *fetch_begin(Fetcher *fetcher, const Fetch *fetch, const int64_t *index, int64_t n, Tensor *out,
                             void *const *dense, RemoteStorage *remote, PyObject *alive) {
  NativeTime time;
  try {
    auto owned = std::make_unique<Owned>(Owned{fetcher, nullptr, alive, python.processes});
    PyObject *capsule = python.new_capsule(owned.get(), kFetch, nullptr);
    if (!capsule) return nullptr;
    try {
      owned->job = fetcher->begin(*fetch, index, n, out, dense, remote);
    } catch (const std::exception &) {
      python.let_go(capsule);
      throw;
    }
    python.keep(alive);
    python.end_by(capsule, end);
    owned.release();
    return capsule;
  } catch (const std::exception &) {
    return python.no_memory();
  }
}
EXPORT_SHORT(fetch_begin)
EXPORT FetchJob *fetch_job(PyObject *capsule) { return static_cast<Owned *>(python.pointer(capsule, kFetch))->job; }
EXPORT_SHORT(fetch_job)
EXPORT void fetch_wait_for_most(Fetcher *fetcher, FetchJob *job) {
  NativeTime time;
  fetcher->wait_for_most(job);
}
EXPORT_LONG(fetch_wait_for_most)
EXPORT int32_t fetch_wait(Fetcher *fetcher, FetchJob *job) {
  NativeTime time;
  return fetcher->wait(job);
}
EXPORT_LONG(fetch_wait)
// For a job that was waited for: from now on its fetcher may be destroyed before it.
EXPORT void fetch_done(PyObject *capsule, FetchDone *done) {
  auto *owned = static_cast<Owned *>(python.pointer(capsule, kFetch));
  owned->fetcher = nullptr;
  *done = owned->job->done;
}
EXPORT_SHORT(fetch_done)
// The first bad sample from `row` on; -1 if there is none. Requires that the job was waited for.
EXPORT int64_t fetch_next_bad(const FetchJob *job, int64_t row) { return job->next_bad(row); }
EXPORT_SHORT(fetch_next_bad)
// The reason why a sample is bad.
EXPORT const char *fetch_error(const FetchJob *job, int64_t row) { return job->error((int32_t)row); }
EXPORT_SHORT(fetch_error)
