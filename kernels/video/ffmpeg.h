// SPDX-License-Identifier: Apache-2.0
// The decoders of the installed FFmpeg, opened at run time: majors 58 to 63 of libavcodec.
//
// Neither linking nor FFmpeg's headers are needed: only functions, options by name, and the few fields below, whose
// offsets are the same in all these majors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ffmpeg {

struct BufferRef;
struct Codec;
struct Context;
struct Frame;
struct PacketData;
struct Parameters;

struct Functions {
  unsigned (*avcodec_version)();
  const Codec *(*avcodec_find_decoder_by_name)(const char *);
  Context *(*avcodec_alloc_context3)(const Codec *);
  void (*avcodec_free_context)(Context **);
  Parameters *(*avcodec_parameters_alloc)();
  void (*avcodec_parameters_free)(Parameters **);
  int (*avcodec_parameters_to_context)(Context *, const Parameters *);
  int (*avcodec_open2)(Context *, const Codec *, void **);
  int (*avcodec_send_packet)(Context *, const PacketData *);
  int (*avcodec_receive_frame)(Context *, Frame *);
  void (*avcodec_flush_buffers)(Context *);
  PacketData *(*av_packet_alloc)();
  void (*av_packet_free)(PacketData **);
  void (*av_packet_unref)(PacketData *);
  int (*av_new_packet)(PacketData *, int);
  int (*avcodec_default_get_buffer2)(Context *, Frame *, int);
  Frame *(*av_frame_alloc)();
  void (*av_frame_free)(Frame **);
  void (*av_frame_unref)(Frame *);
  int (*av_frame_ref)(Frame *, const Frame *);
  BufferRef *(*av_frame_get_plane_buffer)(Frame *, int);
  void *(*av_mallocz)(size_t);
  int (*av_opt_set_int)(void *, const char *, int64_t, int);
  int (*av_opt_get_int)(void *, const char *, int, int64_t *);
  int (*av_opt_get_pixel_fmt)(void *, const char *, int, int *);
  const char *(*av_get_pix_fmt_name)(int);
  int (*av_strerror)(int, char *, size_t);

  int get_buffer2;  // offset of this field of AVCodecContext, which differs by major
};

// Null until `ffmpeg_open` has found all of them.
const Functions *functions();

// The decoder for an index's codec name; null if this FFmpeg has none.
const Codec *find_decoder(const Functions &ff, const char *codec);

constexpr int kTryAgain = -11;  // AVERROR(EAGAIN)
constexpr int kEndOfStream = -('E' | 'O' << 8 | 'F' << 16 | ' ' << 24);
constexpr int kPadding = 64;                // zeros required after decoder input
constexpr int64_t kSkipUnreferenced = 8;    // AVDISCARD_NONREF, for the option skip_frame
constexpr int64_t kOutputCorrupt = 1 << 3;  // AV_CODEC_FLAG_OUTPUT_CORRUPT
constexpr int64_t kSkipNothing = 0;         // AVDISCARD_DEFAULT

template <class T>
T &field(void *of, int offset) {
  return *(T *)((char *)of + offset);
}

// AVPacket
inline int64_t &packet_pts(PacketData *p) { return field<int64_t>(p, 8); }
inline int64_t &packet_dts(PacketData *p) { return field<int64_t>(p, 16); }
inline uint8_t *packet_data(PacketData *p) { return field<uint8_t *>(p, 24); }
inline int32_t &packet_flags(PacketData *p) { return field<int32_t>(p, 40); }
// AVFrame
inline const uint8_t *frame_plane(Frame *f, int i) { return field<uint8_t *>(f, 8 * i); }
inline int32_t frame_line(Frame *f, int i) { return field<int32_t>(f, 64 + 4 * i); }
inline int32_t frame_samples(Frame *f) { return field<int32_t>(f, 112); }
inline int32_t frame_width(Frame *f) { return field<int32_t>(f, 104); }
inline int32_t frame_height(Frame *f) { return field<int32_t>(f, 108); }
inline int32_t frame_format(Frame *f) { return field<int32_t>(f, 116); }
inline int64_t frame_pts(Frame *f) { return field<int64_t>(f, 136); }
// AVBufferRef; its size is an int in major 58, a size_t in later ones
inline uint8_t *buffer_data(BufferRef *b) { return field<uint8_t *>(b, 8); }
inline int32_t buffer_size(BufferRef *b) { return field<int32_t>(b, 16); }
// AVCodec, AVCodecContext, AVCodecParameters
inline int32_t codec_type(const Codec *c) { return field<int32_t>((void *)c, 16); }
inline int32_t codec_id(const Codec *c) { return field<int32_t>((void *)c, 20); }
inline void set_log_offset(Context *c, int32_t levels) { field<int32_t>(c, 8) = levels; }
inline Context *&context_opaque(Context *c) { return field<Context *>(c, 48); }
inline void set_codec(Parameters *p, int32_t type, int32_t id) {
  field<int32_t>(p, 0) = type, field<int32_t>(p, 4) = id;
}
inline void set_extradata(Parameters *p, uint8_t *data, int32_t size) {
  field<uint8_t *>(p, 16) = data, field<int32_t>(p, 24) = size;
}

// A decoder with its input packet and output frame. Failures are reported as exceptions, not on stderr.
struct Decoder {
  const Functions &ff;
  const std::string codec;
  const std::vector<uint8_t> extradata;
  Context *context = nullptr;
  Frame *frame = nullptr;
  PacketData *packet = nullptr;

  // `what` is the kind of data ("video"), for errors; `codec` is FFmpeg's codec name.
  Decoder(const Functions &ff, const char *what, const char *codec, const std::vector<uint8_t> &extradata,
          const std::vector<std::pair<const char *, int64_t>> &options);
  ~Decoder();
  Decoder(const Decoder &) = delete;

  // Decodes to memory that is cleared for each picture: FFmpeg uses memory again, and leaves what it can't decode of a
  // damaged picture as it was. The memory is that of `lender`, an open decoder with the same configuration that must
  // outlive this one and be used by no other thread; or its own if null.
  void clear_pictures(Context *lender);
  // Fills the packet and its padding, as FFmpeg may read a few bytes beyond the data.
  void fill_packet(const std::vector<uint8_t> &prefix, const uint8_t *data, int64_t size);
  [[noreturn]] void fail_with(int status, const char *format, ...) const __attribute__((format(printf, 3, 4)));

 private:
  Decoder(const Functions &functions, const char *name, const std::vector<uint8_t> &config)
      : ff(functions), codec(name), extradata(config) {}
};

}  // namespace ffmpeg
