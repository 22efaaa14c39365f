// SPDX-License-Identifier: Apache-2.0
#include "core/pool.h"

#include <ctime>

namespace {

// What one extraordinary sample may leave behind in a thread, per buffer.
constexpr int64_t kKeepBytes = 32 << 20;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

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

// Takes one row through all steps, or up to the first that fails.
void run_row(const Chain &c, int row, int thread, ThreadMemory &memory) {
  int sample = c.sample_of ? c.sample_of[row] : row;
  if (c.threads) c.threads[row] = thread;
  if (__atomic_load_n(&c.status[sample], __ATOMIC_RELAXED)) return;
  Tensor tensors[kMaxTensors];
  char error[kErrorSize];
  for (int s = 0; s < c.n_steps; s++) {
    const Step &step = c.steps[s];
    Span *span = c.spans ? c.spans + (int64_t)row * c.n_steps + s : nullptr;
    if (span) span->begin = now_ns();
    int failed = 0;
    try {
      for (int t = 0; t < step.n_out + step.n_in; t++) {
        const Slot &slot = step.tensors[t];
        tensors[t] = slot.rows[row];
        if (slot.buffer >= 0)
          tensors[t].data = memory.buffer(slot.buffer, tensors[t].volume() * item_size(tensors[t].dtype));
      }
      failed = step.kernel(tensors, tensors + step.n_out, step.args + row * step.args_stride, &memory.scratch, error);
    } catch (const std::exception &e) {
      snprintf(error, kErrorSize, "out of memory (%s)", e.what());
      failed = 1;
    }
    if (span) span->end = now_ns();
    if (failed) {
      int32_t none = 0;
      if (__atomic_compare_exchange_n(&c.status[sample], &none, 1 + c.first_step + s, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
        snprintf(c.errors + (int64_t)sample * kErrorSize, kErrorSize, "%s", error);
      return;
    }
  }
}

}  // namespace

Pool::Pool(int n_threads) {
  for (int t = 0; t < n_threads; t++) threads_.emplace_back([this, t] { work(t); });
}

Pool::~Pool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto &t : threads_) t.join();
}

void Pool::run(const Chain &chain) {
  if (chain.n_rows == 0) return;
  auto job = std::make_shared<Job>(&chain);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(job);
  }
  wake_.notify_all();
  std::unique_lock<std::mutex> lock(job->mutex);
  job->finished.wait(lock, [&] { return job->done; });
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
    const Chain &c = *job->chain;  // alive while this thread has rows of it that are not done
    for (;;) {
      int first = job->next.fetch_add(job->chunk);
      if (first >= job->n_rows) break;
      int last = first + job->chunk < job->n_rows ? first + job->chunk : job->n_rows;
      for (int i = first; i < last; i++) run_row(c, c.order ? c.order[i] : i, thread, memory);
      if (job->left.fetch_sub(last - first) == last - first) {
        std::lock_guard<std::mutex> lock(job->mutex);
        job->done = true;
        job->finished.notify_all();
      }
    }
    memory.trim();
    std::lock_guard<std::mutex> lock(mutex_);
    if (!jobs_.empty() && jobs_.front() == job) jobs_.pop_front();
  }
}

EXPORT Pool *pool_create(int n_threads) {
  try {
    return new Pool(n_threads);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT void pool_destroy(Pool *pool) { delete pool; }
EXPORT void pool_run(Pool *pool, const Chain *chain) { pool->run(*chain); }
