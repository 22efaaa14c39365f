// SPDX-License-Identifier: Apache-2.0
#include "video/elementary.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "video/pictures.h"

namespace {

constexpr int64_t kClock = 90000, kWrap = 1ll << 33;  // of timestamps in transport and program streams
constexpr int64_t kMaxStepBack = kClock / 2;          // a larger step back starts another recording
constexpr int64_t kUsualRate = 25;                    // frames per second if the stream doesn't tell, as in FFmpeg

// The difference of two times modulo 2^33.
int64_t difference(int64_t a, int64_t b) { return (((a - b) % kWrap + kWrap + kWrap / 2) % kWrap) - kWrap / 2; }

struct Read {
  Packet packet{};
  Wrapped wrapped{};
  StreamPicture about;
  bool has_time = false;
};

class Reading {
 public:
  Reading(StreamParser &parser, bool is_wrapped) : parser_(parser), is_wrapped_(is_wrapped) {}

  void add(const Chunk &c) {
    if (!c.bytes.size) return;
    places_.push_back({at_, c.begin, c.end});
    if (c.has_time) times_.push_back({at_, c.pts, c.dts});
    for (int64_t i = 0; i < c.bytes.size;) {
      int64_t end = i;
      uint32_t last = last_;
      bool is_start = false;
      while (end < c.bytes.size && !is_start) {
        last = last << 8 | c.bytes.data[end++];
        is_start = (last & 0xffffff) == 1;
      }
      last_ = last;
      if (unit_ >= 0 && (int64_t)head_.size() < kUnitHead)
        head_.insert(head_.end(), c.bytes.data + i,
                     c.bytes.data + i + std::min(end - i, kUnitHead - (int64_t)head_.size()));
      i = end;
      if (!is_start) continue;
      end_unit();
      unit_ = at_ + end - 3, last_ = 0xffffff;
      head_.clear();
    }
    at_ += c.bytes.size;
    while (places_.size() > 1 && places_[1].at <= std::max<int64_t>(0, kept_from())) places_.pop_front();
  }

  std::vector<Read> finish() {
    end_unit();
    end_picture(at_);
    return std::move(pictures_);
  }
  std::vector<uint8_t> configuration;

 private:
  struct Place {
    int64_t at, begin, end;  // in the stream, and in the file
  };
  struct Time {
    int64_t at, pts, dts;
  };

  // The position in the stream before which nothing is needed any more.
  int64_t kept_from() const { return picture_ >= 0 ? picture_ : unit_ >= 0 ? unit_ : at_; }

  void end_unit() {
    if (unit_ < 0) return;
    const Bytes head{head_.data(), (int64_t)head_.size()};
    const UnitRole role = parser_.unit(head);
    if (role == BEFORE || role == FIRST) {
      if (has_slices_) end_picture(unit_);
      if (picture_ < 0) picture_ = unit_;
    }
    if (role == FIRST) has_slices_ = true, about_ = parser_.picture;
    // The head includes the start code that ends a unit; truncated units don't configure the decoder.
    if (pictures_.empty() && !has_slices_ && parser_.configures(head) && head.size > 3 && head.size < kUnitHead) {
      const uint8_t code[] = {0, 0, 1};
      configuration.insert(configuration.end(), code, code + 3);
      configuration.insert(configuration.end(), head.data, head.data + head.size - 3);
    }
  }

  void end_picture(int64_t end) {
    const int64_t begin = picture_;
    picture_ = -1;
    if (!has_slices_ || begin < 0) return;
    has_slices_ = false;
    if (about_.is_lost) return;
    Read r;
    r.about = about_;
    const auto behind = [](int64_t at, const Place &p) { return at < p.at; };
    const auto first = std::upper_bound(places_.begin(), places_.end(), begin, behind) - 1;
    const auto last = std::upper_bound(places_.begin(), places_.end(), end - 1, behind) - 1;
    const int64_t skip = begin - first->at, size = is_wrapped_ ? last->end - first->begin : end - begin;
    if (size > INT32_MAX) fail("a picture of %lld bytes", (long long)size);
    if (pictures_.size() >= INT32_MAX) fail("more than 2^31 pictures");
    r.packet = {is_wrapped_ ? first->begin : first->begin + skip, 0, (int32_t)size, about_.is_key};
    r.wrapped = {(int32_t)skip, (int32_t)(end - begin)};
    while (!times_.empty() && times_.front().at <= begin) {
      if (times_.size() == 1 || times_[1].at > begin) r.packet.pts = unrolled(times_.front()), r.has_time = true;
      times_.pop_front();
    }
    pictures_.push_back(r);
  }

  // Continues times where the clock's 33 bits wrap around, or another recording follows.
  int64_t unrolled(const Time &t) {
    if (has_clock_) {
      const int64_t step = difference(t.dts, clock_33_);
      clock_ += step < -kMaxStepBack ? usual_step_ : step;
      if (step > 0) usual_step_ = step;
    } else {
      clock_ = t.dts, has_clock_ = true;
    }
    clock_33_ = t.dts;
    return clock_ + difference(t.pts, t.dts);
  }

  StreamParser &parser_;
  const bool is_wrapped_;
  std::deque<Place> places_;
  std::deque<Time> times_;
  std::vector<Read> pictures_;
  std::vector<uint8_t> head_;  // the inspected part of the unit
  StreamPicture about_;
  uint32_t last_ = 0xffffff;
  int64_t at_ = 0;                    // in the stream
  int64_t unit_ = -1, picture_ = -1;  // where they begin; -1 if none
  bool has_slices_ = false, has_clock_ = false;
  int64_t clock_ = 0, clock_33_ = 0, usual_step_ = 1;
};

// Numbers of pictures in presentation order.
std::vector<int32_t> shown_order(const std::vector<Read> &pictures, bool has_order) {
  std::vector<int32_t> shown;
  if (has_order) {
    shown.resize(pictures.size());
    std::iota(shown.begin(), shown.end(), 0);
    std::stable_sort(shown.begin(), shown.end(), [&](int32_t a, int32_t b) {
      return pictures[(size_t)a].about.order < pictures[(size_t)b].about.order;
    });
    return shown;
  }
  int32_t waiting = -1;  // a reference picture, until the next one comes
  for (int32_t i = 0; i < (int32_t)pictures.size(); i++) {
    if (!pictures[(size_t)i].about.waits) {
      shown.push_back(i);
      continue;
    }
    if (waiting >= 0) shown.push_back(waiting);
    waiting = i;
  }
  if (waiting >= 0) shown.push_back(waiting);
  return shown;
}

// Pictures without a time are spaced evenly after those before them, or before the first that has one.
void fill_times(std::vector<Read> &pictures, const std::vector<int32_t> &shown, int64_t step) {
  size_t known = 0;
  while (known < shown.size() && !pictures[(size_t)shown[known]].has_time) known++;
  int64_t time = known < shown.size() ? pictures[(size_t)shown[known]].packet.pts - (int64_t)(known + 1) * step : -step;
  for (const int32_t i : shown) {
    Read &r = pictures[(size_t)i];
    if (!r.has_time) r.packet.pts = time + step;
    time = r.packet.pts;
  }
}

}  // namespace

VideoIndex index_stream(Chunks &chunks, const char *codec, int32_t wrapping, int32_t stream) {
  const std::unique_ptr<StreamParser> parser = parser_of(codec);
  if (!parser) fail("%s in a stream of this kind is not supported", *codec ? codec : "a codec that is not known");
  VideoIndex index;
  index.codec = codec, index.wrapping = wrapping, index.stream = stream;
  Reading reading(*parser, wrapping != NOT_WRAPPED);
  for (Chunk c; chunks.next(&c);) reading.add(c);
  std::vector<Read> pictures = reading.finish();
  index.extradata = reading.configuration;
  index.width = parser->width, index.height = parser->height;
  // Pictures before the first key picture can't be decoded, nor those after an open one that are shown before it.
  size_t key = 0;
  while (key < pictures.size() && !pictures[key].about.is_key) key++;
  if (key == pictures.size()) fail("the video has no key frame");
  pictures.erase(pictures.begin(), pictures.begin() + (int64_t)key);
  std::vector<int32_t> shown = shown_order(pictures, parser->has_order);
  if (!pictures[0].about.is_closed) shown.erase(shown.begin(), std::find(shown.begin(), shown.end(), 0));
  const bool has_times = std::any_of(pictures.begin(), pictures.end(), [](const Read &r) { return r.has_time; });
  const bool is_complete = std::all_of(pictures.begin(), pictures.end(), [](const Read &r) { return r.has_time; });
  const int64_t rate = parser->rate ? parser->rate : kUsualRate, scale = parser->rate ? parser->rate_scale : 1;
  index.timescale = has_times ? kClock : rate;
  if (!is_complete) fill_times(pictures, shown, has_times ? std::max<int64_t>(1, kClock * scale / rate) : scale);
  if (is_complete)
    std::stable_sort(shown.begin(), shown.end(), [&](int32_t a, int32_t b) {
      return pictures[(size_t)a].packet.pts < pictures[(size_t)b].packet.pts;
    });
  for (const Read &r : pictures) {
    index.packets.push_back(r.packet);
    if (wrapping != NOT_WRAPPED) index.wrapped.push_back(r.wrapped);
  }
  for (const int32_t i : shown) {
    if (pictures[(size_t)i].about.is_hidden) continue;
    index.shown.push_back(i), index.times.push_back(pictures[(size_t)i].packet.pts);
  }
  return index;
}

std::unique_ptr<Chunks> chunks_of(const Source &file, int32_t wrapping, int32_t stream, int64_t place) {
  if (wrapping == PROGRAM_STREAM) return program_chunks(file, stream, place);
  return transport_chunks(file, wrapping, stream, place);
}
