// SPDX-License-Identifier: Apache-2.0
// Matroska and WebM: EBML (RFC 8794) elements of RFC 9559. One pass over the headers of blocks; pictures are skipped.
#include "video/matroska.h"

#include <algorithm>

#include "video/codecs.h"
#include "video/pieces.h"

using namespace matroska;

namespace {

enum Id : uint32_t {
  SEGMENT = 0x18538067,
  INFO = 0x1549a966,
  TIMESTAMP_SCALE = 0x2ad7b1,
  TRACKS = 0x1654ae6b,
  TRACK_ENTRY = 0xae,
  TRACK_NUMBER = 0xd7,
  TRACK_TYPE = 0x83,
  CODEC_ID = 0x86,
  CODEC_PRIVATE = 0x63a2,
  VIDEO = 0xe0,
  PIXEL_WIDTH = 0xb0,
  PIXEL_HEIGHT = 0xba,
  AUDIO = 0xe1,
  CHANNELS = 0x9f,
  CODEC_DELAY = 0x56aa,
  DISCARD_PADDING = 0x75a2,
  CONTENT_ENCODINGS = 0x6d80,
  CONTENT_ENCODING = 0x6240,
  CONTENT_COMPRESSION = 0x5034,
  CONTENT_COMP_ALGO = 0x4254,
  CONTENT_COMP_SETTINGS = 0x4255,
  CONTENT_ENCRYPTION = 0x5035,
  CLUSTER = 0x1f43b675,
  TIMESTAMP = 0xe7,
  SIMPLE_BLOCK = 0xa3,
  BLOCK_GROUP = 0xa0,
  BLOCK = 0xa1,
  REFERENCE_BLOCK = 0xfb,
};

constexpr int64_t kUnknown = -1;

struct Element {
  uint32_t id;
  int64_t size, begin;  // of the content; size kUnknown: until an element of a higher level
};

// Reads the element at *at and moves *at to its content; false at the end, or if no element can be there.
bool next_element(Bytes b, int64_t *at, Element *e) {
  if (!b.has(*at, 2)) return false;
  const uint32_t first = b.data[*at];
  const int n = first ? __builtin_clz(first) - 23 : 9;
  if (n > 4 || !b.has(*at, n + 1)) return false;
  e->id = 0;
  for (int i = 0; i < n; i++) e->id = e->id << 8 | b.data[(*at)++];
  const uint32_t head = b.data[*at];
  const int m = head ? __builtin_clz(head) - 23 : 9;
  if (m > 8 || !b.has(*at, m)) return false;
  uint64_t size = head & ((1u << (8 - m)) - 1), ones = size == (1u << (8 - m)) - 1;
  for (int i = 1; i < m; i++) {
    const uint8_t c = b.data[*at + i];
    size = size << 8 | c, ones &= c == 0xff;
  }
  *at += m;
  e->size = ones ? kUnknown : (int64_t)size;
  e->begin = *at;
  return true;
}

Bytes content(Bytes b, const Element &e) {
  const int64_t left = b.size - e.begin;
  return {b.data + e.begin, e.size == kUnknown ? left : std::min(e.size, left)};
}

template <class F>
void for_elements(Bytes b, F f) {
  Element e;
  for (int64_t at = 0; next_element(b, &at, &e);) {
    if (e.size == kUnknown) return;
    f(e.id, content(b, e));
    if (e.size > b.size - at) return;
    at += e.size;
  }
}

uint64_t number(Bytes b) {
  uint64_t x = 0;
  for (int64_t i = 0; i < std::min<int64_t>(b.size, 8); i++) x = x << 8 | b.data[i];
  return x;
}

void read_encoding(Bytes b, Track *track) {
  for_elements(b, [&](uint32_t id, Bytes e) {
    if (id == CONTENT_ENCRYPTION) track->is_readable = false;
    if (id != CONTENT_COMPRESSION) return;
    uint64_t algorithm = 0;
    Bytes settings{b.data, 0};
    for_elements(e, [&](uint32_t kind, Bytes c) {
      if (kind == CONTENT_COMP_ALGO) algorithm = number(c);
      if (kind == CONTENT_COMP_SETTINGS) settings = c;
    });
    if (algorithm == 3)  // bytes removed from the start of every block
      track->index.prefix.assign(settings.data, settings.data + settings.size);
    else
      track->is_readable = false;
  });
}

Track read_track(Bytes b) {
  Track track;
  for_elements(b, [&](uint32_t id, Bytes e) {
    VideoIndex &index = track.index;
    if (id == TRACK_NUMBER) track.number = number(e);
    if (id == TRACK_TYPE) track.type = number(e);
    if (id == CODEC_ID) track.codec_id.assign((const char *)e.data, (size_t)e.size);
    if (id == CODEC_DELAY) track.delay = (int64_t)std::min<uint64_t>(number(e), INT64_MAX / 2);
    if (id == CODEC_PRIVATE) index.extradata.assign(e.data, e.data + e.size);
    if (id == VIDEO)
      for_elements(e, [&](uint32_t kind, Bytes c) {
        if (kind == PIXEL_WIDTH) index.width = (int32_t)std::min<uint64_t>(number(c), INT32_MAX);
        if (kind == PIXEL_HEIGHT) index.height = (int32_t)std::min<uint64_t>(number(c), INT32_MAX);
      });
    if (id == AUDIO)
      for_elements(e, [&](uint32_t kind, Bytes c) {
        if (kind == CHANNELS) track.channels = number(c);
      });
    if (id == CONTENT_ENCODINGS)
      for_elements(e, [&](uint32_t kind, Bytes c) {
        if (kind == CONTENT_ENCODING) read_encoding(c, &track);
      });
  });
  return track;
}

// Reads the headers of a file's elements one by one.
struct Reader : Pieces {
  using Pieces::Pieces;
  bool next(int64_t *place, Element *e) {
    constexpr int64_t kMaxHead = 12;
    int64_t inside = 0;
    if (*place >= size() || !next_element(at(*place, kMaxHead), &inside, e)) return false;
    e->begin = *place += inside;
    return true;
  }
};

// The sizes of several packets in a block (RFC 9559, 10.3); all but the last are stored. Moves `at` past them.
std::vector<int64_t> laced_sizes(Bytes b, int64_t *at, uint32_t lacing) {
  const int64_t n = (int64_t)b.u8((*at)++) + 1;
  std::vector<int64_t> sizes;
  int64_t sum = 0;
  const auto variable = [&](int64_t *bytes) {
    const uint32_t first = b.u8(*at);
    const int m = first ? __builtin_clz(first) - 23 : 9;
    if (m > 8) fail("Matroska: a laced block that makes no sense");
    int64_t x = first & ((1u << (8 - m)) - 1);
    for (int i = 1; i < m; i++) x = x << 8 | b.u8(*at + i);
    *at += m, *bytes = m;
    return x;
  };
  for (int64_t i = 0; i + 1 < n; i++) {
    int64_t size = 0, bytes = 0;
    if (lacing == 1) {  // as in Ogg
      uint32_t c;
      do size += c = b.u8((*at)++);
      while (c == 255);
    } else if (lacing == 3) {  // the first, then differences
      const int64_t x = variable(&bytes);
      size = i == 0 ? x : sizes.back() + x - (((int64_t)1 << (7 * bytes - 1)) - 1);
    } else {
      size = 0;  // all are equal; computed from the count
    }
    if (size < 0 || size > b.size) fail("Matroska: a laced block that makes no sense");
    sizes.push_back(size), sum += size;
  }
  const int64_t left = b.size - *at - sum;
  if (left < 0) fail("Matroska: a laced block that makes no sense");
  sizes.push_back(left);
  if (lacing == 2) std::fill(sizes.begin(), sizes.end(), left / n);
  return sizes;
}

// Reads one block: track number, time relative to its cluster, flags, and the packet.
void read_block(Reader &file, int64_t at, int64_t size, int64_t cluster_time, bool is_simple, bool is_key,
                uint64_t type, int64_t padding, std::vector<Track> &tracks) {
  if (size < 4 || at >= file.size()) return;
  const Bytes head = file.at(at, 12);
  if (!head.has(0, 4)) return;
  const int n = head.data[0] ? __builtin_clz((uint32_t)head.data[0]) - 23 : 9;
  if (n > 8 || !head.has(0, n + 3) || size < n + 3) return;
  uint64_t track_number = head.data[0] & ((1u << (8 - n)) - 1);
  for (int i = 1; i < n; i++) track_number = track_number << 8 | head.data[i];
  const int16_t relative = (int16_t)head.be16(n);
  const uint32_t flags = head.u8(n + 2), lacing = flags >> 1 & 3;
  for (Track &t : tracks) {
    if (t.number != track_number || t.type != type) continue;
    if (lacing && type != kSound) fail("Matroska: laced blocks of video are not supported");
    if (size - n - 3 > INT32_MAX) fail("Matroska: a block of %lld bytes", (long long)size);
    const int64_t time = cluster_time + relative;
    t.padding = padding;
    if (!lacing) {
      t.index.packets.push_back({at + n + 3, time, (int32_t)(size - n - 3), is_simple ? (flags & 0x80) != 0 : is_key});
      return;
    }
    const std::vector<uint8_t> bytes = file.all(at, size);
    int64_t inside = n + 3;
    for (int64_t each : laced_sizes({bytes.data(), (int64_t)bytes.size()}, &inside, lacing))
      t.index.packets.push_back({at + inside, time, (int32_t)each, true}), inside += each;
    return;
  }
}

// Reads a block with its properties; only whether it refers to others matters.
void read_group(Reader &file, const Element &group, int64_t cluster_time, uint64_t type, std::vector<Track> &tracks) {
  const int64_t end = group.begin + std::min(group.size, file.size() - group.begin);
  int64_t begin = 0, size = 0, padding = 0;
  bool is_key = true;
  Element inner;
  for (int64_t at = group.begin; at < end && file.next(&at, &inner) && inner.size != kUnknown;) {
    if (inner.id == BLOCK) begin = inner.begin, size = inner.size;
    if (inner.id == REFERENCE_BLOCK) is_key = false;
    if (inner.id == DISCARD_PADDING) padding = (int64_t)(number(file.at(at, inner.size)) & INT64_MAX >> 1);
    if (inner.size > end - at) break;
    at += inner.size;
  }
  if (size) read_block(file, begin, size, cluster_time, false, is_key, type, padding, tracks);
}

}  // namespace

File matroska::read_tracks(const Source &source, uint64_t type) {
  Reader file(source);
  File found;
  std::vector<Track> &tracks = found.tracks;
  int64_t cluster_time = 0;
  Element e;
  // Segments and clusters are entered, as their sizes may be unknown; other unknown elements are skipped.
  for (int64_t at = 0; file.next(&at, &e);) {
    if (e.id == SEGMENT || e.id == CLUSTER) continue;
    if (e.size == kUnknown) fail("Matroska: an element %x of unknown size at byte %lld", e.id, (long long)at);
    if (e.id == INFO || e.id == TRACKS || e.id == TIMESTAMP) {
      const std::vector<uint8_t> bytes = file.all(e.begin, e.size);
      const Bytes b{bytes.data(), (int64_t)bytes.size()};
      if (e.id == TIMESTAMP) cluster_time = (int64_t)(number(b) & INT64_MAX >> 1);
      for_elements(b, [&](uint32_t id, Bytes c) {
        if (e.id == INFO && id == TIMESTAMP_SCALE) found.scale = std::max<uint64_t>(1, number(c));
        if (e.id == TRACKS && id == TRACK_ENTRY) tracks.push_back(read_track(c));
      });
    } else if (e.id == SIMPLE_BLOCK) {
      read_block(file, e.begin, e.size, cluster_time, true, false, type, 0, tracks);
    } else if (e.id == BLOCK_GROUP) {
      read_group(file, e, cluster_time, type, tracks);
    }
    if (e.size > source.size - at) break;
    at += e.size;
  }
  for (const Track &t : tracks)
    if (t.index.packets.size() > INT32_MAX) fail("Matroska: more than 2^31 packets");
  return found;
}

VideoIndex read_matroska(const Source &source) {
  File file = read_tracks(source, kPictures);
  Track *best = nullptr;
  for (Track &t : file.tracks)
    if (t.type == kPictures && !t.index.packets.empty() &&
        (!best || (int64_t)t.index.width * t.index.height > (int64_t)best->index.width * best->index.height))
      best = &t;
  if (!best) fail("Matroska: there is no video in it");
  if (!best->is_readable) fail("Matroska: the video is encrypted, or compressed in a way that is not supported");
  best->index.codec = codec_of_matroska(best->codec_id);
  // Times are in units of `scale` nanoseconds.
  best->index.timescale = file.scale <= 1000000000 ? (int64_t)(1000000000 / file.scale) : 1;
  best->index.show_all();
  return std::move(best->index);
}
