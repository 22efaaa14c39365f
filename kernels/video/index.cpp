// SPDX-License-Identifier: Apache-2.0
#include "video/index.h"

#include <algorithm>

void VideoIndex::show_all() {
  shown.resize(packets.size());
  for (size_t i = 0; i < shown.size(); i++) shown[i] = (int32_t)i;
  std::stable_sort(shown.begin(), shown.end(), [&](int32_t a, int32_t b) { return packets[a].pts < packets[b].pts; });
  times.clear();
  for (int32_t i : shown) times.push_back(packets[i].pts);
}

VideoIndex read_video_index(Bytes file) {
  if (file.size == 0) fail("empty file");
  for (const char *first : {"ftyp", "moov", "mdat", "moof", "free", "skip", "wide", "pnot", "styp", "sidx"})
    if (file.starts(4, first, 4)) return read_mp4(file);
  if (file.starts(0, "\x1a\x45\xdf\xa3", 4)) return read_matroska(file);
  fail("not a video that can be read (MP4, QuickTime, Matroska, WebM): %lld bytes that begin with %02x %02x %02x %02x",
       (long long)file.size, file.data[0], file.size > 1 ? file.data[1] : 0, file.size > 2 ? file.data[2] : 0,
       file.size > 3 ? file.data[3] : 0);
}
