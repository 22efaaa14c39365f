// SPDX-License-Identifier: Apache-2.0
#include "read/video_clip.h"

#include <algorithm>
#include <map>
#include <vector>

#include "read/parser.h"
#include "video/make_clip.h"

namespace {

constexpr int64_t kPiece = 256 << 10;  // read at once, as packets are mostly contiguous

// Packets in the span already read are used in place. Others are read in pieces.
struct Reading : ClipBytes {
  Sample &sample;
  const int64_t offset;                                 // of the span in the file
  std::multimap<int64_t, std::vector<uint8_t>> others;  // pieces by their offset
  void *clip = nullptr;

  Reading(Sample &s, int64_t at) : sample(s), offset(at) {}
  const uint8_t *packet(int64_t at, int64_t size) override {
    const Part span = sample.parts[0];
    if (at >= offset && size <= span.size && at - offset <= span.size - size)
      return (const uint8_t *)span.data + (at - offset);
    auto piece = others.upper_bound(at);
    if (piece != others.begin() && (--piece)->first + (int64_t)piece->second.size() >= at + size)
      return piece->second.data() + (at - piece->first);
    const int64_t length = sample.object_length(0);
    if (at > length || size > length - at)
      fail("a picture of %lld bytes at %lld lies beyond the end of the file (%lld bytes)", (long long)size,
           (long long)at, (long long)length);
    std::vector<uint8_t> bytes((size_t)std::min(std::max(size, kPiece), length - at));
    sample.read(0, at, (int64_t)bytes.size(), bytes.data());
    return others.emplace(at, std::move(bytes))->second.data();
  }
  void *take(int64_t size) override { return clip = sample.take(size); }
};

void parse(Sample &s, const VideoClipArgs &a) {
  const int32_t *frames = a.frames + s.index * a.count;
  int64_t n = 0;
  while (n < a.count && frames[n] >= 0) n++;
  Reading reading(s, a.offset[s.index]);
  const int64_t size = make_clip(*(const VideoFiles *)a.files, a.file[s.index], frames, n, reading);
  s.give(0, (const char *)reading.clip, size);
}

}  // namespace

EXPORT_PARSER(video_clip, VideoClipArgs, parse)
