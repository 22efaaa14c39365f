// SPDX-License-Identifier: Apache-2.0
// The used part of NVIDIA's video decoding interface (NVDECODE 12, libnvcuvid, which comes with the driver): functions,
// found at run time, and structures. Unnamed fields of structures are zero.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuvid {

typedef void *Decoder;
typedef void *Parser;

enum Codec { MPEG1, MPEG2, MPEG4, VC1, H264, JPEG, H264_SVC, H264_MVC, HEVC, VP8, VP9, AV1 };
enum Chroma { MONOCHROME, C420, C422, C444 };
enum Surface { NV12, P016, YUV444, YUV444_16 };  // 16-bit ones have samples in the upper bits
enum Status { INVALID, IN_PROGRESS, SUCCESS, FAILED = 8, CONCEALED = 9 };
enum PacketFlag { END_OF_STREAM = 1, HAS_TIME = 2, DISCONTINUITY = 4, END_OF_PICTURE = 8 };

struct Caps {
  int32_t codec, chroma;
  uint32_t bits_minus_8, zero[3];
  uint8_t is_supported, n_engines;
  uint16_t surfaces;  // one bit per Surface
  uint32_t max_width, max_height, max_macroblocks;
  uint16_t min_width, min_height;
  uint32_t more[11];
};
static_assert(sizeof(Caps) == 88 && offsetof(Caps, is_supported) == 24 && offsetof(Caps, max_width) == 28 &&
              offsetof(Caps, min_width) == 40);

struct Rectangle {
  int16_t left, top, right, bottom;
};

struct Creation {
  uint64_t width, height, n_surfaces;  // as coded
  int32_t codec, chroma;
  uint64_t flags, bits_minus_8, only_intra, max_width, max_height, zero;
  Rectangle shown;
  int32_t surface, deinterlacing;
  uint64_t out_width, out_height, n_mapped;
  void *lock;
  Rectangle target;
  uint64_t histogram, more[4];
};
static_assert(sizeof(Creation) == 176 && offsetof(Creation, codec) == 24 && offsetof(Creation, shown) == 80 &&
              offsetof(Creation, out_width) == 96 && offsetof(Creation, target) == 128);

struct Reconfiguration {
  uint32_t width, height, out_width, out_height, n_surfaces, zero[12];
  Rectangle shown, target;
  uint32_t more[11];
};
static_assert(sizeof(Reconfiguration) == 128 && offsetof(Reconfiguration, shown) == 68);

// The beginning of a picture's parameters.
struct PictureHead {
  int32_t width_in_macroblocks, height_in_macroblocks, index, is_field, is_bottom, is_second_field;
  uint32_t n_bytes;
  const uint8_t *bytes;
  uint32_t n_slices;
  const uint32_t *slices;
  int32_t is_reference, is_intra;
};
static_assert(offsetof(PictureHead, index) == 8 && offsetof(PictureHead, is_reference) == 56);

struct Mapping {
  int32_t is_progressive, second_field, top_field_first, unpaired_field;
  uint32_t zero[2];
  uint64_t raw[4];
  void *stream;
  uint32_t more[46];
  void *histogram, *more2;
};
static_assert(sizeof(Mapping) == 264 && offsetof(Mapping, stream) == 56 && offsetof(Mapping, histogram) == 248);

struct StatusOf {
  int32_t status;
  uint32_t more[31];
  void *more2[8];
};
static_assert(sizeof(StatusOf) == 192);

struct Format {
  int32_t codec;
  uint32_t rate, rate_divisor;
  uint8_t is_progressive, luma_bits_minus_8, chroma_bits_minus_8, min_surfaces;
  uint32_t width, height;  // as coded
  struct {
    int32_t left, top, right, bottom;
  } shown;
  int32_t chroma;
  uint32_t bit_rate;
  int32_t aspect_x, aspect_y;
  uint8_t flags;  // bit 3: full range
  uint8_t primaries, transfer, matrix;
  uint32_t n_header;
};
static_assert(sizeof(Format) == 64 && offsetof(Format, width) == 16 && offsetof(Format, shown) == 24 &&
              offsetof(Format, chroma) == 40 && offsetof(Format, flags) == 56);

struct Shown {  // a picture to be shown now
  int32_t index, is_progressive, top_field_first, repeats;
  int64_t time;
};
static_assert(sizeof(Shown) == 24);

struct ParserCreation {
  int32_t codec;
  uint32_t n_surfaces, clock_rate, error_threshold, delay, flags, zero[4];
  void *user;
  int (*on_sequence)(void *user, Format *);  // returns 0 on failure; above 1: the number of surfaces
  int (*on_picture)(void *user, PictureHead *);
  int (*on_shown)(void *user, Shown *);
  void *more[7];
  void *header;
};
static_assert(sizeof(ParserCreation) == 136 && offsetof(ParserCreation, user) == 40 &&
              offsetof(ParserCreation, on_shown) == 64 && offsetof(ParserCreation, header) == 128);

struct Data {
  uint64_t flags, size;
  const uint8_t *bytes;
  int64_t time;
};
static_assert(sizeof(Data) == 32);

// All return a CUresult. In the order in which Python passes them in.
struct Functions {
  int (*caps)(Caps *);
  int (*create)(Decoder *, Creation *);
  int (*destroy)(Decoder);
  int (*reconfigure)(Decoder, Reconfiguration *);
  int (*decode)(Decoder, PictureHead *);
  int (*status)(Decoder, int, StatusOf *);
  int (*map)(Decoder, int, uint64_t *, uint32_t *, Mapping *);
  int (*unmap)(Decoder, uint64_t);
  int (*create_parser)(Parser *, ParserCreation *);
  int (*parse)(Parser, Data *);
  int (*destroy_parser)(Parser);
};

}  // namespace cuvid
