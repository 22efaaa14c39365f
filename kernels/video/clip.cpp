// SPDX-License-Identifier: Apache-2.0
#include "video/clip.h"

#include <algorithm>
#include <map>

#include "video/packed_index.h"
#include "video/runs.h"
#include "video/wrapped.h"

namespace {

constexpr int64_t kMagicSize = 8;

std::vector<std::pair<int32_t, int32_t>> packets_of(const VideoIndex &index, const int32_t *frames, int64_t n) {
  std::vector<std::pair<int32_t, int32_t>> asked;
  for (int64_t i = 0; i < n; i++) {
    if (frames[i] < 0 || frames[i] >= (int64_t)index.shown.size())
      fail("[internal error] frame %d of %lld", frames[i], (long long)index.shown.size());
    asked.emplace_back(index.shown[frames[i]], (int32_t)i);
  }
  std::sort(asked.begin(), asked.end());
  return asked;
}

// The last key picture that is neither decoded nor shown after the packet.
int32_t key_before(const VideoIndex &index, int32_t packet) {
  int32_t key = packet;
  while (key > 0 && !(index.packets[key].is_key && index.packets[key].pts <= index.packets[packet].pts)) key--;
  return key;
}

// Copies all but packets and frames.
VideoIndex about(const VideoIndex &index) {
  VideoIndex same;
  same.codec = index.codec, same.timescale = index.timescale;
  same.width = index.width, same.height = index.height, same.rotation = index.rotation;
  same.extradata = index.extradata, same.prefix = index.prefix;
  return same;
}

}  // namespace

int64_t make_clip(const VideoFiles &files, int64_t file, const int32_t *frames, int64_t n, ClipBytes &bytes) {
  const VideoIndex &index = files.index[(size_t)file];
  if (!files.errors[(size_t)file].empty()) fail("%s", files.errors[(size_t)file].c_str());
  std::map<int32_t, std::vector<uint8_t>> whole;  // packets stored in several pieces of the file
  const auto read = [&](int32_t i) -> Bytes {
    const Packet &p = index.packets[i];
    const auto known = whole.find(i);
    if (known != whole.end()) return {known->second.data(), (int64_t)known->second.size()};
    const Bytes span{bytes.packet(p.offset, p.size), p.size};
    return index.wrapping ? unwrap(span, index, i, whole[i]) : span;
  };
  const auto asked = packets_of(index, frames, n);
  const std::vector<Run> runs = runs_of(asked, index, read, true);
  std::vector<Packet> packets;
  std::vector<const uint8_t *> data;  // per packet; all are read before memory of a size from the index is allocated
  std::vector<int32_t> place(index.packets.size(), -1);  // place in the clip of each packet of the file
  int64_t n_bytes = 0;
  for (const Run &run : runs)
    for (int32_t i = run.begin; i < run.end; i++) {
      place[i] = (int32_t)packets.size();
      const Bytes packet = read(i);
      packets.push_back(index.packets[i]);
      packets.back().size = (int32_t)packet.size;
      data.push_back(packet.data);
      n_bytes += packet.size;
    }
  VideoIndex own = about(index);
  for (int64_t i = 0; i < n; i++) {
    own.shown.push_back(place[index.shown[frames[i]]]);
    own.times.push_back(index.times[frames[i]]);
  }
  own.packets = std::move(packets);
  int64_t at = kMagicSize + packed_size(own);
  uint8_t *const clip = (uint8_t *)bytes.take(at + n_bytes);
  memcpy(clip, kClipMagic, kMagicSize);
  for (size_t i = 0; i < own.packets.size(); i++) {
    Packet &p = own.packets[i];
    if (p.size) memcpy(clip + at, data[i], (size_t)p.size);
    p.offset = at, at += p.size;
  }
  pack_index(own, clip + kMagicSize);
  return at;
}

VideoIndex read_clip(Bytes file) {
  int64_t at = kMagicSize;
  return unpack_index(file, &at);
}

void span_of_clip(const VideoIndex &index, const int32_t *frames, int64_t n, int64_t *begin, int64_t *end) {
  constexpr int64_t kSparse = 8;  // packets per wanted frame
  *begin = *end = 0;
  if (!n) return;
  int32_t first = INT32_MAX, last = 0;
  for (int64_t i = 0; i < n; i++) {
    const int32_t packet = index.shown[frames[i]];
    first = std::min(first, packet), last = std::max(last, packet);
  }
  // For frames far apart, make_clip reads what follows the first of them, group by group.
  if (n > 1 && last - first > kSparse * n) last = first;
  // An estimate that does not inspect packets: make_clip reads what else they need. The frame shown first may need an
  // earlier key picture than the one decoded first.
  first = std::min(key_before(index, first), key_before(index, index.shown[frames[0]]));
  *begin = INT64_MAX;
  for (int32_t i = first; i <= last; i++) {
    *begin = std::min(*begin, index.packets[i].offset);
    *end = std::max(*end, index.packets[i].offset + index.packets[i].size);
  }
}
