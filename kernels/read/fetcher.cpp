// SPDX-License-Identifier: Apache-2.0
#include "read/fetcher.h"

#include <ctime>

#include "core/native_time.h"
#include "read/fetch_job.h"

static int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

Fetcher::Fetcher(int n_threads, int64_t most_bytes) : most_bytes_(most_bytes) {
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

FetchJob *Fetcher::begin(Fetch *fetch) {
  auto job = std::make_unique<FetchJob>(fetch, storage_.get());
  FetchJob::Arena arena{job.get(), job->number};
  Scratch scratch;
  job->parse_rest(arena, scratch);
  fetch->begin_ns = fetch->end_ns = now_ns();
  fetch->bytes_read = 0, fetch->n_reads = (int64_t)job->runs.size();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    to_collect_.push_back(job.get());
    if (job->runs_left) to_begin_.push_back(job.get());
  }
  wake_.notify_one();
  return job.release();
}

int Fetcher::wait(FetchJob *job) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto goes_first = [job](std::deque<FetchJob *> &jobs) {
    auto place = std::find(jobs.begin(), jobs.end(), job);
    if (place != jobs.end()) std::rotate(jobs.begin(), place, place + 1);
  };
  goes_first(to_begin_);
  goes_first(to_collect_);
  wake_.notify_one();
  job->done.wait(lock, [&] { return !job->runs_left; });
  collect(job);
  return job->failed;
}

void Fetcher::cancel(FetchJob *job) {
  job->unwanted = true;
  std::unique_lock<std::mutex> lock(mutex_);
  auto place = std::find(to_begin_.begin(), to_begin_.end(), job);
  if (place != to_begin_.end()) {
    to_begin_.erase(place);
    job->runs_left -= (int)job->runs.size() - job->next_run;
  }
  job->done.wait(lock, [&] { return !job->runs_left; });
  collect(job);
}

void Fetcher::collect(FetchJob *job) {
  if (job->collected) return;
  job->collected = true;
  to_collect_.erase(std::find(to_collect_.begin(), to_collect_.end(), job));
  held_ -= job->held;
  wake_.notify_all();
}

void Fetcher::work() {
  Scratch scratch;
  FetchJob::Arena arena;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || may_go_on(); });
    if (stop_) return;
    FetchJob *job = to_begin_.front();
    const int run = job->next_run++;
    if (job->next_run == (int)job->runs.size()) to_begin_.pop_front();
    if (!run) job->f.begin_ns = now_ns();
    const bool more = may_go_on();
    lock.unlock();
    if (more) wake_.notify_one();
    if (arena.number != job->number) arena = {job, job->number};
    const int64_t bytes = job->read(job->runs[run], arena, scratch);
    lock.lock();
    job->held += bytes, held_ += bytes, job->f.bytes_read += bytes;
    if (!--job->runs_left) {
      job->f.end_ns = now_ns();
      job->done.notify_all();
    }
  }
}

EXPORT Fetcher *fetcher_create(int32_t n_threads, int64_t most_bytes) {
  try {
    return new Fetcher(n_threads, most_bytes);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_LONG(fetcher_create)
EXPORT void fetcher_destroy(Fetcher *fetcher) { delete fetcher; }
EXPORT_LONG(fetcher_destroy)
// Null: there is no memory.
EXPORT FetchJob *fetch_begin(Fetcher *fetcher, Fetch *fetch) {
  NativeTime time;
  try {
    return fetcher->begin(fetch);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_SHORT(fetch_begin)
EXPORT int32_t fetch_wait(Fetcher *fetcher, FetchJob *job) {
  NativeTime time;
  return fetcher->wait(job);
}
EXPORT_LONG(fetch_wait)
EXPORT void fetch_cancel(Fetcher *fetcher, FetchJob *job) { fetcher->cancel(job); }
EXPORT_LONG(fetch_cancel)
// Gives back the memory of a batch that was waited for.
EXPORT void fetch_end(FetchJob *job) {
  NativeTime time;
  delete job;
}
EXPORT_SHORT(fetch_end)
