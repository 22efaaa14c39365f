// SPDX-License-Identifier: Apache-2.0
#include "video/clip.h"

#include <algorithm>

#include "video/runs.h"

namespace {

// Followed by the packets, the frames (int32), the configuration, the prefix, and the bytes of the packets.
struct Head {
  char magic[8];
  char codec[16];
  int64_t timescale, n_packets, n_frames, n_extradata, n_prefix;
  int32_t width, height, rotation, unused;
};

// Codecs are told by names that live as long as the program.
const char *codec_name(const char (&name)[16]) {
  for (const char *known :
       {"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "mpeg2video", "mpeg1video", "mjpeg", "prores", "h263"})
    if (!strncmp(name, known, sizeof name)) return known;
  return "";
}

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

}  // namespace

int64_t make_clip(const VideoFiles &files, int64_t file, const int32_t *frames, int64_t n, ClipBytes &bytes) {
  const VideoIndex &index = files.index[(size_t)file];
  if (!files.errors[(size_t)file].empty()) fail("%s", files.errors[(size_t)file].c_str());
  const auto read = [&](int32_t i) -> Bytes {
    const Packet &p = index.packets[i];
    return {bytes.packet(p.offset, p.size), p.size};
  };
  const auto asked = packets_of(index, frames, n);
  const std::vector<Run> runs = runs_of(asked, index, read);
  std::vector<Packet> packets;
  std::vector<const uint8_t *> data;  // of each; all are there before memory is taken by what the index says
  std::vector<int32_t> place(index.packets.size(), -1);  // in the clip, of each packet of the file
  int64_t n_bytes = 0;
  for (const Run &run : runs)
    for (int32_t i = run.begin; i < run.end; i++) {
      place[i] = (int32_t)packets.size();
      packets.push_back(index.packets[i]);
      data.push_back(read(i).data);
      n_bytes += index.packets[i].size;
    }
  std::vector<int32_t> shown;
  for (int64_t i = 0; i < n; i++) shown.push_back(place[index.shown[frames[i]]]);
  Head head{};
  memcpy(head.magic, kClipMagic, sizeof head.magic);
  strncpy(head.codec, index.codec, sizeof head.codec - 1);
  head.timescale = index.timescale, head.n_packets = (int64_t)packets.size(), head.n_frames = n;
  head.n_extradata = (int64_t)index.extradata.size(), head.n_prefix = (int64_t)index.prefix.size();
  head.width = index.width, head.height = index.height, head.rotation = index.rotation;
  const int64_t n_index = (int64_t)(sizeof head + packets.size() * sizeof(Packet) + shown.size() * sizeof(int32_t)) +
                          head.n_extradata + head.n_prefix;
  uint8_t *const clip = (uint8_t *)bytes.take(n_index + n_bytes), *to = clip;
  const auto put = [&](const void *from, size_t size) {
    if (size) memcpy(to, from, size);
    to += size;
  };
  int64_t offset = n_index;
  std::vector<Packet> moved = packets;
  for (Packet &p : moved) p.offset = offset, offset += p.size;
  put(&head, sizeof head);
  put(moved.data(), moved.size() * sizeof(Packet));
  put(shown.data(), shown.size() * sizeof(int32_t));
  put(index.extradata.data(), index.extradata.size());
  put(index.prefix.data(), index.prefix.size());
  for (size_t i = 0; i < packets.size(); i++) put(data[i], (size_t)packets[i].size);
  return to - clip;
}

VideoIndex read_clip(Bytes file) {
  Head head;
  memcpy(&head, file.need(0, sizeof head), sizeof head);
  for (const int64_t n : {head.n_packets, head.n_frames, head.n_extradata, head.n_prefix})
    if (n < 0 || n > file.size) fail("a clip that is damaged");
  VideoIndex index;
  index.codec = codec_name(head.codec), index.timescale = std::max<int64_t>(1, head.timescale);
  index.width = head.width, index.height = head.height, index.rotation = head.rotation;
  int64_t at = sizeof head;
  const auto get = [&](auto &to, int64_t n) {
    using T = typename std::remove_reference_t<decltype(to)>::value_type;
    to.resize((size_t)n);
    const int64_t size = n * (int64_t)sizeof(T);
    if (size) memcpy(to.data(), file.need(at, size), (size_t)size);
    at += size;
  };
  get(index.packets, head.n_packets);
  get(index.shown, head.n_frames);
  get(index.extradata, head.n_extradata);
  get(index.prefix, head.n_prefix);
  for (const Packet &p : index.packets)
    if (p.size < 0 || p.offset < 0) fail("a clip that is damaged");
  for (const int32_t i : index.shown) {
    if (i < 0 || i >= head.n_packets) fail("a clip that is damaged");
    index.times.push_back(index.packets[i].pts);
  }
  return index;
}

void span_of_clip(const VideoIndex &index, const int32_t *frames, int64_t n, int64_t *begin, int64_t *end) {
  // Without a look at the packets: those that say more are read by whoever makes the clip.
  const std::vector<Run> runs = runs_of(packets_of(index, frames, n), index, [](int32_t) -> Bytes {
    static const uint8_t nothing = 0;
    return {&nothing, 0};
  });
  *begin = INT64_MAX, *end = 0;
  for (const Run &run : runs)
    for (int32_t i = run.begin; i < run.end; i++) {
      *begin = std::min(*begin, index.packets[i].offset);
      *end = std::max(*end, index.packets[i].offset + index.packets[i].size);
    }
  if (*begin > *end) *begin = *end;
}
