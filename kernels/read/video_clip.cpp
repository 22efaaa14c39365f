// SPDX-License-Identifier: Apache-2.0
#include "read/video_clip.h"

#include <map>
#include <utility>
#include <vector>

#include "read/parser.h"
#include "video/make_clip.h"

namespace {

// Packets in the span that was read are where they are. Others, before it, are read for themselves.
struct Reading : ClipBytes {
  Sample &sample;
  const int64_t offset;  // of the span in the file
  std::map<std::pair<int64_t, int64_t>, std::vector<uint8_t>> others;
  void *clip = nullptr;

  Reading(Sample &s, int64_t at) : sample(s), offset(at) {}
  const uint8_t *packet(int64_t at, int64_t size) override {
    const Part span = sample.parts[0];
    if (at >= offset && size <= span.size && at - offset <= span.size - size)
      return (const uint8_t *)span.data + (at - offset);
    const auto [other, is_new] = others.try_emplace({at, size});
    if (is_new) {
      const int64_t length = sample.object_length(0);
      if (at > length || size > length - at)
        fail("a picture of %lld bytes at %lld lies beyond the end of the file (%lld bytes)", (long long)size,
             (long long)at, (long long)length);
      other->second.resize((size_t)size);
      sample.read(0, at, size, other->second.data());
    }
    return other->second.data();
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
