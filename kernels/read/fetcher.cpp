// SPDX-License-Identifier: Apache-2.0
#include "read/fetcher.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <string>

#include "core/memory.h"
#include "core/native_time.h"

namespace {

// Neighbours are read in one call up to so many bytes: they are then still in the cache of who parses them.
constexpr int64_t kRunBytes = 256 << 10;
// Spans begin in memory as they do in the object, modulo this: what is aligned there is aligned here.
constexpr int64_t kAlign = 64;
// Small outputs share blocks of this.
constexpr int64_t kArenaBytes = 64 << 10, kLargeBytes = 8 << 10;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

struct Span {
  int64_t object, offset, length;
  int32_t sample;
};

// Spans that are read in one call: `count` of FetchJob::order_ from `first` on.
struct Run {
  int32_t first, count;
};

}  // namespace

class FetchJob {
 public:
  FetchJob(Fetch *fetch, Storage *storage) : f(*fetch), storage_(storage) {
    find_spans();
    join_neighbours();
    left_ = std::make_unique<std::atomic<int32_t>[]>(f.n);
    for (int64_t i = 0; i < f.n; i++) left_[i] = (int32_t)(begins_[i + 1] - begins_[i]);
    prepare_outputs();
    runs_left = (int)runs.size();
  }
  ~FetchJob() {
    for (void *block : blocks_) memory_give(block);
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

  // Gives how many bytes were read.
  int64_t read(const Run &run, Arena &arena, Scratch &scratch) {
    int64_t bytes = 0;
    const int32_t *spans = order_.empty() ? nullptr : &order_[run.first];
    auto span = [&](int k) { return spans ? spans[k] : run.first + k; };
    try {
      bytes = read_at_once(span, run.count);
    } catch (const std::exception &e) {
      for (int k = 0; k < run.count; k++) {
        auto alone = [&](int) { return span(k); };
        try {
          if (run.count == 1) throw;
          bytes += read_at_once(alone, 1);
        } catch (const std::exception &why) {
          reject(spans_[span(k)].sample, why.what());
        }
      }
    }
    for (int k = 0; k < run.count; k++) {
      const int32_t sample = spans_[span(k)].sample;
      if (left_[sample].fetch_sub(1, std::memory_order_acq_rel) == 1) parse(sample, arena, scratch);
    }
    return bytes;
  }

  Fetch &f;
  const uint64_t number = ++count();
  std::vector<Run> runs;
  // Of the fetcher, by its mutex:
  int next_run = 0, runs_left;
  int64_t held = 0;
  bool collected = false;
  std::condition_variable done;
  std::atomic<int> failed{0};

 private:
  static std::atomic<uint64_t> &count() {
    static std::atomic<uint64_t> jobs{0};
    return jobs;
  }
  void find_spans() {
    spans_.reserve(f.n * std::max<int64_t>(f.n_parts, 1));
    begins_.resize(f.n + 1);
    for (int64_t i = 0; i < f.n; i++) {
      const int64_t s = f.index[i];
      if (s < 0 || s >= f.n_samples) fail("[internal error] sample %lld of %lld", (long long)s, (long long)f.n_samples);
      const int64_t first = f.first ? f.first[s] : s * f.n_parts, last = f.first ? f.first[s + 1] : first + f.n_parts;
      for (int64_t k = first; k < last; k++)
        spans_.push_back(
            {f.object ? f.object[k] : k, f.offset ? f.offset[k] : 0, f.length ? f.length[k] : -1, (int32_t)i});
      begins_[i + 1] = (int64_t)spans_.size();
    }
    bytes_.assign(spans_.size(), Bytes{nullptr, 0});
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
                         first->offset >= 0 && s.offset - f.gap <= end && s.length <= kRunBytes &&
                         s.offset - first->offset <= kRunBytes - s.length;
      if (joins) {
        runs.back().count++;
        end = std::max(end, s.offset + s.length);
      } else {
        runs.push_back({k, 1});
        end = s.length >= 0 && s.offset >= 0 && s.offset <= INT64_MAX - s.length ? s.offset + s.length : 0;
      }
    }
  }

  void prepare_outputs() {
    for (int64_t k = 0; k < f.n_out; k++) {
      const FetchOutput &o = f.outputs[k];
      for (int64_t i = 0; i < f.n; i++) {
        Tensor &t = f.out[k * f.n + i];
        t.data = o.dense ? (char *)o.dense + i * o.bytes : nullptr;
        std::copy_n(o.shape, kMaxDims, t.shape);
        t.ndim = o.ndim, t.dtype = o.dtype;
      }
    }
    for (int64_t i = 0; i < f.n; i++)
      if (begins_[i] == begins_[i + 1]) without_spans_.push_back((int32_t)i);
  }

  const char *name(int64_t object, std::string &full) const {
    if (object >= f.n_objects) fail("[internal error] object %lld of %lld", (long long)object, (long long)f.n_objects);
    const char *name = f.text + f.begins[object];
    if (*name == '/' || !*f.root) return name;
    full.assign(f.root).append(name);
    return full.c_str();
  }

  std::shared_ptr<Object> open(const Span &span) {
    std::string full;
    const Storage::Way once = f.direct ? Storage::kDirect : Storage::kOnce;
    return storage_->open(name(span.object, full), span.length < 0 ? once : Storage::kKept);
  }

  template <class F>
  int64_t read_at_once(F span, int count) {
    const Span &first = spans_[span(0)];
    if (first.object < 0) return 0;
    const std::shared_ptr<Object> object = open(first);
    if (first.length == -1 && !first.offset) {
      const Content content = read_whole(*object, f.allow_empty);
      keep(content.data);
      bytes_[span(0)] = {content.data, content.size};
      return content.size;
    }
    const int64_t size = object->length();
    auto fits = [&](const Span &s) {
      return s.offset >= 0 && s.offset <= size && s.length >= -1 && s.length <= size - s.offset;
    };
    int64_t end = -1;
    for (int k = 0; k < count; k++) {
      const Span &s = spans_[span(k)];
      if (!fits(s))
        reject(s.sample,
               "the record has %lld bytes from byte %lld on, the file ends at %lld; it has changed, or its "
               "index is that of another file",
               (long long)s.length, (long long)s.offset, (long long)size);
      else
        end = std::max(end, s.length < 0 ? size : s.offset + s.length);
    }
    const int64_t begin = first.offset / kAlign * kAlign;
    if (end < 0) return 0;  // none of them fits
    char *data = (char *)block(end - begin);
    const int64_t there = begin + object->read(begin, end - begin, data);
    for (int k = 0; k < count; k++) {
      const Span &s = spans_[span(k)];
      if (!fits(s)) continue;
      const int64_t length = s.length < 0 ? size - s.offset : s.length;
      if (s.offset + length > there)
        reject(s.sample, "the file shrank from %lld to %lld bytes while it was read", (long long)size,
               (long long)there);
      else
        bytes_[span(k)] = {data + (s.offset - begin), length};
    }
    return there - begin;
  }

  void reject(int32_t sample, const char *format, ...) __attribute__((format(printf, 3, 4))) {
    if (__atomic_exchange_n(&f.status[sample], 1, __ATOMIC_RELAXED)) return;
    va_list list;
    va_start(list, format);
    vsnprintf(f.errors + (int64_t)sample * kErrorSize, kErrorSize, format, list);
    va_end(list);
    failed++;
  }

 public:
  struct Parsed : Sample {
    FetchJob &job;
    Arena &arena;
    const int32_t row;
    Parsed(FetchJob &j, int32_t i, Arena &a, Scratch &s)
        : Sample(j.f.index[i], &j.bytes_[0] + j.begins_[i], (int)(j.begins_[i + 1] - j.begins_[i]), j.f.out + i, j.f.n,
                 s),
          job(j),
          arena(a),
          row(i) {}
    void *take(int64_t bytes) override { return arena.take(bytes); }
    Object &object(int part) {
      const Span &s = job.spans_[job.begins_[row] + part];
      if (part < 0 || part >= n_parts || s.object < 0) fail("[internal error] there is no part %d", part);
      if (part != opened_) object_ = job.open({s.object, 0, 0, 0}), opened_ = part;
      return *object_;
    }
    int64_t object_length(int part) override { return object(part).length(); }
    void read(int part, int64_t offset, int64_t length, void *to) override {
      Object &o = object(part);
      const int64_t size = o.length();
      if (offset < 0 || length < 0 || offset > size || length > size - offset)
        fail("%lld bytes from byte %lld on are wanted, the file ends at %lld", (long long)length, (long long)offset,
             (long long)size);
      if (o.read(offset, length, (char *)to) < length) fail("the file was cut short while it was read");
    }

   private:
    int opened_ = -1;
    std::shared_ptr<Object> object_;
  };

  void parse(int32_t i, Arena &arena, Scratch &scratch) {
    if (!__atomic_load_n(&f.status[i], __ATOMIC_RELAXED)) {
      Parsed sample(*this, i, arena, scratch);
      if (f.parser) {
        char error[kErrorSize];
        if (((Parser)f.parser)(&sample, f.args, error)) reject(i, "%s", error);
      } else {
        for (int k = 0; k < std::min<int64_t>(f.n_out, sample.n_parts); k++)
          sample.give(k, sample.parts[k].data, sample.parts[k].size);
      }
    }
    if (__atomic_load_n(&f.status[i], __ATOMIC_RELAXED)) empty(i);
  }

  // Those that read nothing are parsed, too.
  void parse_rest(Arena &arena, Scratch &scratch) {
    for (int32_t i : without_spans_) parse(i, arena, scratch);
  }

 private:
  // Of a sample that could not be read nothing is given out.
  void empty(int32_t i) {
    for (int64_t k = 0; k < f.n_out; k++) {
      Tensor &t = f.out[k * f.n + i];
      if (f.outputs[k].dense) {
        memset((char *)f.outputs[k].dense + i * f.outputs[k].bytes, 0, f.outputs[k].bytes);
        continue;
      }
      t = Tensor{};
      t.ndim = f.outputs[k].ndim, t.dtype = f.outputs[k].dtype;
    }
  }
  void keep(void *block) {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back(block);
  }
  void *block(int64_t bytes) {
    void *block = memory_take(bytes);
    if (!block) fail("out of memory: %lld bytes are needed", (long long)bytes);
    keep(block);
    return block;
  }

  Storage *storage_;
  std::vector<Span> spans_;  // by sample
  std::vector<int64_t> begins_;
  std::vector<Bytes> bytes_;
  std::vector<int32_t> order_;                    // in which spans are read; empty: as they are
  std::unique_ptr<std::atomic<int32_t>[]> left_;  // spans of each sample that were not read yet
  std::vector<int32_t> without_spans_;
  std::mutex mutex_;
  std::vector<void *> blocks_;
};

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
