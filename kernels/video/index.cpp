// SPDX-License-Identifier: Apache-2.0
#include "video/index.h"

#include <algorithm>

#include "core/first_bytes.h"
#include "video/clip.h"
#include "video/elementary.h"
#include "video/pictures.h"

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

VideoIndex read_video_index(Bytes file) {
  if (file.starts(0, kClipMagic, 8)) return read_clip(file);
  return read_video_index(source_of(file));
}

VideoIndex read_video_index(const Source &file) {
  if (file.size == 0) fail("empty file");
  uint8_t head[32] = {};
  const Bytes b{head, std::min<int64_t>(sizeof head, file.size)};
  file.read(0, b.size, head);
  for (const char *first : {"ftyp", "moov", "mdat", "moof", "free", "skip", "wide", "pnot", "styp", "sidx"})
    if (b.starts(4, first, 4)) return read_mp4(file);
  if (b.starts(0, "\x1a\x45\xdf\xa3", 4)) return read_matroska(file);
  if (b.starts(0, "RIFF", 4) && b.starts(8, "AVI", 3)) return read_avi(file);
  if (b.starts(0, "\0\0\1\xba", 4)) return read_program(file);
  if (const char *codec = codec_of_stream(b); *codec) return read_plain_stream(file, codec);
  int64_t begin = 0;
  if (find_transport_packets(file, &begin)) return read_transport(file);
  fail(
      "not a video that can be read (MP4, QuickTime, Matroska, WebM, AVI, MPEG-TS, MPEG-PS, H.264, HEVC, MPEG-1, "
      "MPEG-2): %s",
      FirstBytes(head, file.size).text());
}
