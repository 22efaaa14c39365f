// SPDX-License-Identifier: Apache-2.0
#include "video/ffmpeg.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/kernel.h"
#include "video/codecs.h"

namespace ffmpeg {
namespace {

constexpr unsigned kFirstMajor = 58, kLastMajor = 63;

std::atomic<const Functions *> g_functions{nullptr};
std::mutex g_opening;
Functions g_found;

void open_libraries(const char *util_path, const char *codec_path) {
  void *util = dlopen(util_path, RTLD_NOW | RTLD_LOCAL);
  if (!util) fail("%s", dlerror());
  void *codec = dlopen(codec_path, RTLD_NOW | RTLD_LOCAL);
  if (!codec) fail("%s", dlerror());
  const auto find = [](void *library, const char *name, auto *to) {
    void *symbol = dlsym(library, name);
    if (!symbol) fail("it lacks the function %s", name);
    *to = reinterpret_cast<std::remove_reference_t<decltype(*to)>>(symbol);
  };
  Functions f{};
#define FIND(library, name) find(library, #name, &f.name)
  FIND(codec, avcodec_version);
  const unsigned major = f.avcodec_version() >> 16;
  if (major < kFirstMajor || major > kLastMajor)
    fail("libavcodec %u is not supported; supported: %u to %u", major, kFirstMajor, kLastMajor);
  FIND(codec, avcodec_find_decoder_by_name);
  FIND(codec, avcodec_alloc_context3);
  FIND(codec, avcodec_free_context);
  FIND(codec, avcodec_parameters_alloc);
  FIND(codec, avcodec_parameters_free);
  FIND(codec, avcodec_parameters_to_context);
  FIND(codec, avcodec_open2);
  FIND(codec, avcodec_send_packet);
  FIND(codec, avcodec_receive_frame);
  FIND(codec, avcodec_flush_buffers);
  FIND(codec, av_packet_alloc);
  FIND(codec, av_packet_free);
  FIND(codec, av_packet_unref);
  FIND(codec, av_new_packet);
  FIND(util, av_frame_alloc);
  FIND(util, av_frame_free);
  FIND(util, av_frame_unref);
  FIND(util, av_frame_ref);
  FIND(util, av_mallocz);
  FIND(util, av_opt_set_int);
  FIND(util, av_opt_get_int);
  FIND(util, av_get_pix_fmt_name);
  FIND(util, av_strerror);
#undef FIND
  g_found = f;
  g_functions = &g_found;
}

}  // namespace

const Functions *functions() { return g_functions; }

const Codec *find_decoder(const Functions &ff, const char *codec) {
  if (strcmp(codec, "av1")) return ff.avcodec_find_decoder_by_name(codec);
  // FFmpeg's own decoder of this name needs hardware.
  const Codec *found = ff.avcodec_find_decoder_by_name("libdav1d");
  return found ? found : ff.avcodec_find_decoder_by_name("libaom-av1");
}

}  // namespace ffmpeg

// Opens FFmpeg's libraries; they stay open. Returns the version of libavcodec (major << 16 | minor << 8 | micro), or 0
// with the reason in `error` (kErrorSize bytes).
EXPORT int64_t ffmpeg_open(const char *util_path, const char *codec_path, char *error) {
  std::lock_guard<std::mutex> lock(ffmpeg::g_opening);
  try {
    if (!ffmpeg::functions()) ffmpeg::open_libraries(util_path, codec_path);
    return ffmpeg::functions()->avcodec_version();
  } catch (const std::exception &e) {
    snprintf(error, kErrorSize, "%s", e.what());
    return 0;
  }
}

EXPORT_LONG(ffmpeg_open)

// Whether the codec at place i of those that are known can be decoded; -1 behind the last. `name`: 16 bytes. Only after
// ffmpeg_open.
EXPORT int32_t ffmpeg_decodes(int64_t i, char *name) {
  const char *const codec = codec_at(i);
  if (!codec) return -1;
  snprintf(name, 16, "%s", codec);
  return ffmpeg::find_decoder(*ffmpeg::functions(), codec) != nullptr;
}

EXPORT_LONG(ffmpeg_decodes)
