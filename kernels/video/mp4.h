// SPDX-License-Identifier: Apache-2.0
// The tracks of an MP4 or QuickTime file, from its tables, for pictures and sound.
#pragma once
#include <algorithm>

#include "video/index.h"

namespace mp4 {

constexpr uint32_t tag(const char (&t)[5]) {
  return (uint32_t)(uint8_t)t[0] << 24 | (uint32_t)(uint8_t)t[1] << 16 | (uint32_t)(uint8_t)t[2] << 8 | (uint8_t)t[3];
}

constexpr int64_t kFar = (int64_t)1 << 61;  // larger offsets and times are refused, so that sums don't overflow

inline int64_t be64(Bytes b, int64_t at) { return (int64_t)((uint64_t)b.be32(at) << 32 | b.be32(at + 4)); }

// Calls f(type, content, offset of the content in `b`) for each box. A last box may be truncated.
template <class F>
void for_boxes(Bytes b, F f) {
  for (int64_t at = 0; at + 8 <= b.size;) {
    int64_t size = b.be32(at), head = 8;
    const uint32_t type = b.be32(at + 4);
    if (size == 1) {
      if (!b.has(at, 16)) return;
      size = be64(b, at + 8), head = 16;
    } else if (size == 0) {
      size = b.size - at;
    }
    if (size < head) return;  // no box: padding or damage; following boxes can't be found
    const int64_t content = std::min(size, b.size - at) - head;
    if (content < 0) return;
    f(type, Bytes{b.data + at + head, content}, at + head);
    if (size > b.size - at) return;
    at += size;
  }
}

struct Edit {
  int64_t duration, media_time;  // in the movie's and in the media's timescale
};

struct Track {
  VideoIndex index;  // for sound only packets and timescale
  uint32_t id = 0, handler = 0;
  bool is_enabled = true;
  std::vector<Edit> edits;
  Bytes stsd{}, stts{}, ctts{}, stss{}, stsz{}, stz2{}, stsc{}, stco{}, co64{};
  std::vector<int64_t> durations;  // by packet, parallel to index.packets
  // For fragments: defaults of their samples, and the start time of the next one.
  uint32_t default_duration = 0, default_size = 0, default_flags = 0;
  int64_t next_dts = 0;
};

struct Movie {
  std::vector<Track> tracks;
  int64_t timescale = 1000;
  std::vector<std::vector<uint8_t>> kept;  // memory that the tracks' tables refer to
};

constexpr uint32_t kPictures = tag("vide"), kSound = tag("soun");

// Reads the tracks of a file, with the packets of those of one kind.
Movie read_tracks(const Source &file, uint32_t handler);

}  // namespace mp4
