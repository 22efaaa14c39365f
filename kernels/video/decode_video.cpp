// SPDX-License-Identifier: Apache-2.0
#include "video/decode_video.h"

#include <algorithm>
#include <memory>

#include "core/kernel.h"
#include "video/colors.h"
#include "video/decoder.h"

namespace {

void fill_frame(uint8_t *out, int64_t pixels, const uint8_t *fill) {
  for (int64_t i = 0; i < pixels; i++) out[3 * i] = fill[0], out[3 * i + 1] = fill[1], out[3 * i + 2] = fill[2];
}

void run(const Tensor *out, const Tensor *in, const DecodeVideoArgs &a, Scratch &scratch) {
  const Bytes file{in->as<uint8_t>(), in->volume()};
  const int64_t n = out->shape[0], height = out->shape[1], width = out->shape[2], size = height * width * 3;
  // Output frames by the frame of the video, so that each of them is decoded once.
  std::vector<std::pair<int32_t, int64_t>> places;
  for (int64_t i = 0; i < n; i++) {
    if (a.frames[i] >= 0)
      places.emplace_back(a.frames[i], i);
    else
      fill_frame(out->as<uint8_t>() + i * size, height * width, a.fill);
  }
  if (places.empty()) return;
  std::sort(places.begin(), places.end());
  const VideoIndex &index = *(const VideoIndex *)a.index;
  std::vector<int32_t> wanted;
  for (const auto &[frame, i] : places)
    if (wanted.empty() || wanted.back() != frame) wanted.push_back(frame);
  if (wanted.back() >= (int64_t)index.shown.size())
    fail("[internal error] frame %d of %lld", wanted.back(), (long long)index.shown.size());
  decode_frames(packets_in(file, index), index, wanted, [&](int32_t frame, const Picture &picture) {
    check_size(index, frame, picture);
    auto it = std::lower_bound(places.begin(), places.end(), std::make_pair(frame, (int64_t)-1));
    uint8_t *first = out->as<uint8_t>() + it->second * size;
    picture_to_pixels(picture, a.as_ycbcr, a.y, a.x, height, width, first, scratch);
    while (++it != places.end() && it->first == frame) memcpy(out->as<uint8_t>() + it->second * size, first, size);
  });
}

}  // namespace

EXPORT_KERNEL(decode_video, DecodeVideoArgs, run)

// Reads the indices of n encoded videos, and what they say to `info`; `errors`: kErrorSize bytes for each. `end_videos`
// ends what is returned; until then info[i].index is there.
EXPORT VideoIndex *plan_videos(const Tensor *files, int64_t n, VideoInfo *info, char *errors) {
  auto indices = std::make_unique<VideoIndex[]>((size_t)n);
  for (int64_t i = 0; i < n; i++) {
    info[i] = VideoInfo{};
    VideoIndex &index = indices[(size_t)i];
    if (i && files[i].data == files[i - 1].data && files[i].volume() == files[i - 1].volume() && info[i - 1].frames) {
      info[i] = info[i - 1];  // sequences of one video
      continue;
    }
    try {
      index = read_video_index({files[i].as<uint8_t>(), files[i].volume()});
      check_extent("video", index.height, index.width);
      if (index.shown.empty()) fail("the video has no frames");
      info[i] = {(int64_t)index.shown.size(), index.height, index.width, (int64_t)&index};
    } catch (const std::exception &e) {
      snprintf(errors + i * kErrorSize, kErrorSize, "%s", e.what());
    }
  }
  return indices.release();
}
EXPORT_LONG(plan_videos)

EXPORT void end_videos(VideoIndex *indices) { delete[] indices; }
EXPORT_LONG(end_videos)
