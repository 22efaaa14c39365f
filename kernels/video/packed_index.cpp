// SPDX-License-Identifier: Apache-2.0
#include "video/packed_index.h"

#include <algorithm>

#include "video/codecs.h"
#include "video/elementary.h"

namespace {

// Followed by the packets (as steps, if all fit), their pieces if they are cut, the frames (int32), their times (int64,
// unless equal to those of the packets up to `shift`), the configuration and the prefix.
struct Head {
  char codec[16];
  int64_t timescale, n_packets, n_frames, n_extradata, n_prefix;
  int64_t shift;  // from the packets' times to the frames'
  int32_t width, height, rotation, wrapping, stream;
  uint8_t has_steps, has_shift, unused[2];
};

// A packet relative to the previous one: a third of the size, as a cached index is read at each start.
struct Step {
  int32_t gap, pts;       // from the previous packet's end and time
  uint32_t size_and_key;  // the lowest bit is the key flag
};

// Where the next packet begins if it is contiguous, and the last packet's time.
struct Place {
  int64_t offset = 0, pts = 0;
  void pass(const Packet &p) { offset = p.offset + p.size, pts = p.pts; }
};

bool fits(int64_t x) { return x == (int32_t)x; }

bool step_of(const Packet &p, const Place &before, Step *step) {
  const int64_t gap = p.offset - before.offset;
  int64_t later;
  if (__builtin_sub_overflow(p.pts, before.pts, &later) || !fits(gap) || !fits(later)) return false;
  *step = {(int32_t)gap, (int32_t)later, (uint32_t)p.size << 1 | (p.is_key != 0)};
  return true;
}

bool has_steps(const VideoIndex &index) {
  Place place;
  Step step;
  for (const Packet &p : index.packets) {
    if (!step_of(p, place, &step)) return false;
    place.pass(p);
  }
  return true;
}

bool has_shift(const VideoIndex &index, int64_t *shift) {
  for (size_t i = 0; i < index.shown.size(); i++) {
    int64_t own;
    if (__builtin_sub_overflow(index.times[i], index.packets[(size_t)index.shown[i]].pts, &own)) return false;
    if (i && own != *shift) return false;
    *shift = own;
  }
  return true;
}

Head head_of(const VideoIndex &index) {
  Head head{};
  strncpy(head.codec, index.codec, sizeof head.codec - 1);
  head.timescale = index.timescale, head.n_packets = (int64_t)index.packets.size();
  head.n_frames = (int64_t)index.shown.size();
  head.n_extradata = (int64_t)index.extradata.size(), head.n_prefix = (int64_t)index.prefix.size();
  head.width = index.width, head.height = index.height, head.rotation = index.rotation;
  head.wrapping = index.wrapping, head.stream = index.stream;
  head.has_steps = has_steps(index), head.has_shift = has_shift(index, &head.shift);
  return head;
}

int64_t size_of(const Head &h, size_t n_wrapped) {
  const int64_t packet = h.has_steps ? sizeof(Step) : sizeof(Packet);
  const int64_t frame = sizeof(int32_t) + (h.has_shift ? 0 : sizeof(int64_t));
  return (int64_t)sizeof h + h.n_packets * packet + (int64_t)(n_wrapped * sizeof(Wrapped)) + h.n_frames * frame +
         h.n_extradata + h.n_prefix;
}

}  // namespace

int64_t packed_size(const VideoIndex &index) { return size_of(head_of(index), index.wrapped.size()); }

void pack_index(const VideoIndex &index, uint8_t *to) {
  const Head head = head_of(index);
  memcpy(to, &head, sizeof head), to += sizeof head;
  const auto put = [&](const auto &from) {
    const size_t size = from.size() * sizeof(from[0]);
    if (size) memcpy(to, from.data(), size);
    to += size;
  };
  if (head.has_steps) {
    Place place;
    for (const Packet &p : index.packets) {
      Step step;
      step_of(p, place, &step), place.pass(p);
      memcpy(to, &step, sizeof step), to += sizeof step;
    }
  } else {
    put(index.packets);
  }
  put(index.wrapped), put(index.shown);
  if (!head.has_shift) put(index.times);
  put(index.extradata), put(index.prefix);
}

VideoIndex unpack_index(Bytes b, int64_t *at) {
  Head head;
  memcpy(&head, b.need(*at, sizeof head), sizeof head), *at += sizeof head;
  for (const int64_t n : {head.n_packets, head.n_frames, head.n_extradata, head.n_prefix})
    if (n < 0 || n > b.size || n > INT32_MAX) fail("an index that is damaged");
  VideoIndex index;
  index.codec = codec_named({head.codec, strnlen(head.codec, sizeof head.codec)});
  index.timescale = std::max<int64_t>(1, head.timescale);
  index.width = head.width, index.height = head.height, index.rotation = head.rotation;
  index.wrapping = head.wrapping, index.stream = head.stream;
  if (index.wrapping && index.wrapping != PROGRAM_STREAM && index.wrapping < FIRST_TRANSPORT)
    fail("an index that is damaged");
  const auto get = [&](auto &to, int64_t n) {
    const int64_t size = n * (int64_t)sizeof(to[0]);
    const uint8_t *from = b.need(*at, size);
    to.resize((size_t)n);
    if (size) memcpy(to.data(), from, (size_t)size);
    *at += size;
  };
  if (head.has_steps) {
    const uint8_t *from = b.need(*at, head.n_packets * (int64_t)sizeof(Step));
    *at += head.n_packets * (int64_t)sizeof(Step);
    index.packets.resize((size_t)head.n_packets);
    Place place;
    for (Packet &p : index.packets) {
      Step step;
      memcpy(&step, from, sizeof step), from += sizeof step;
      const int64_t pts = (int64_t)((uint64_t)place.pts + (uint64_t)(int64_t)step.pts);
      p = {place.offset + step.gap, pts, (int32_t)(step.size_and_key >> 1), (int32_t)(step.size_and_key & 1)};
      place.pass(p);
    }
  } else {
    get(index.packets, head.n_packets);
  }
  get(index.wrapped, index.wrapping ? head.n_packets : 0), get(index.shown, head.n_frames);
  if (!head.has_shift) get(index.times, head.n_frames);
  get(index.extradata, head.n_extradata), get(index.prefix, head.n_prefix);
  for (const Packet &p : index.packets)
    if (p.size < 0 || p.offset < 0) fail("an index that is damaged");
  for (const Wrapped &w : index.wrapped)
    if (w.skip < 0 || w.size < 0) fail("an index that is damaged");
  for (const int32_t i : index.shown)
    if (i < 0 || i >= head.n_packets) fail("an index that is damaged");
  if (head.has_shift) {
    index.times.resize(index.shown.size());
    for (size_t i = 0; i < index.times.size(); i++) {
      const int64_t pts = index.packets[(size_t)index.shown[i]].pts;
      if (__builtin_add_overflow(pts, head.shift, &index.times[i])) fail("an index that is damaged");
    }
  }
  return index;
}
