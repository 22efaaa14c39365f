// SPDX-License-Identifier: Apache-2.0
#include "video/index.h"

#include <algorithm>

#include "video/clip.h"

void VideoIndex::show_all() {
  shown.resize(packets.size());
  for (size_t i = 0; i < shown.size(); i++) shown[i] = (int32_t)i;
  std::stable_sort(shown.begin(), shown.end(), [&](int32_t a, int32_t b) { return packets[a].pts < packets[b].pts; });
  times.clear();
  for (int32_t i : shown) times.push_back(packets[i].pts);
}

Source source_of(Bytes file) {
  return {file.size, [file](int64_t offset, int64_t length, void *to) {
            const uint8_t *from = file.need(offset, length);
            if (length) memcpy(to, from, length);
          }};
}

namespace {

enum Container { MP4, MATROSKA, AVI };

Container container_of(const Source &file) {
  if (file.size == 0) fail("empty file");
  uint8_t head[12] = {};
  const Bytes b{head, std::min<int64_t>(12, file.size)};
  file.read(0, b.size, head);
  for (const char *first : {"ftyp", "moov", "mdat", "moof", "free", "skip", "wide", "pnot", "styp", "sidx"})
    if (b.starts(4, first, 4)) return MP4;
  if (b.starts(0, "\x1a\x45\xdf\xa3", 4)) return MATROSKA;
  if (b.starts(0, "RIFF", 4) && b.starts(8, "AVI", 3)) return AVI;
  fail(
      "not a video that can be read (MP4, QuickTime, Matroska, WebM, AVI): %lld bytes that begin with %02x %02x %02x "
      "%02x",
      (long long)file.size, head[0], head[1], head[2], head[3]);
}

}  // namespace

VideoIndex read_video_index(Bytes file) {
  if (file.starts(0, kClipMagic, 8)) return read_clip(file);
  return read_video_index(source_of(file));
}

VideoIndex read_video_index(const Source &file) {
  const Container container = container_of(file);
  return container == MP4 ? read_mp4(file) : container == AVI ? read_avi(file) : read_matroska(file);
}
