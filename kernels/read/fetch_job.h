// SPDX-License-Identifier: Apache-2.0
// One batch of a reader on its way: which bytes to read, in which calls, and the samples that they become.
#pragma once
#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>

#include "core/memory.h"
#include "read/fetcher.h"
#include "read/remote.h"
#include "read/unread.h"

// Spans begin in memory as they do in the object, modulo this: what is aligned there is aligned here.
constexpr int64_t kAlign = 64;
// Small outputs share blocks of this.
constexpr int64_t kArenaBytes = 64 << 10, kLargeBytes = 8 << 10;

class FetchJob {
  struct Span {
    int64_t object, offset, length;
    int32_t sample;
  };

 public:
  // Spans that are read in one call: `count` from `first` on, in the order of reading.
  struct Run {
    int32_t first, count;
    int64_t bytes;  // -1: nobody knows
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

  // Memory of the batch, for one thread.
  struct Arena {
    FetchJob *job = nullptr;
    uint64_t number = 0;  // of the job, as the next one may lie at the same place
    char *next = nullptr, *end = nullptr;
    void *take(int64_t bytes) {
      bytes = bytes > 0 ? (bytes + kAlign - 1) / kAlign * kAlign : kAlign;
      if (bytes > kLargeBytes) return job->block(bytes);
      if (bytes > end - next) end = (next = (char *)job->block(kArenaBytes)) + kArenaBytes;
      next += bytes;
      return next - bytes;
    }
  };

  // That a run reads; -1 if that is not known before.
  int64_t bytes_of(int run) const { return runs[run].bytes; }

  // Asks for what a run will read soon; says whether that was possible.
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

  // Gives how many bytes were read.
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

  // When all is read: the first bad sample from `i` on, -1 if there is none; and why one is bad.
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
  // Of the fetcher, by its mutex:
  int next_run = 0, runs_left;
  FetchDone done{};
  bool collected = false;
  std::atomic<bool> unwanted{false};  // nobody waits for it any more
  std::condition_variable progress;   // the last quarter is left, or nothing
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

  // Whole objects are read one by one, in the order of the batch.
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
  // Of an output whose shape is fixed; null for others.
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

  // The bytes are in `block` then, if there are any.
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
    if (end < 0) return 0;  // none of them fits
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
    } catch (const std::bad_alloc &) {  // which `error` says then
    }
  }

 public:
  struct Parsed;  // and `parse`: see parsed_sample.h

  // Gives how many bytes the parser has read.
  int64_t parse(int32_t i, Arena &arena, Scratch &scratch);

  // Those that read nothing are parsed, too.
  void parse_rest(Arena &arena, Scratch &scratch) {
    for (int32_t i : without_spans_) parse(i, arena, scratch);
  }

 private:
  // Of a sample that could not be read nothing is given out.
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
    std::atomic<int32_t> left;  // spans that were not read yet
    std::atomic<bool> is_bad{false};
  };
  const int64_t *const index_;
  const int64_t n_;
  Tensor *const out_;
  void *const *const dense_;
  std::vector<Span> spans_;  // by sample
  std::vector<int64_t> begins_;
  std::vector<Part> bytes_;
  std::vector<int32_t> order_;  // in which spans are read; empty: as they are
  std::unique_ptr<State[]> samples_;
  std::vector<int32_t> without_spans_;
  std::vector<void *> run_blocks_;  // what each run has read
  std::atomic<int> failed_{0};
  std::mutex mutex_;
  std::vector<void *> blocks_;                        // by the mutex: all others
  std::vector<const void *> begun_;                   // the same: what was not read to its end
  std::unordered_map<int32_t, std::string> reasons_;  // the same
};
