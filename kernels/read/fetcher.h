// SPDX-License-Identifier: Apache-2.0
// Reads the samples of batches ahead, in threads of its own: looks up their spans in the reader's table, reads
// neighbours in one call, and has each sample parsed by the thread that has read the last of its bytes.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "read/parser.h"
#include "read/storage.h"

// What is known of an output before there is a sample.
struct FetchOutput {
  int32_t dtype;
  int32_t ndim;
  int64_t shape[kMaxDims];
  int64_t bytes;  // of a sample if the shape is fixed
};

// A reader as Python describes it, once for all of its batches.
struct Fetch {
  // The names of objects, null-terminated: those that do not begin with '/' are behind `root`.
  const char *root, *text;
  const int64_t *begins;
  int64_t n_objects;
  // The reader's table. Sample i has the spans first[i] to first[i + 1], or if that is null `n_parts` from i * n_parts
  // on. Null columns: object i, from 0, to the end. An object of -1 is a part that is missing, a length of -1 goes to
  // the end.
  const int64_t *first, *object, *offset, *length;
  int64_t n_parts, n_samples;
  int64_t gap;                // between spans that are read in one call, at most
  int64_t run_bytes;          // that are read in one call with several spans, at most
  const void *parser, *args;  // null: each part is an output
  const FetchOutput *outputs;
  int64_t n_out;
  int32_t direct;       // past the system's cache, whole objects only
  int32_t allow_empty;  // an object that is read whole may be empty
};

// What there is to say of a batch that was read.
struct FetchDone {
  int64_t begin_ns, end_ns;  // when it began and ended, of the monotonic clock
  int64_t bytes_read, n_reads;
  int64_t most_held;  // the most bytes that the fetcher has read ahead until then
};

class FetchJob;
class RemoteStorage;

class Fetcher {
 public:
  // Reads no more ahead when `most_bytes` are held: that were read, or are being read, and nobody has waited for yet.
  // But always for the batch that is waited for, or else the oldest. `waits`: it reads what other machines send, and
  // its threads interrupt no other that computes.
  Fetcher(int n_threads, int64_t most_bytes, bool waits);
  ~Fetcher();
  // Begins to read the n samples at `index`, whose outputs are described in `out` (n_out, n). `dense` (n_out) is memory
  // for those of fixed shapes, null for others, and may be null itself. `remote` is where
  // names are URLs, else null. All of this has to stay until the batch has ended.
  FetchJob *begin(const Fetch &fetch, const int64_t *index, int64_t n, Tensor *out, void *const *dense,
                  RemoteStorage *remote);
  void wait_for_most(FetchJob *job);  // until it is time to begin the next batch, so that no thread runs out of work
  int wait(FetchJob *job);            // how many samples could not be read
  void cancel(FetchJob *job);         // one that nobody has waited for: drops what has not begun, waits for what has

 private:
  void work();
  bool may_go_on() const;
  void learn(int64_t run_ns);
  void hold(int64_t bytes);
  void watch(std::unique_lock<std::mutex> &lock);
  void goes_first(FetchJob *job);
  void collect(FetchJob *job);
  std::unique_ptr<Storage> storage_ = local_files();
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<FetchJob *> to_begin_;    // with something that no thread has begun, the oldest first
  std::deque<FetchJob *> to_collect_;  // that nobody has waited for, the oldest first
  const int64_t most_bytes_;
  int64_t held_ = 0, most_held_ = 0;  // bytes of those, and the most that there were
  int64_t whole_bytes_;               // of objects that are read whole, on average
  // As many threads read at once as their waiting is worth: many where answers take long, few where they are here soon,
  // as threads that fight for the processors only cost time.
  const int n_threads_;
  const bool waits_;
  const int processors_;
  int most_busy_, busy_ = 0;
  int64_t run_ns_;        // how long a run takes, on average
  int64_t finished_ = 0;  // runs
  bool watched_ = false;  // a thread looks whether those that read get on
  bool stop_ = false;
};
