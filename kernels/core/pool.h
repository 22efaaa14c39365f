// SPDX-License-Identifier: Apache-2.0
// Persistent threads that take the samples of submitted chains, oldest chain first.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/kernel.h"

// Where a step finds one of its tensors. buffer < 0: rows[i].data is batch memory; otherwise the data lies in the
// thread's own buffer of that number while the sample is processed.
struct Slot {
  Tensor *rows;
  int32_t buffer;
  int32_t in_place;  // of a first input: the step also works with its output in the same memory
};

constexpr int kMaxTensors = 8;

struct Step {
  Kernel kernel;
  const char *args;
  int64_t args_stride;
  int32_t n_out, n_in;
  Slot tensors[kMaxTensors];  // outputs, then inputs
};

// When a step of a sample ran, in nanoseconds of the monotonic clock; 0, 0 if it did not.
struct Span {
  int64_t begin, end;
};

struct Chain {
  const Step *steps;
  int32_t n_steps, n_rows;
  const int32_t *sample_of;  // the sample a row (a frame, say) belongs to; null: row i is sample i
  int32_t *status;           // per sample: 0, or 1 + `first_step` + the number of the step that failed
  char *errors;              // per sample kErrorSize bytes of reason
  Span *spans;               // n_rows x n_steps
  int32_t *threads;          // per row: the thread that took it
  int64_t *step_ns;          // per step: the sum of its spans
  int32_t first_step;
  int32_t chunk;  // rows taken at a time; 0: several if they are small; -1: the same, and the caller takes some itself
};

struct ThreadMemory;

class Pool {
 public:
  explicit Pool(int n_threads);
  ~Pool();
  // Blocks until every row is done, the most expensive ones first; returns how many samples failed. Any number of
  // threads may call it at once.
  int run(const Chain &chain);
  int size() const { return (int)threads_.size(); }

 private:
  struct Job {
    const Chain *chain;
    const int n_rows;  // a copy: after its last row the chain belongs to its caller again
    int chunk;
    std::vector<int32_t> order;     // empty if in sequence
    std::vector<uint8_t> is_large;  // per step: whether its outputs in the batch exceed the caches
    std::atomic<int> next{0};
    std::atomic<int> left, failed{0};
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false, is_small = false, joined = false;  // joined: by the caller of run
    Job(const Chain *c, int n_threads);
  };
  void work(int thread);
  void drop(const std::shared_ptr<Job> &job);
  void end();
  static bool take_rows(Job &job, int thread, ThreadMemory &memory, int64_t end_ns);
  std::vector<std::thread> threads_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
};
