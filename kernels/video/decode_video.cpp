// SPDX-License-Identifier: Apache-2.0
#include "video/decode_video.h"

#include <algorithm>
#include <memory>

#include "core/kernel.h"
#include "video/colors.h"
#include "video/wanted.h"

void give_frames(Bytes file, const VideoIndex &index, const int32_t *frames, int64_t n, uint8_t *out, int64_t size,
                 const std::function<void(uint8_t *)> &fill,
                 const std::function<void(const Picture &, uint8_t *)> &make) {
  // Output frames sorted by the frame of the video, so that each is decoded once.
  std::vector<std::pair<int32_t, int64_t>> places;
  const uint8_t *filled = nullptr;
  for (int64_t i = 0; i < n; i++) {
    uint8_t *const to = out + i * size;
    if (frames[i] >= 0) {
      places.emplace_back(frames[i], i);
    } else if (filled) {
      memcpy(to, filled, (size_t)size);
    } else {
      fill(to), filled = to;
    }
  }
  if (places.empty()) return;
  std::sort(places.begin(), places.end());
  std::vector<int32_t> wanted;
  for (const auto &[frame, i] : places)
    if (wanted.empty() || wanted.back() != frame) wanted.push_back(frame);
  if (wanted.back() >= (int64_t)index.shown.size())
    fail("[internal error] frame %d of %lld", wanted.back(), (long long)index.shown.size());
  decode_frames(packets_in(file, index), index, wanted, [&](int32_t frame, const Picture &picture) {
    check_size(index, frame, picture);
    auto it = std::lower_bound(places.begin(), places.end(), std::make_pair(frame, (int64_t)-1));
    uint8_t *const first = out + it->second * size;
    make(picture, first);
    while (++it != places.end() && it->first == frame) memcpy(out + it->second * size, first, (size_t)size);
  });
}

namespace {

void run(const Tensor *out, const Tensor *in, const DecodeVideoArgs &a, Scratch &scratch) {
  const int64_t height = out->shape[1], width = out->shape[2];
  const auto fill = [&](uint8_t *to) { fill_pixels(to, height * width, a.fill); };
  const auto make = [&](const Picture &picture, uint8_t *to) {
    picture_to_pixels(picture, a.as_ycbcr, {a.y, a.x, height, width}, {to, 3 * width, 0}, scratch);
  };
  give_frames({in->as<uint8_t>(), in->volume()}, *(const VideoIndex *)a.index, a.frames, out->shape[0],
              out->as<uint8_t>(), height * width * 3, fill, make);
}

}  // namespace

EXPORT_KERNEL(decode_video, DecodeVideoArgs, run)

// Reads the indices of n encoded videos and fills `info`; `errors`: kErrorSize bytes per video. The result is freed by
// `end_videos`; info[i].index is valid until then.
EXPORT VideoIndex *plan_videos(const Tensor *files, int64_t n, VideoInfo *info, char *errors) {
  auto indices = std::make_unique<VideoIndex[]>((size_t)n);
  for (int64_t i = 0; i < n; i++) {
    info[i] = VideoInfo{};
    VideoIndex &index = indices[(size_t)i];
    if (i && files[i].data == files[i - 1].data && files[i].volume() == files[i - 1].volume() && info[i - 1].frames) {
      info[i] = info[i - 1];  // several sequences of one video
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

// Sets for each frame whether it is decoded without others.
EXPORT void video_keys(const VideoIndex *index, uint8_t *is_key) {
  for (size_t i = 0; i < index->shown.size(); i++) is_key[i] = index->packets[(size_t)index->shown[i]].is_key != 0;
}
EXPORT_SHORT(video_keys)
