// SPDX-License-Identifier: Apache-2.0
#include "core/pool.h"

#include <algorithm>
#include <ctime>

#include "core/native_time.h"
#include "core/stream.h"

namespace {

// What a thread may keep per buffer after an exceptionally large sample.
constexpr int64_t kKeepBytes = 32 << 20;
// Rows smaller than this on average are handed out several at a time.
constexpr int64_t kSmallBytes = 16 << 10;
// The caller begins a chain smaller than this itself, as it may be done before another thread wakes up. If it isn't
// done after kPatience, all other threads but one, which the caller stands in for, join in.
constexpr int64_t kOwnBytes = 2 << 20;
constexpr int64_t kPatience = 50'000;  // ns
constexpr int64_t kSpin = 20'000;      // ns that it then spins for their last rows before it sleeps
// Waking all threads would keep the caller busy for long: it wakes this many, and each of them wakes as many.
constexpr int kWoken = 2;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Pauses a thread that waits by spinning.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct ThreadMemory {
  std::vector<std::unique_ptr<Scratch>> buffers;
  Scratch scratch;
  void *buffer(int number, int64_t bytes) {
    while ((int)buffers.size() <= number) buffers.push_back(std::make_unique<Scratch>());
    return buffers[number]->get(bytes > 0 ? bytes : 1);
  }
  void trim() {
    for (auto &b : buffers) b->trim(kKeepBytes);
    scratch.trim(kKeepBytes);
  }
};

namespace {

// Outputs of a step that are larger in total leave all caches before they are read.
constexpr int64_t kLargeBytes = 16 << 20;

// The bytes a step writes to batch memory.
int64_t bytes_out(const Chain &c, const Step &step) {
  int64_t bytes = 0;
  for (int t = 0; t < step.n_out; t++) {
    const Slot &s = step.tensors[t];
    for (int row = 0; row < (s.buffer < 0 ? c.n_rows : 0); row++)
      bytes += s.rows[row].volume() * item_size(s.rows[row].dtype);
  }
  return bytes;
}

// The approximate cost of a row: the bytes into and out of the chain.
int64_t cost_of(const Chain &c, int row) {
  int64_t bytes = 0;
  auto add = [&](const Slot &s) { bytes += s.rows[row].volume() * item_size(s.rows[row].dtype); };
  const Step &first = c.steps[0], &last = c.steps[c.n_steps - 1];
  for (int i = 0; i < first.n_in; i++) add(first.tensors[first.n_out + i]);
  for (int i = 0; i < last.n_out; i++) add(last.tensors[i]);
  return bytes;
}

// Where step s - 1 puts its result if s works in place on it and both are alike: the place of the output of s in the
// batch, so that s has nothing to copy. Null if they don't share memory.
void *shared_place(const Chain &c, int s, int row) {
  if (s < 1 || s >= c.n_steps) return nullptr;
  const Step &step = c.steps[s], &before = c.steps[s - 1];
  if (step.n_out != 1 || !step.n_in) return nullptr;
  const Slot &out = step.tensors[0], &in = step.tensors[1];
  if (!in.in_place || in.buffer < 0 || out.buffer >= 0) return nullptr;
  bool is_made = false;
  for (int t = 0; t < before.n_out; t++) is_made |= before.tensors[t].rows == in.rows;
  const Tensor &a = out.rows[row], &b = in.rows[row];
  if (!is_made || a.dtype != b.dtype || a.ndim != b.ndim) return nullptr;
  return std::equal(a.shape, a.shape + a.ndim, b.shape) ? a.data : nullptr;
}

// Takes one row through all steps, or up to the first that fails; returns whether this is its sample's first failure.
// `now` is the start time, then the end time: the clock is read once a step.
bool run_row(const Chain &c, const uint8_t *is_large, int row, int thread, ThreadMemory &memory, int64_t &now) {
  int sample = c.sample_of ? c.sample_of[row] : row;
  if (c.threads) c.threads[row] = thread;
  if (c.spans) std::fill_n(c.spans + (int64_t)row * c.n_steps, c.n_steps, Span{0, 0});
  if (__atomic_load_n(&c.status[sample], __ATOMIC_RELAXED)) return false;
  Tensor tensors[kMaxTensors];
  char error[kErrorSize];
  for (int s = 0; s < c.n_steps; s++) {
    const Step &step = c.steps[s];
    Span *span = c.spans ? c.spans + (int64_t)row * c.n_steps + s : nullptr;
    if (span) span->begin = now;
    int failed = 0;
    try {
      for (int t = 0; t < step.n_out + step.n_in; t++) {
        const Slot &slot = step.tensors[t];
        tensors[t] = slot.rows[row];
        if (slot.buffer < 0) continue;
        const bool is_next = t < step.n_out && s + 1 < c.n_steps && c.steps[s + 1].tensors[1].rows == slot.rows;
        tensors[t].data = is_next ? shared_place(c, s + 1, row) : t == step.n_out ? shared_place(c, s, row) : nullptr;
        if (!tensors[t].data)
          tensors[t].data = memory.buffer(slot.buffer, tensors[t].volume() * item_size(tensors[t].dtype));
      }
      memory.scratch.is_output_large = is_large[s];
      failed = step.kernel(tensors, tensors + step.n_out, step.args + row * step.args_stride, &memory.scratch, error);
      for (int t = 0; t < (failed ? 0 : step.n_out); t++) {  // a batch output may have been shortened
        const Slot &slot = step.tensors[t];
        if (slot.buffer < 0 && slot.rows[row].shape[0] != tensors[t].shape[0])
          slot.rows[row].shape[0] = tensors[t].shape[0];
      }
    } catch (const std::exception &e) {
      snprintf(error, kErrorSize, "out of memory (%s)", e.what());
      failed = 1;
    }
    if (is_large[s]) end_of_stream();
    if (span) span->end = now = now_ns();
    if (failed) {
      int32_t none = 0;
      if (!__atomic_compare_exchange_n(&c.status[sample], &none, 1 + c.first_step + s, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED))
        return false;
      snprintf(c.errors + (int64_t)sample * kErrorSize, kErrorSize, "%s", error);
      return true;
    }
  }
  return false;
}

}  // namespace

Pool::Job::Job(const Chain *c, int n_threads) : chain(c), n_rows(c->n_rows), chunk(c->chunk), left(c->n_rows) {
  std::vector<int64_t> cost(n_rows);
  int64_t total = 0, most = 0, least = INT64_MAX;
  for (int i = 0; i < n_rows; i++) {
    total += cost[i] = cost_of(*c, i);
    most = std::max(most, cost[i]);
    least = std::min(least, cost[i]);
  }
  is_small = total < kOwnBytes;
  if (chunk <= 0) chunk = !is_small && total < kSmallBytes * n_rows ? std::max(1, n_rows / (8 * n_threads)) : 1;
  for (int s = 0; s < c->n_steps; s++) is_large.push_back(bytes_out(*c, c->steps[s]) > kLargeBytes);
  if (most == least) return;
  order.resize(n_rows);
  for (int i = 0; i < n_rows; i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost[a] > cost[b]; });
}

Pool::Pool(int n_threads) {
  try {
    for (int t = 0; t < n_threads; t++) threads_.emplace_back([this, t] { work(t); });
  } catch (...) {
    end();  // stops the threads already started; the members' destructors would wait for them
    throw;
  }
}

Pool::~Pool() { end(); }

void Pool::end() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto &t : threads_) t.join();
}

int Pool::run(const Chain &chain) {
  if (chain.n_rows == 0) return 0;
  auto job = std::make_shared<Job>(&chain, size());
  thread_local ThreadMemory memory;
  // The size of files is unknown until they are read: the caller would return with cold caches.
  const bool joins = job->joined = chain.chunk <= 0 && (job->is_small || chain.chunk < 0);
  if (!job->is_small || !take_rows(*job, size(), memory, now_ns() + kPatience)) {
    if (!joins || size() > 1) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        jobs_.push_back(job);
      }
      for (int t = 0; t < (joins ? size() - 1 : kWoken); t++) wake_.notify_one();
    }
    if (joins) {
      take_rows(*job, size(), memory, 0);
      drop(job);
      for (int64_t end = now_ns() + kSpin; job->left.load() && now_ns() < end;) pause();
    }
    if (job->left.load()) {
      std::unique_lock<std::mutex> lock(job->mutex);
      job->finished.wait(lock, [&] { return job->done; });
    }
  }
  if (!chain.spans || !chain.step_ns) return job->failed;
  for (int s = 0; s < chain.n_steps; s++) chain.step_ns[s] = 0;
  for (int64_t i = 0; i < (int64_t)chain.n_rows * chain.n_steps; i++)
    chain.step_ns[i % chain.n_steps] += chain.spans[i].end - chain.spans[i].begin;
  return job->failed;
}

// Takes rows until none is left to start (returns true) or the time is over (returns false).
bool Pool::take_rows(Job &job, int thread, ThreadMemory &memory, int64_t end_ns) {
  const Chain &c = *job.chain;  // alive while this thread has rows of it that are not done
  for (int64_t now = now_ns();;) {
    int first = job.next.fetch_add(job.chunk);
    if (first >= job.n_rows) break;
    int last = first + job.chunk < job.n_rows ? first + job.chunk : job.n_rows;
    const bool has_clock = c.spans;
    for (int i = first; i < last; i++)
      if (run_row(c, job.is_large.data(), job.order.empty() ? i : job.order[i], thread, memory, now)) job.failed++;
    if (job.left.fetch_sub(last - first) == last - first) {
      std::lock_guard<std::mutex> lock(job.mutex);
      job.done = true;
      job.finished.notify_all();
    }
    if (end_ns && last < job.n_rows && (has_clock ? now : now_ns()) > end_ns) return false;
  }
  memory.trim();
  return true;
}

void Pool::work(int thread) {
  ThreadMemory memory;
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = jobs_.front();
    }
    for (int t = 0; t < kWoken && !job->joined && job->next.load() < job->n_rows; t++) wake_.notify_one();
    take_rows(*job, thread, memory, 0);
    drop(job);
  }
}

// Removes a job whose rows are all taken: no further thread needs to look at it.
void Pool::drop(const std::shared_ptr<Job> &job) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto place = std::find(jobs_.begin(), jobs_.end(), job);
  if (place != jobs_.end()) jobs_.erase(place);
}

EXPORT Pool *pool_create(int n_threads) {
  try {
    return new Pool(n_threads);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_LONG(pool_create)
EXPORT void pool_destroy(Pool *pool) { delete pool; }
EXPORT_LONG(pool_destroy)
EXPORT int32_t pool_run(Pool *pool, const Chain *chain) {
  NativeTime time;
  return pool->run(*chain);
}
EXPORT_LONG(pool_run)
