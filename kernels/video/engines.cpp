// SPDX-License-Identifier: Apache-2.0
#include "video/engines.h"

#include <algorithm>

#include "core/driver.h"
#include "core/kernel.h"

namespace {

constexpr uint32_t kAhead = 3;      // pictures the decoder may be ahead of presentation
constexpr uint32_t kMapped = 2;     // pictures read at the same time
constexpr uint32_t kAligned = 32;   // sizes of pictures are rounded up to multiples, for later videos
constexpr uint32_t kSurfaces = 10;  // at least, so that other videos fit

uint32_t aligned(uint32_t n) { return (n + kAligned - 1) / kAligned * kAligned; }

int16_t even(uint32_t n) { return (int16_t)(n + (n & 1)); }

}  // namespace

void check_cuvid(int code, const char *doing) {
  if (code) fail("%s: CUDA error %d", doing, code);
}

Current::Current(void *context) { check_cuvid(driver.push(context), "using the GPU"); }
Current::~Current() {
  void *context;
  driver.pop(&context);
}

// Codecs with exact decoding, so that pictures equal the CPU's. MPEG-1, MPEG-2 and MPEG-4 leave the inverse transform's
// rounding to the decoder.
int codec_on_gpu(const char *name) {
  constexpr std::pair<const char *, int> kExact[] = {
      {"h264", cuvid::H264}, {"hevc", cuvid::HEVC}, {"vp8", cuvid::VP8}, {"vp9", cuvid::VP9}};
  for (const auto &[exact, codec] : kExact)
    if (!strcmp(name, exact)) return codec;
  return -1;
}

void Lane::close(const cuvid::Functions &f) {
  if (!decoder) return;
  driver.record(done, stream);
  driver.synchronize(done);  // kernels may still read its pictures
  f.destroy(decoder);
  decoder = nullptr, codec = -1;
}

VideoEngines::~VideoEngines() {
  for (Lane &lane : lanes_) lane.close(f);
}

cuvid::Caps VideoEngines::caps(int codec, const StreamFormat &format) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto key = std::make_tuple(codec, (int)format.chroma, (int)format.bits);
  const auto known = caps_.find(key);
  if (known != caps_.end()) return known->second;
  cuvid::Caps caps{};
  caps.codec = codec, caps.chroma = format.chroma, caps.bits_minus_8 = (uint32_t)format.bits - 8;
  if (f.caps(&caps)) caps.is_supported = 0;
  return caps_[key] = caps;
}

Lane &VideoEngines::take(int codec, const StreamFormat &format) {
  std::lock_guard<std::mutex> lock(mutex_);
  Lane *found = nullptr;
  const auto worth = [&](const Lane &lane) {
    return lane.codec == codec && lane.chroma == format.chroma && lane.bits == format.bits ? 2 : lane.codec < 0;
  };
  for (Lane &lane : lanes_)
    if (!lane.is_busy && (!found || worth(lane) > worth(*found))) found = &lane;
  if (!found) fail("[internal error] more threads than decoders");
  found->is_busy = true;
  return *found;
}

void VideoEngines::give_back(Lane &lane) {
  std::lock_guard<std::mutex> lock(mutex_);
  lane.is_busy = false;
}

int VideoEngines::prepare(Lane &lane, const cuvid::Format &s) {
  const int bits = s.luma_bits_minus_8 + 8;
  const uint32_t needed = s.min_surfaces + kAhead;
  const bool is_kind = lane.decoder && lane.codec == s.codec && lane.chroma == s.chroma && lane.bits == bits;
  cuvid::Rectangle whole{};
  whole.right = even(s.width), whole.bottom = even(s.height);
  if (is_kind && needed <= lane.n_surfaces && s.width <= lane.max_width && s.height <= lane.max_height) {
    if (s.width == lane.width && s.height == lane.height) return (int)lane.n_surfaces;
    cuvid::Reconfiguration r{};
    r.width = s.width, r.height = s.height, r.n_surfaces = lane.n_surfaces;
    r.out_width = (uint32_t)whole.right, r.out_height = (uint32_t)whole.bottom;
    r.shown = r.target = whole;
    if (!f.reconfigure(lane.decoder, &r)) {
      lane.width = s.width, lane.height = s.height;
      __atomic_fetch_add(&n_reconfigured, 1, __ATOMIC_RELAXED);
      return (int)lane.n_surfaces;
    }
  }
  cuvid::Creation c{};
  c.width = s.width, c.height = s.height;
  c.max_width = aligned(s.width), c.max_height = aligned(s.height);
  c.n_surfaces = std::max(needed, kSurfaces);
  if (is_kind) {  // it grows, as videos of both sizes are expected again
    c.max_width = std::max<uint64_t>(c.max_width, lane.max_width);
    c.max_height = std::max<uint64_t>(c.max_height, lane.max_height);
    c.n_surfaces = std::max<uint64_t>(c.n_surfaces, lane.n_surfaces);
  }
  c.codec = s.codec, c.chroma = s.chroma, c.bits_minus_8 = s.luma_bits_minus_8;
  c.surface =
      s.chroma == cuvid::C444 ? (bits > 8 ? cuvid::YUV444_16 : cuvid::YUV444) : (bits > 8 ? cuvid::P016 : cuvid::NV12);
  c.out_width = (uint64_t)whole.right, c.out_height = (uint64_t)whole.bottom, c.n_mapped = kMapped;
  c.shown = c.target = whole;
  lane.close(f);
  std::lock_guard<std::mutex> lock(creating_);  // the driver creates one at a time anyway
  check_cuvid(f.create(&lane.decoder, &c), "making a video decoder");
  n_created++;
  lane.codec = s.codec, lane.chroma = s.chroma, lane.bits = bits;
  lane.n_surfaces = (uint32_t)c.n_surfaces, lane.width = s.width, lane.height = s.height;
  lane.max_width = (uint32_t)c.max_width, lane.max_height = (uint32_t)c.max_height;
  return (int)lane.n_surfaces;
}

// The GPU's decoders in the context `context`, each with one of n streams and events.
EXPORT VideoEngines *video_engines_open(const cuvid::Functions *functions, void *context, int64_t n, void **streams,
                                        void **events) {
  std::vector<Lane> lanes((size_t)n);
  for (int64_t i = 0; i < n; i++) lanes[(size_t)i].stream = streams[i], lanes[(size_t)i].done = events[i];
  return new VideoEngines(*functions, context, std::move(lanes));
}
EXPORT_SHORT(video_engines_open)

// Called with the context current, when nothing is being decoded any more.
EXPORT void video_engines_close(VideoEngines *engines) { delete engines; }
EXPORT_LONG(video_engines_close)

// How many decoders were created, and how often one was reconfigured to another picture size.
EXPORT void video_engines_counts(const VideoEngines *engines, int64_t *counts) {
  counts[0] = engines->n_created, counts[1] = engines->n_reconfigured;
}
EXPORT_SHORT(video_engines_counts)
