// SPDX-License-Identifier: Apache-2.0
// Reads the samples of batches ahead in its own threads: looks up their spans in the reader's table, reads neighbouring
// spans in one call, and parses each sample in the thread that reads the last of its bytes.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "read/parser.h"
#include "read/storage.h"

// The properties of an output that are known before any sample is read.
struct FetchOutput {
  int32_t dtype;
  int32_t ndim;
  int64_t shape[kMaxDims];
  int64_t bytes;  // per sample, if the shape is fixed
};

// Python's description of a reader, for all of its batches.
struct Fetch {
  // The null-terminated names of objects. `root` is prepended to names that neither begin with '/' nor are URLs.
  const char *root, *text;
  const int64_t *begins;
  int64_t n_objects;
  // The reader's table. Sample i has the spans first[i] to first[i + 1], or i * n_parts to (i + 1) * n_parts if `first`
  // is null. If a column is null, span k is object k, begins at 0, or has length -1. An object of -1 is a missing part,
  // a length of -1 means to the end of the object.
  const int64_t *first, *object, *offset, *length;
  int64_t n_parts, n_samples;
  int64_t gap;                // maximum distance in bytes between spans read in one call
  int64_t run_bytes;          // maximum bytes per call that reads several spans
  const void *parser, *args;  // parser null: each part is an output
  const FetchOutput *outputs;
  int64_t n_out;
  int32_t direct;       // read whole objects bypassing the page cache
  int32_t allow_empty;  // an object that is read whole may be empty
};

// Statistics of a batch.
struct FetchDone {
  int64_t begin_ns, end_ns;  // monotonic clock
  int64_t bytes_read, n_reads;
  int64_t most_held;  // maximum of Fetcher::held_ so far
};

class FetchJob;
class RemoteStorage;

class Fetcher {
 public:
  // Stops reading ahead when `most_bytes` bytes have been or are being read for batches that are not yet collected by
  // `wait`. The batch that the caller waits for, or else the oldest, is read regardless. `waits`: the fetcher reads
  // remote objects; its threads then don't preempt threads that compute.
  Fetcher(int n_threads, int64_t most_bytes, bool waits);
  ~Fetcher();
  // Begins to read the n samples at `index` and to fill in their outputs `out`, shape (n_out, n). `dense`, shape
  // (n_out,), has memory for each output of fixed shape and null for others; it may itself be null. `remote` is null
  // if no name is a URL. All arguments must live until the batch has ended.
  FetchJob *begin(const Fetch &fetch, const int64_t *index, int64_t n, Tensor *out, void *const *dense,
                  RemoteStorage *remote);
  void wait_for_most(FetchJob *job);  // until the next batch should begin, so that no thread runs out of work
  int wait(FetchJob *job);            // returns the number of samples that could not be read
  void cancel(FetchJob *job);         // instead of `wait`: drops runs that have not begun, waits for the others

 private:
  void work();
  bool may_go_on() const;
  bool are_short() const;
  int most_at_once(const FetchJob &job) const;
  void learn(int64_t run_ns);
  void hold(int64_t bytes);
  void watch(std::unique_lock<std::mutex> &lock);
  void goes_first(FetchJob *job);
  void collect(FetchJob *job);
  std::unique_ptr<Storage> storage_ = local_files();
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<FetchJob *> to_begin_;    // jobs with runs that have not begun, oldest first
  std::deque<FetchJob *> to_collect_;  // jobs neither waited for nor cancelled, oldest first
  const int64_t most_bytes_;
  int64_t held_ = 0, most_held_ = 0;  // bytes read or being read for them, and its maximum
  int64_t whole_bytes_;               // average size of objects of unknown size
  // At most most_busy_ runs are read at once, busy_ are: many if reads take long, few if they are quick, as threads
  // that compete for the processors only cost time.
  const int n_threads_;
  const bool waits_;
  const int processors_;
  int most_busy_, busy_ = 0;
  int64_t run_ns_;        // average duration of a run
  int64_t finished_ = 0;  // runs
  bool watched_ = false;  // a thread checks whether runs finish
  bool stop_ = false;
};
