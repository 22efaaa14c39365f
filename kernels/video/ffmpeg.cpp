// SPDX-License-Identifier: Apache-2.0
#include "video/ffmpeg.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdarg>
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

// AVCodecContext.get_buffer2
int cleared_buffer(Context *context, Frame *frame, int flags) {
  const Functions &ff = *functions();
  // How memory is aligned depends on the pixel format of the decoder, which a damaged stream may change.
  Context *lender = context_opaque(context);
  int format = -1;
  if (lender && (ff.av_opt_get_pixel_fmt(lender, "pixel_format", 0, &format) < 0 || format != frame_format(frame)))
    lender = nullptr;
  const int status = ff.avcodec_default_get_buffer2(lender ? lender : context, frame, flags);
  if (status < 0) return status;
  const uint8_t *last = nullptr;
  for (int p = 0; p < 4; p++) {
    BufferRef *const buffer = ff.av_frame_get_plane_buffer(frame, p);
    if (!buffer || buffer_data(buffer) == last) continue;
    last = buffer_data(buffer);
    memset(buffer_data(buffer), 0, (size_t)buffer_size(buffer));
  }
  return status;
}

// New contexts hold the default, whose address is known.
int offset_of_get_buffer2(const Functions &ff) {
  constexpr int kMost = 800;  // bytes that AVCodecContext has in all majors
  Context *context = ff.avcodec_alloc_context3(nullptr);
  if (!context) throw std::bad_alloc();
  int found = 0;
  while (found < kMost &&
         field<decltype(ff.avcodec_default_get_buffer2)>(context, found) != ff.avcodec_default_get_buffer2)
    found += sizeof(void *);
  ff.avcodec_free_context(&context);
  if (found >= kMost) fail("its AVCodecContext is not as expected: get_buffer2 was not found");
  return found;
}

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
  FIND(codec, avcodec_default_get_buffer2);
  FIND(util, av_frame_alloc);
  FIND(util, av_frame_free);
  FIND(util, av_frame_unref);
  FIND(util, av_frame_ref);
  FIND(util, av_frame_get_plane_buffer);
  FIND(util, av_mallocz);
  FIND(util, av_opt_set_int);
  FIND(util, av_opt_get_int);
  FIND(util, av_opt_get_pixel_fmt);
  FIND(util, av_get_pix_fmt_name);
  FIND(util, av_strerror);
#undef FIND
  f.get_buffer2 = offset_of_get_buffer2(f);
  g_found = f;
  g_functions = &g_found;
}

}  // namespace

const Functions *functions() { return g_functions; }

const Codec *find_decoder(const Functions &ff, const char *codec) {
  if (strcmp(codec, "av1")) return ff.avcodec_find_decoder_by_name(codec);
  // FFmpeg's own AV1 decoder needs hardware.
  const Codec *found = ff.avcodec_find_decoder_by_name("libdav1d");
  return found ? found : ff.avcodec_find_decoder_by_name("libaom-av1");
}

Decoder::Decoder(const Functions &functions, const char *what, const char *name, const std::vector<uint8_t> &config,
                 const std::vector<std::pair<const char *, int64_t>> &options)
    : Decoder(functions, name, config) {  // so that exceptions thrown here still free it
  constexpr int kSilent = 100;            // added to message levels: above all that are printed
  if (!*name) fail("a %s codec that is not known", what);
  const Codec *found = find_decoder(ff, name);
  if (!found) fail("the FFmpeg that was found has no decoder for %s", name);
  context = ff.avcodec_alloc_context3(found), frame = ff.av_frame_alloc(), packet = ff.av_packet_alloc();
  if (!context || !frame || !packet) throw std::bad_alloc();
  set_log_offset(context, kSilent);
  Parameters *parameters = ff.avcodec_parameters_alloc();
  if (!parameters) throw std::bad_alloc();
  set_codec(parameters, codec_type(found), codec_id(found));
  if (!extradata.empty()) {
    auto *copy = (uint8_t *)ff.av_mallocz(extradata.size() + kPadding);
    if (!copy) throw std::bad_alloc();
    memcpy(copy, extradata.data(), extradata.size());
    set_extradata(parameters, copy, (int32_t)extradata.size());
  }
  int status = ff.avcodec_parameters_to_context(context, parameters);
  ff.avcodec_parameters_free(&parameters);
  // Samples, and groups of pictures, are decoded in parallel instead. What FFmpeg makes of damaged H.264, HEVC and
  // MPEG-4 depends on its number of threads, and differs from run to run with the same number, at times without an
  // error or a flagged picture (decision 0085).
  ff.av_opt_set_int(context, "threads", 1, 0);
  for (const auto &[option, value] : options) ff.av_opt_set_int(context, option, value, 0);
  if (status >= 0) status = ff.avcodec_open2(context, found, nullptr);
  if (status < 0) fail_with(status, "FFmpeg can't decode this %s %s", name, what);
}

Decoder::~Decoder() {
  if (packet) ff.av_packet_free(&packet);
  if (frame) ff.av_frame_free(&frame);
  if (context) ff.avcodec_free_context(&context);
}

void Decoder::clear_pictures(Context *lender) {
  context_opaque(context) = lender;
  field<decltype(&cleared_buffer)>(context, ff.get_buffer2) = cleared_buffer;
}

void Decoder::fill_packet(const std::vector<uint8_t> &prefix, const uint8_t *data, int64_t size) {
  const int64_t n = (int64_t)prefix.size() + size;
  if (n > INT32_MAX - kPadding) fail("a packet of %lld bytes", (long long)n);
  if (ff.av_new_packet(packet, (int)n) < 0) throw std::bad_alloc();
  if (!prefix.empty()) memcpy(packet_data(packet), prefix.data(), prefix.size());
  memcpy(packet_data(packet) + prefix.size(), data, (size_t)size);
}

void Decoder::fail_with(int status, const char *format, ...) const {
  char reason[128] = "", text[kErrorSize / 2];
  ff.av_strerror(status, reason, sizeof reason);
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  fail("%s: %s", text, reason);
}

}  // namespace ffmpeg

// Opens FFmpeg's libraries, which stay open. Returns the version of libavcodec (major << 16 | minor << 8 | micro), or 0
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

// Whether codec i of the known ones can be decoded; -1 beyond the last. `name`: 16 bytes. Call ffmpeg_open first.
EXPORT int32_t ffmpeg_decodes(int64_t i, char *name) {
  const char *const codec = codec_at(i);
  if (!codec) return -1;
  snprintf(name, 16, "%s", codec);
  return ffmpeg::find_decoder(*ffmpeg::functions(), codec) != nullptr;
}

EXPORT_LONG(ffmpeg_decodes)
