// SPDX-License-Identifier: Apache-2.0
// JPEG 2000 through OpenJPEG: JP2 files and bare codestreams, up to 16 bits, subsampled components, sYCC.
#include <openjpeg.h>

#include <algorithm>

#include "decode/codec.h"

namespace {

// The content of the codestream's SIZ segment, and whether a JP2 palette precedes it.
struct Size {
  int64_t height, width, tiles;
  int components, depth, palette_columns = 0;
};

Size parse_codestream(Bytes in, int64_t at) {
  // SOC, SIZ, length, capabilities, image extent and offset, tile extent and offset, component count, depths.
  if (!in.starts(at, "\xff\x4f\xff\x51", 4)) fail("JPEG 2000: no codestream at byte %lld", (long long)at);
  at += 8;
  int64_t x1 = in.be32(at), y1 = in.be32(at + 4), x0 = in.be32(at + 8), y0 = in.be32(at + 12);
  int64_t tile_w = in.be32(at + 16), tile_h = in.be32(at + 20);
  Size s{y1 - y0, x1 - x0, 0, (int)in.be16(at + 32), (int)(in.u8(at + 34) & 0x7f) + 1};
  check_extent("JPEG 2000", s.height, s.width);
  if (!tile_w || !tile_h || !s.components)
    fail("JPEG 2000: tiles of %lld x %lld pixels, %d components", (long long)tile_h, (long long)tile_w, s.components);
  s.tiles = ((s.height - 1) / tile_h + 1) * ((s.width - 1) / tile_w + 1);
  // Each tile costs the library kilobytes before any pixel is read.
  if (s.tiles > 64 + s.height * s.width / 256)
    fail("JPEG 2000: %lld tiles for %lld x %lld pixels", (long long)s.tiles, (long long)s.height, (long long)s.width);
  return s;
}

// JP2 is a sequence of boxes: length, type, content; length 0 means up to the end, 1 a 64-bit length after the type.
Size parse(Bytes in) {
  if (in.starts(0, "\xff\x4f", 2)) return parse_codestream(in, 0);
  int palette = 0;
  for (int64_t at = 0;;) {
    int64_t length = in.be32(at), head = 8;
    uint32_t type = in.be32(at + 4);
    if (length == 1) {
      length = (int64_t)((uint64_t)in.be32(at + 8) << 32 | in.be32(at + 12));
      head = 16;
    }
    if (type == 0x6a703263) {  // jp2c
      Size s = parse_codestream(in, at + head);
      s.palette_columns = palette;
      return s;
    }
    if (type == 0x6a703268) {  // jp2h: a box of boxes
      at += head;
      continue;
    }
    if (type == 0x70636c72) palette = in.u8(at + head + 2);  // pclr
    if (length < head || length > in.size)
      fail("JPEG 2000: a box of %lld bytes at byte %lld", (long long)length, (long long)at);
    at += length;
  }
}

struct Reader {
  Bytes in;
  int64_t at = 0;
  char text[160] = "";
  opj_stream_t *stream = nullptr;
  opj_codec_t *codec = nullptr;
  opj_image_t *image = nullptr;
  ~Reader() {
    if (image) opj_image_destroy(image);
    if (codec) opj_destroy_codec(codec);
    if (stream) opj_stream_destroy(stream);
  }
};

OPJ_SIZE_T read(void *to, OPJ_SIZE_T n, void *user) {
  Reader &r = *static_cast<Reader *>(user);
  if (r.at >= r.in.size) return (OPJ_SIZE_T)-1;
  int64_t m = std::min<int64_t>((int64_t)n, r.in.size - r.at);
  memcpy(to, r.in.data + r.at, (size_t)m);
  r.at += m;
  return (OPJ_SIZE_T)m;
}
OPJ_OFF_T skip(OPJ_OFF_T n, void *user) {
  Reader &r = *static_cast<Reader *>(user);
  int64_t m = std::min<int64_t>(n, r.in.size - r.at);
  if (m < 0) return -1;
  r.at += m;
  return m;
}
OPJ_BOOL seek(OPJ_OFF_T to, void *user) {
  Reader &r = *static_cast<Reader *>(user);
  if (to < 0 || to > r.in.size) return OPJ_FALSE;
  r.at = to;
  return OPJ_TRUE;
}
void keep_error(const char *text, void *user) {
  Reader &r = *static_cast<Reader *>(user);
  if (r.text[0]) return;
  snprintf(r.text, sizeof r.text, "%s", text);
  r.text[strcspn(r.text, "\n")] = 0;
}
void ignore(const char *, void *) {}

[[noreturn]] void damaged(const Reader &r) { fail("JPEG 2000: %s", r.text[0] ? r.text : "damaged or cut off"); }

void open(Reader &r) {
  r.stream = opj_stream_create(1 << 16, OPJ_TRUE);
  r.codec = opj_create_decompress(r.in.starts(0, "\xff\x4f", 2) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  if (!r.stream || !r.codec) throw std::bad_alloc();
  opj_stream_set_user_data(r.stream, &r, nullptr);
  opj_stream_set_user_data_length(r.stream, (OPJ_UINT64)r.in.size);
  opj_stream_set_read_function(r.stream, read);
  opj_stream_set_skip_function(r.stream, skip);
  opj_stream_set_seek_function(r.stream, seek);
  opj_set_error_handler(r.codec, keep_error, &r);
  opj_set_warning_handler(r.codec, ignore, &r);
  opj_set_info_handler(r.codec, ignore, &r);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!opj_setup_decoder(r.codec, &parameters)) damaged(r);
}

// Writes one component into the interleaved image, stretched to the full range; subsampled ones by the nearest sample.
template <class T>
void interleave(const opj_image_t &image, int c, int64_t height, int64_t width, int64_t channels, T *out) {
  const opj_image_comp_t &comp = image.comps[c];
  const int64_t top = (1ll << comp.prec) - 1, bias = comp.sgnd ? 1ll << (comp.prec - 1) : 0;
  for (int64_t y = 0; y < height; y++) {
    const OPJ_INT32 *row = comp.data + std::min<int64_t>(y / comp.dy, comp.h - 1) * comp.w;
    for (int64_t x = 0; x < width; x++) {
      int64_t v =
          row[comp.dx == 1 ? std::min<int64_t>(x, comp.w - 1) : std::min<int64_t>(x / comp.dx, comp.w - 1)] + bias;
      v = std::max<int64_t>(0, std::min(v, top));
      out[(y * width + x) * channels + c] = (T)(top == (T)~0 ? v : (v * (T)~0 + top / 2) / top);
    }
  }
}

// Full-range YCbCr (sYCC, IEC 61966-2-1 amendment 1) to RGB, in place.
template <class T>
void sycc_to_rgb(T *p, int64_t n, int64_t channels) {
  constexpr float half = (float)((T)~0 / 2 + 1);
  for (int64_t i = 0; i < n; i++, p += channels) {
    float y = p[0], cb = p[1] - half, cr = p[2] - half;
    p[0] = saturate<T>(y + 1.402f * cr);
    p[1] = saturate<T>(y - 0.344136f * cb - 0.714136f * cr);
    p[2] = saturate<T>(y + 1.772f * cb);
  }
}

template <class T>
void write(const opj_image_t &image, int64_t height, int64_t width, T *out) {
  int channels = (int)image.numcomps;
  for (int c = 0; c < channels; c++) interleave(image, c, height, width, channels, out);
  if (image.color_space == OPJ_CLRSPC_SYCC && channels >= 3) sycc_to_rgb(out, height * width, channels);
}

}  // namespace

ImageInfo peek_jpeg2000(Bytes in) {
  Size s = parse(in);
  int channels = s.palette_columns ? s.palette_columns : s.components;
  return {FORMAT_JPEG2000, (int32_t)s.height, (int32_t)s.width, channels, s.depth, 1, 0, 0};
}

void decode_jpeg2000(Bytes in, Canvas &canvas) {
  Size s = parse(in);
  Reader r;
  r.in = in;
  open(r);
  if (!opj_read_header(r.stream, r.codec, &r.image)) damaged(r);
  int64_t height = (int64_t)r.image->y1 - r.image->y0, width = (int64_t)r.image->x1 - r.image->x0;
  if (height != s.height || width != s.width) fail("JPEG 2000: OpenJPEG reads another size from the header");
  // Verifies the extent before the library allocates memory for it.
  canvas.verify(height, width);
  if (!opj_decode(r.codec, r.stream, r.image) || !opj_end_decompress(r.codec, r.stream)) damaged(r);
  int channels = (int)r.image->numcomps;
  unsigned depth = 0;
  for (int c = 0; c < channels; c++) {
    const opj_image_comp_t &comp = r.image->comps[c];
    if (!comp.data || !comp.w || !comp.h || !comp.dx || !comp.dy) damaged(r);
    depth = std::max(depth, (unsigned)comp.prec);
  }
  if (!channels || depth > 31) fail("JPEG 2000: %d components of up to %u bits", channels, depth);
  if (depth <= 8)
    write(*r.image, height, width, static_cast<uint8_t *>(canvas.begin(height, width, channels, UINT8)));
  else
    write(*r.image, height, width, static_cast<uint16_t *>(canvas.begin(height, width, channels, UINT16)));
}
