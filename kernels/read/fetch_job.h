// SPDX-License-Identifier: Apache-2.0
// One batch being read: which bytes to read in which calls, and the samples parsed from them.
#pragma once
#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>

#include "core/memory.h"
#include "read/fetcher.h"
#include "read/remote.h"
#include "read/unread.h"

// The address of a span equals its offset in the object modulo this, so what is aligned there is aligned in memory.
constexpr int64_t kAlign = 64;
// Outputs of up to kLargeBytes share blocks of kArenaBytes.
constexpr int64_t kArenaBytes = 64 << 10, kLargeBytes = 8 << 10;

class FetchJob {
  struct Span {
    int64_t object, offset, length;
    int32_t sample;
  };

 public:
  // The spans read in one call: `count` from `first` on, in reading order.
  struct Run {
    int32_t first, count;
    int64_t bytes;  // -1 if unknown
  };

  FetchJob(const Fetch &fetch, const int64_t *index, int64_t n, Tensor *out, void *const *dense, Storage *from)
      : f(fetch), storage(from), index_(index), n_(n), out_(out), dense_(dense) {
    find_spans();
    join_neighbours();
    samples_ = std::make_unique<State[]>(n);
    for (int64_t i = 0; i < n; i++) samples_[i].left = (int32_t)(begins_[i + 1] - begins_[i]);
    prepare_outputs();
    runs_left = (int)runs.size();
    done.n_reads = runs_left;
    run_blocks_.resize(runs_left);
  }
  ~FetchJob() {
    for (const void *data : begun_) unread_remove(data);
    memory_give_blocks(run_blocks_.data(), (int64_t)run_blocks_.size());
    memory_give_blocks(blocks_.data(), (int64_t)blocks_.size());
  }

  // Allocates memory of the batch for one thread.
  struct Arena {
    FetchJob *job = nullptr;
    uint64_t number = 0;  // of the job, as the next job may have the same address
    char *next = nullptr, *end = nullptr;
    void *take(int64_t bytes) {
      bytes = bytes > 0 ? (bytes + kAlign - 1) / kAlign * kAlign : kAlign;
      if (bytes > kLargeBytes) return job->block(bytes);
      if (bytes > end - next) end = (next = (char *)job->block(kArenaBytes)) + kArenaBytes;
      next += bytes;
      return next - bytes;
    }
  };

  // Bytes that a run will read; -1 if unknown.
  int64_t bytes_of(int run) const { return runs[run].bytes; }

  // Tells the storage which objects in buckets the batch reads.
  void tell_names() {
    if (!storage->signs_urls()) return;
    std::vector<std::string> names;
    std::string full;
    int64_t before = -1;
    for (const Run &run : runs) {
      const int64_t object = spans_[order_.empty() ? run.first : order_[run.first]].object;
      if (object == before || object < 0 || object >= f.n_objects) continue;
      before = object;
      if (const char *const text = name(object, full); is_in_bucket(text)) names.emplace_back(text);
    }
    if (!names.empty()) storage->will_read(names);
  }

  // Requests what a run will read, if possible without waiting. Returns whether it was.
  bool ask_ahead(int number) {
    const Run &run = runs[number];
    const Span &first = spans_[order_.empty() ? run.first : order_[run.first]];
    if (first.object < 0 || first.offset < 0) return false;
    const bool is_whole = first.length == -1 && !first.offset;
    const int64_t begin = first.offset / kAlign * kAlign, bytes = run.bytes + first.offset - begin;
    try {
      std::string full;
      return (is_whole || run.bytes > 0) && storage->ask_ahead(name(first.object, full), begin, is_whole ? -1 : bytes);
    } catch (const std::exception &) {
      return false;
    }
  }

  // Reads a run and parses the samples it completes. Returns the number of bytes read.
  int64_t read(int number, Arena &arena, Scratch &scratch) {
    const Run &run = runs[number];
    int64_t bytes = 0;
    RemoteQueue::unwanted = &unwanted;
    const int32_t *spans = order_.empty() ? nullptr : &order_[run.first];
    auto span = [&](int k) { return spans ? spans[k] : run.first + k; };
    try {
      bytes = read_at_once(span, run.count, run_blocks_[number]);
    } catch (const std::exception &e) {
      if (run.count == 1) reject(spans_[span(0)].sample, "%s", e.what());
      for (int k = 0; run.count > 1 && k < run.count; k++) bytes += read_alone(span(k));
    }
    for (int k = 0; k < run.count; k++) {
      const int32_t sample = spans_[span(k)].sample;
      if (samples_[sample].left.fetch_sub(1, std::memory_order_acq_rel) == 1) bytes += parse(sample, arena, scratch);
    }
    return bytes;
  }

  // Once all is read: the first bad sample from `i` on, -1 if there is none; and the reason why a sample is bad.
  int64_t next_bad(int64_t i) const {
    while (i < n_ && !samples_[i].is_bad) i++;
    return i < n_ ? i : -1;
  }
  const char *error(int32_t sample) const {
    auto found = reasons_.find(sample);
    return found == reasons_.end() ? "out of memory" : found->second.c_str();
  }
  int failed() const { return failed_; }

  const Fetch f;
  Storage *const storage;
  const uint64_t number = ++count();
  std::vector<Run> runs;
  // Guarded by the fetcher's mutex:
  int next_run = 0, runs_left;
  FetchDone done{};
  bool collected = false;
  std::atomic<bool> unwanted{false};  // cancelled
  std::condition_variable progress;   // notified when a quarter of the runs is left, and when none is
  int last_quarter() const { return (int)runs.size() / 4; }

 private:
  static std::atomic<uint64_t> &count() {
    static std::atomic<uint64_t> jobs{0};
    return jobs;
  }
  void find_spans() {
    spans_.reserve(n_ * std::max<int64_t>(f.n_parts, 1));
    begins_.resize(n_ + 1);
    for (int64_t i = 0; i < n_; i++) {
      const int64_t s = index_[i];
      if (s < 0 || s >= f.n_samples) fail("[internal error] sample %lld of %lld", (long long)s, (long long)f.n_samples);
      const int64_t first = f.first ? f.first[s] : s * f.n_parts, last = f.first ? f.first[s + 1] : first + f.n_parts;
      for (int64_t k = first; k < last; k++)
        spans_.push_back(
            {f.object ? f.object[k] : k, f.offset ? f.offset[k] : 0, f.length ? f.length[k] : -1, (int32_t)i});
      begins_[i + 1] = (int64_t)spans_.size();
    }
    bytes_.assign(spans_.size(), Part{nullptr, 0});
  }

  // Whole objects are read one by one, in batch order.
  void join_neighbours() {
    const int n = (int)spans_.size();
    if (f.length) {
      order_.resize(n);
      for (int k = 0; k < n; k++) order_[k] = k;
      auto before = [&](int a, int b) {
        const Span &x = spans_[a], &y = spans_[b];
        return x.object != y.object ? x.object < y.object : x.offset < y.offset;
      };
      if (!std::is_sorted(order_.begin(), order_.end(), before)) std::stable_sort(order_.begin(), order_.end(), before);
    }
    int64_t end = 0;
    for (int k = 0; k < n; k++) {
      const Span &s = spans_[order_.empty() ? k : order_[k]];
      const Span *first =
          runs.empty() ? nullptr : &spans_[order_.empty() ? runs.back().first : order_[runs.back().first]];
      const bool joins = first && s.object == first->object && s.object >= 0 && s.length >= 0 && first->length >= 0 &&
                         first->offset >= 0 && s.offset - f.gap <= end && s.length <= f.run_bytes &&
                         s.offset - first->offset <= f.run_bytes - s.length;
      if (joins) {
        runs.back().count++;
        end = std::max(end, s.offset + s.length);
        runs.back().bytes = end - first->offset;
      } else {
        runs.push_back({k, 1, s.object < 0 ? 0 : f.parser && !s.length ? -1 : s.length});  // the parser reads it
        end = s.length >= 0 && s.offset >= 0 && s.offset <= INT64_MAX - s.length ? s.offset + s.length : 0;
      }
    }
  }

  void prepare_outputs() {
    for (int64_t k = 0; k < f.n_out; k++) {
      const FetchOutput &o = f.outputs[k];
      for (int64_t i = 0; i < n_; i++) {
        Tensor &t = out_[k * n_ + i];
        t.data = memory_of(k, i);
        std::copy_n(o.shape, kMaxDims, t.shape);
        t.ndim = o.ndim, t.dtype = o.dtype;
      }
    }
    for (int64_t i = 0; i < n_; i++)
      if (begins_[i] == begins_[i + 1]) without_spans_.push_back((int32_t)i);
  }
  // Preallocated memory of an output of fixed shape; null for others.
  char *memory_of(int64_t output, int64_t i) const {
    return dense_ && dense_[output] ? (char *)dense_[output] + i * f.outputs[output].bytes : nullptr;
  }

  const char *name(int64_t object, std::string &full) const {
    if (object >= f.n_objects) fail("[internal error] object %lld of %lld", (long long)object, (long long)f.n_objects);
    const char *name = f.text + f.begins[object];
    if (*name == '/' || !*f.root || is_url(name)) return name;
    full.assign(f.root).append(name);
    return full.c_str();
  }

  std::shared_ptr<Object> open(const Span &span) {
    std::string full;
    const Storage::Way once = f.direct ? Storage::kDirect : Storage::kOnce;
    return storage->open(name(span.object, full), span.length < 0 ? once : Storage::kKept);
  }

  // `block` receives the memory with the bytes, if any. Returns the number of bytes read.
  template <class F>
  int64_t read_at_once(F span, int count, void *&block) {
    const Span &first = spans_[span(0)];
    if (first.object < 0) return 0;
    const std::shared_ptr<Object> object = open(first);
    if (first.length == -1 && !first.offset) {
      const Content content = object->whole(f.allow_empty);
      block = content.data;
      bytes_[span(0)] = {content.data, content.size};
      return content.size;
    }
    int64_t size = object->length_at_first();
    auto fits = [&](const Span &s) {
      return s.offset >= 0 && s.offset <= size && s.length >= -1 && s.length <= size - s.offset;
    };
    for (int k = 0; k < count; k++)
      if (const Span &s = spans_[span(k)]; s.length < 0 || !fits(s)) {
        size = object->length();  // it may have changed
        break;
      }
    auto reject_beyond = [&](const Span &s) {
      reject(s.sample,
             "the record has %lld bytes from byte %lld on, the file ends at %lld; it has changed, or its "
             "index is that of another file",
             (long long)s.length, (long long)s.offset, (long long)size);
    };
    int64_t end = -1;
    for (int k = 0; k < count; k++) {
      const Span &s = spans_[span(k)];
      if (!fits(s))
        reject_beyond(s);
      else
        end = std::max(end, s.length < 0 ? size : s.offset + s.length);
    }
    const int64_t begin = first.offset / kAlign * kAlign;
    if (end < 0) return 0;  // no span fits
    char *data = (char *)take(end - begin);
    block = data;
    const int64_t there = begin + object->read(begin, end - begin, data), before = size;
    if (there < end) size = object->length();
    for (int k = 0; k < count; k++) {
      const Span &s = spans_[span(k)];
      if (!fits(s)) {
        reject_beyond(s);
        continue;
      }
      const int64_t length = s.length < 0 ? before - s.offset : s.length;
      if (s.offset + length > there)
        reject(s.sample, "the file shrank from %lld to %lld bytes while it was read", (long long)before,
               (long long)there);
      else
        bytes_[span(k)] = {data + (s.offset - begin), length};
    }
    return there - begin;
  }

  int64_t read_alone(int32_t span) {
    int64_t bytes = 0;
    void *block = nullptr;
    try {
      bytes = read_at_once([span](int) { return span; }, 1, block);
    } catch (const std::exception &e) {
      reject(spans_[span].sample, "%s", e.what());
    }
    keep(block);
    return bytes;
  }

  void reject(int32_t sample, const char *format, ...) __attribute__((format(printf, 3, 4))) {
    if (samples_[sample].is_bad.exchange(true, std::memory_order_relaxed)) return;
    char text[kErrorSize];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    failed_++;
    std::lock_guard<std::mutex> lock(mutex_);
    try {
      reasons_.emplace(sample, text);
    } catch (const std::bad_alloc &) {  // `error` then returns "out of memory"
    }
  }

 public:
  struct Parsed;  // and `parse`: see parsed_sample.h

  // Returns the number of bytes that the parser reads itself.
  int64_t parse(int32_t i, Arena &arena, Scratch &scratch);

  // Parses the samples without spans.
  void parse_rest(Arena &arena, Scratch &scratch) {
    for (int32_t i : without_spans_) parse(i, arena, scratch);
  }

 private:
  // Clears the outputs of a bad sample.
  void empty(int32_t i) {
    for (int64_t k = 0; k < f.n_out; k++) {
      if (char *memory = memory_of(k, i)) {
        memset(memory, 0, f.outputs[k].bytes);
        continue;
      }
      Tensor &t = out_[k * n_ + i];
      t = Tensor{};
      t.ndim = f.outputs[k].ndim, t.dtype = f.outputs[k].dtype;
    }
  }
  void keep(void *block) {
    if (!block) return;
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back(block);
  }
  static void *take(int64_t bytes) {
    void *block = memory_take(bytes);
    if (!block) fail("out of memory: %lld bytes are needed", (long long)bytes);
    return block;
  }
  void *block(int64_t bytes) {
    void *block = take(bytes);
    keep(block);
    return block;
  }

  struct State {
    std::atomic<int32_t> left;  // spans still to be read
    std::atomic<bool> is_bad{false};
  };
  const int64_t *const index_;
  const int64_t n_;
  Tensor *const out_;
  void *const *const dense_;
  std::vector<Span> spans_;  // by sample
  std::vector<int64_t> begins_;
  std::vector<Part> bytes_;
  std::vector<int32_t> order_;  // in which spans are read; empty if in the order of spans_
  std::unique_ptr<State[]> samples_;
  std::vector<int32_t> without_spans_;
  std::vector<void *> run_blocks_;  // memory that each run read into
  std::atomic<int> failed_{0};
  std::mutex mutex_;
  std::vector<void *> blocks_;                        // guarded by mutex_: all other memory
  std::vector<const void *> begun_;                   // guarded by mutex_: see unread.h
  std::unordered_map<int32_t, std::string> reasons_;  // guarded by mutex_
};
