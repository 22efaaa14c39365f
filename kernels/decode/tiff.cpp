// SPDX-License-Identifier: Apache-2.0
// TIFF through libtiff: strips or tiles, any compression it supports, 1 to 32 bits per sample, interleaved or planar.
// Rare colour models (CMYK, CIELab, uncompressed YCbCr, ...) use libtiff's own conversion to 8-bit RGBA.
#include <tiffio.h>

#include <algorithm>

#include "decode/codec.h"

namespace {

// The tags that this decoder uses, of the first image of the file.
struct Directory {
  int64_t height, width;
  int bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, photometric = PHOTOMETRIC_MINISBLACK,
      planar = PLANARCONFIG_CONTIG;
  int compression = COMPRESSION_NONE, orientation = 1;

  // Whether the samples can be used as stored.
  bool plain() const {
    bool gray = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    bool rgb =
        photometric == PHOTOMETRIC_RGB && samples >= 3 || photometric == PHOTOMETRIC_YCBCR && jpeg() && samples == 3;
    bool palette = photometric == PHOTOMETRIC_PALETTE && samples == 1 && bits <= 16;
    bool number = format == SAMPLEFORMAT_UINT && bits >= 1 && bits <= 32 || format == SAMPLEFORMAT_IEEEFP && bits == 32;
    return (gray || rgb || palette) && number;
  }
  bool jpeg() const { return compression == COMPRESSION_JPEG; }
  int channels() const { return !plain() ? 4 : photometric == PHOTOMETRIC_PALETTE ? 3 : samples; }
  int dtype() const {
    if (photometric == PHOTOMETRIC_PALETTE) return UINT16;  // TIFF palettes have 16 bits
    return format == SAMPLEFORMAT_IEEEFP || bits > 16 ? FLOAT : bits > 8 ? UINT16 : UINT8;
  }
};

// Parses the first directory of a classic or a big TIFF itself: opening it with libtiff would cost more than the rest
// of a peek.
Directory peek_directory(Bytes in) {
  bool big_endian = in.u8(0) == 'M', big_file = in.u8(big_endian ? 3 : 2) == 43;
  auto u16 = [&](int64_t at) { return big_endian ? in.be16(at) : in.le16(at); };
  auto u32 = [&](int64_t at) { return big_endian ? in.be32(at) : in.le32(at); };
  auto u64 = [&](int64_t at) {
    uint64_t a = u32(at), b = u32(at + 4);
    uint64_t v = big_endian ? a << 32 | b : b << 32 | a;
    if (v > INT64_MAX / 2) fail("TIFF: offset %llu", (unsigned long long)v);
    return (int64_t)v;
  };
  Directory d{0, 0};
  int64_t at = big_file ? u64(8) : u32(4);
  int64_t n = big_file ? u64(at) : u16(at), entry = big_file ? 20 : 12;
  at += big_file ? 8 : 2;
  for (int64_t i = 0; i < n; i++, at += entry) {
    in.need(at, entry);
    int tag = u16(at), type = u16(at + 2);
    int64_t count = big_file ? u64(at + 4) : u32(at + 4), value = at + (big_file ? 12 : 8);
    int size = type == 3 ? 2 : type == 16 ? 8 : 4;
    if (count * size > (big_file ? 8 : 4)) value = big_file ? u64(value) : u32(value);
    auto first = [&] {
      return type == 3 ? (int64_t)u16(value) : type == 16 ? u64(value) : type == 1 ? in.u8(value) : u32(value);
    };
    switch (tag) {
      case TIFFTAG_IMAGEWIDTH:
        d.width = first();
        break;
      case TIFFTAG_IMAGELENGTH:
        d.height = first();
        break;
      case TIFFTAG_BITSPERSAMPLE:
        d.bits = (int)first();
        break;
      case TIFFTAG_COMPRESSION:
        d.compression = (int)first();
        break;
      case TIFFTAG_PHOTOMETRIC:
        d.photometric = (int)first();
        break;
      case TIFFTAG_ORIENTATION:
        d.orientation = (int)first();
        break;
      case TIFFTAG_SAMPLESPERPIXEL:
        d.samples = (int)first();
        break;
      case TIFFTAG_PLANARCONFIG:
        d.planar = (int)first();
        break;
      case TIFFTAG_SAMPLEFORMAT:
        d.format = (int)first();
        break;
      default:
        break;
    }
  }
  check_extent("TIFF", d.height, d.width);
  if (d.samples < 1 || d.samples > 65535 || d.bits < 1 || d.bits > 64)
    fail("TIFF: %d samples of %d bits per pixel", d.samples, d.bits);
  if (d.format == SAMPLEFORMAT_VOID) d.format = SAMPLEFORMAT_UINT;
  if (d.orientation < 1 || d.orientation > 8) d.orientation = 1;
  return d;
}

// libtiff's access to the file, and its first error.
struct Source {
  Bytes in;
  int64_t at = 0;
  char text[160] = "";
  TIFF *file = nullptr;
  ~Source() {
    if (file) TIFFClose(file);
  }
};

tmsize_t read(thandle_t h, void *to, tmsize_t n) {
  Source &s = *static_cast<Source *>(h);
  int64_t m = std::max<int64_t>(0, std::min<int64_t>(n, s.in.size - s.at));
  if (m > 0) memcpy(to, s.in.data + s.at, (size_t)m);
  s.at += m;
  return m;
}
tmsize_t write(thandle_t, void *, tmsize_t) { return 0; }
toff_t seek(thandle_t h, toff_t offset, int whence) {
  Source &s = *static_cast<Source *>(h);
  int64_t base = whence == SEEK_CUR ? s.at : whence == SEEK_END ? s.in.size : 0;
  s.at = std::max<int64_t>(0, std::min<int64_t>(INT64_MAX / 2, base + (int64_t)offset));
  return (toff_t)s.at;
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t h) { return (toff_t) static_cast<Source *>(h)->in.size; }

#if TIFFLIB_VERSION >= 20221213  // 4.5: error handlers per file
int keep_error(TIFF *, void *user, const char *, const char *format, va_list list) {
  Source &s = *static_cast<Source *>(user);
  if (!s.text[0]) vsnprintf(s.text, sizeof s.text, format, list);
  return 1;
}
int ignore_warning(TIFF *, void *, const char *, const char *, va_list) { return 1; }

void open(Source &s) {
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &s);
  TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, &s);
  s.file = TIFFClientOpenExt("image", "rm", &s, read, write, seek, close, size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
}
#else
void open(Source &s) {
  static const bool silenced = (TIFFSetErrorHandler(nullptr), TIFFSetWarningHandler(nullptr), true);
  (void)silenced;
  s.file = TIFFClientOpen("image", "rm", &s, read, write, seek, close, size, nullptr, nullptr);
}
#endif

[[noreturn]] void damaged(const Source &s) { fail("TIFF: %s", s.text[0] ? s.text : "damaged or cut off"); }

// Converts n packed samples of `bits` bits, high bit first, to the full range of T. Samples of 8, 16 and 32 bits are
// native words.
template <class T>
void unpack(const uint8_t *in, int64_t n, int bits, bool is_float, T *out, int64_t step) {
  if (bits == 8 * (int)sizeof(T) && (is_float || !IsFloat<T>::value)) {
    for (int64_t i = 0; i < n; i++) memcpy(out + i * step, in + i * sizeof(T), sizeof(T));
    return;
  }
  const uint64_t top = (1ull << bits) - 1;
  uint64_t window = 0;
  int held = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t v;
    if (bits == 32) {
      uint32_t word;
      memcpy(&word, in + 4 * i, 4);
      v = word;
    } else {
      for (; held < bits; held += 8) window = window << 8 | *in++;
      held -= bits;
      v = window >> held & top;
    }
    if constexpr (IsFloat<T>::value)
      out[i * step] = (T)((double)v / (double)top);
    else
      out[i * step] = (T)((v * (T)~0 + top / 2) / top);
  }
}

// Palette indices stay unscaled until the palette is applied.
void unpack_indices(const uint8_t *in, int64_t n, int bits, uint16_t *out, int64_t step) {
  for (int64_t i = 0; i < n; i++) {
    int64_t bit = i * bits;
    if (bits == 16)
      memcpy(out + i * step, in + 2 * i, 2);
    else if (bits == 8)
      out[i * step] = in[i];
    else
      out[i * step] = (uint16_t)(((uint32_t)in[bit / 8] << 8 | (bit % 8 + bits > 8 ? in[bit / 8 + 1] : 0)) >>
                                     (16 - bits - bit % 8) &
                                 ((1 << bits) - 1));
  }
}

// Reads whole strips or tiles, one after the other, into an interleaved image.
template <class T>
void read_samples(Source &s, const Directory &d, int channels, T *image, Scratch &scratch) {
  TIFF *file = s.file;
  bool tiled = TIFFIsTiled(file), planar = d.planar == PLANARCONFIG_SEPARATE && d.samples > 1;
  bool palette = d.photometric == PHOTOMETRIC_PALETTE;
  uint32_t block_h = 0, block_w = (uint32_t)d.width;
  if (tiled) {
    TIFFGetField(file, TIFFTAG_TILELENGTH, &block_h);
    TIFFGetField(file, TIFFTAG_TILEWIDTH, &block_w);
  } else {
    TIFFGetFieldDefaulted(file, TIFFTAG_ROWSPERSTRIP, &block_h);
    block_h = (uint32_t)std::min<int64_t>(block_h, d.height);
  }
  int64_t row_bytes = tiled ? TIFFTileRowSize64(file) : TIFFScanlineSize64(file);
  int64_t per_block = planar ? 1 : d.samples;
  if (block_h == 0 || block_w == 0 || row_bytes < ((int64_t)block_w * per_block * d.bits + 7) / 8) damaged(s);
  // A tile may be larger than the image, within limits.
  if (row_bytes > (64ll << 20) / block_h && (block_h > 2 * d.height + 4096 || (int64_t)block_w > 2 * d.width + 4096))
    fail("TIFF: tiles of %u x %u pixels in an image of %lld x %lld", block_h, block_w, (long long)d.height,
         (long long)d.width);
  int64_t block_bytes = row_bytes * block_h;
  auto *block = scratch.array<uint8_t>(block_bytes, 1);
  for (int plane = 0; plane < (planar ? d.samples : 1); plane++)
    for (int64_t y = 0; y < d.height; y += block_h)
      for (int64_t x = 0; x < d.width; x += block_w) {
        int64_t rows = std::min<int64_t>(block_h, d.height - y),
                n = std::min<int64_t>(block_w, d.width - x) * per_block;
        int64_t want = tiled ? block_bytes : rows * row_bytes;
        memset(block, 0, want);  // fax decoders leave damaged rows unwritten
        tmsize_t got = tiled ? TIFFReadEncodedTile(file, TIFFComputeTile(file, x, y, 0, plane), block, want)
                             : TIFFReadEncodedStrip(file, TIFFComputeStrip(file, y, plane), block, want);
        if (got < want || s.text[0]) damaged(s);
        for (int64_t r = 0; r < rows; r++) {
          T *out = image + ((y + r) * d.width + x) * channels + plane;
          const uint8_t *in = block + r * row_bytes;
          int64_t step = planar ? channels : palette ? 3 : 1;
          if constexpr (sizeof(T) == 2)
            if (palette) {
              unpack_indices(in, n, d.bits, out, step);
              continue;
            }
          unpack(in, n, d.bits, d.format == SAMPLEFORMAT_IEEEFP, out, step);
        }
      }
}

void apply_palette(Source &s, const Directory &d, uint16_t *image) {
  uint16_t *red, *green, *blue;
  if (!TIFFGetField(s.file, TIFFTAG_COLORMAP, &red, &green, &blue)) fail("TIFF: a palette image without a palette");
  for (int64_t i = 0; i < d.height * d.width; i++, image += 3) {
    uint16_t index = image[0];
    image[0] = red[index], image[1] = green[index], image[2] = blue[index];
  }
}

// libtiff applies no orientation when the requested one is the file's.
void read_rgba(Source &s, const Directory &d, void *image) {
  char text[1024] = "";
  if (!TIFFRGBAImageOK(s.file, text)) fail("TIFF: %.200s", text);
  TIFFRGBAImage rgba;
  if (!TIFFRGBAImageBegin(&rgba, s.file, 1, text)) fail("TIFF: %.200s", text);
  rgba.req_orientation = rgba.orientation;
  memset(image, 0, d.height * d.width * 4);
  int ok = TIFFRGBAImageGet(&rgba, static_cast<uint32_t *>(image), (uint32_t)d.width, (uint32_t)d.height);
  TIFFRGBAImageEnd(&rgba);
  if (!ok || s.text[0]) damaged(s);
}

}  // namespace

ImageInfo peek_tiff(Bytes in) {
  Directory d = peek_directory(in);
  return {FORMAT_TIFF, (int32_t)d.height, (int32_t)d.width, d.channels(), d.bits, d.orientation, 0, 0};
}

void decode_tiff(Bytes in, Canvas &canvas) {
  Directory d = peek_directory(in);
  Source s;
  s.in = in;
  open(s);
  if (!s.file) damaged(s);
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1;
  TIFFGetField(s.file, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(s.file, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(s.file, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(s.file, TIFFTAG_SAMPLESPERPIXEL, &samples);
  if (width != d.width || height != d.height || bits != d.bits || samples != d.samples)
    fail("TIFF: libtiff reads another size from the header");
  if (!d.plain()) {
    read_rgba(s, d, canvas.begin(d.height, d.width, 4, UINT8));
    return;
  }
  if (d.jpeg() && d.photometric == PHOTOMETRIC_YCBCR) TIFFSetField(s.file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  int channels = d.channels();
  void *image = canvas.begin(d.height, d.width, channels, d.dtype());
  switch (d.dtype()) {
    case UINT8:
      read_samples(s, d, channels, static_cast<uint8_t *>(image), canvas.scratch());
      break;
    case UINT16:
      read_samples(s, d, channels, static_cast<uint16_t *>(image), canvas.scratch());
      break;
    default:
      read_samples(s, d, channels, static_cast<float *>(image), canvas.scratch());
  }
  if (d.photometric == PHOTOMETRIC_PALETTE) apply_palette(s, d, static_cast<uint16_t *>(image));
  if (d.photometric == PHOTOMETRIC_MINISWHITE) {
    int64_t n = d.height * d.width * channels;
    if (d.dtype() == UINT8)
      for (int64_t i = 0; i < n; i++) static_cast<uint8_t *>(image)[i] ^= 0xff;
    else if (d.dtype() == UINT16)
      for (int64_t i = 0; i < n; i++) static_cast<uint16_t *>(image)[i] ^= 0xffff;
    else
      for (int64_t i = 0; i < n; i++) static_cast<float *>(image)[i] = 1 - static_cast<float *>(image)[i];
  }
}
