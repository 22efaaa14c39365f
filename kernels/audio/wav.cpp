// SPDX-License-Identifier: Apache-2.0
// WAV: RIFF and RF64 files of chunks; only "fmt " and "data" are used here, with sizes beyond 4 GB in "ds64".
#include <algorithm>
#include <cstring>
#include <vector>

#include "audio/audio_file.h"
#include "core/kernel.h"
#include "read/storage.h"

namespace {

uint32_t u16(const uint8_t *p) { return p[0] | p[1] << 8; }
uint32_t u32(const uint8_t *p) { return u16(p) | u16(p + 2) << 16; }
uint64_t u64(const uint8_t *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }
bool is(const uint8_t *p, const char *name) { return std::memcmp(p, name, 4) == 0; }

enum Format { FORMAT_PCM = 1, FORMAT_FLOAT = 3, FORMAT_A_LAW = 6, FORMAT_MU_LAW = 7, FORMAT_EXTENSIBLE = 0xfffe };

int64_t bytes_of(int encoding) {
  static const int8_t bytes[] = {0, 0, 1, 2, 3, 4, 4, 8, 1, 1};
  return bytes[encoding];
}

int encoding_of(uint32_t format, int64_t bytes) {
  if (format == FORMAT_PCM && bytes >= 1 && bytes <= 4) return PCM_U8 + (int)bytes - 1;
  if (format == FORMAT_FLOAT && bytes == 4) return PCM_F32;
  if (format == FORMAT_FLOAT && bytes == 8) return PCM_F64;
  if (format == FORMAT_A_LAW && bytes == 1) return A_LAW;
  if (format == FORMAT_MU_LAW && bytes == 1) return MU_LAW;
  return LIBRARY;
}

// The chunk "fmt " of `size` bytes.
void read_format(AudioInfo &info, const uint8_t *p, int64_t size) {
  if (size < 16) fail("the format chunk of the WAV file has %lld bytes; 16 are needed", (long long)size);
  uint32_t format = u16(p), channels = u16(p + 2), rate = u32(p + 4), frame = u16(p + 12);
  if (format == FORMAT_EXTENSIBLE && size >= 26) format = u16(p + 24);
  if (channels < 1 || channels > kMostChannels)
    fail("the WAV file has %u channels; 1 to %d are accepted", channels, kMostChannels);
  if (rate < 1 || rate > INT32_MAX) fail("the WAV file has a sampling rate of %u Hz", rate);
  info.channels = (int32_t)channels, info.rate = rate;
  info.encoding = frame % channels ? (int)LIBRARY : encoding_of(format, frame / channels);
}

// Integers, as the upper bits of 32.
template <int kEncoding>
inline int32_t integer_at(const uint8_t *p) {
  if constexpr (kEncoding == PCM_U8) return (int32_t)((uint32_t)(p[0] ^ 0x80) << 24);
  if constexpr (kEncoding == PCM_S16) return (int32_t)(u16(p) << 16);
  if constexpr (kEncoding == PCM_S24) return (int32_t)((uint32_t)p[0] << 8 | u16(p + 1) << 16);
  return (int32_t)u32(p);
}

// ITU-T G.711: three bits of exponent and four of mantissa, with every other bit (A) or all of them (mu) inverted.
int32_t from_a_law(uint8_t code) {
  const int bits = code ^ 0x55, exponent = bits >> 4 & 7, mantissa = (bits & 15) << 4 | 8;
  const int magnitude = exponent ? (mantissa | 0x100) << (exponent - 1) : mantissa;
  return (bits & 0x80 ? magnitude : -magnitude) * 65536;
}
int32_t from_mu_law(uint8_t code) {
  const int bits = ~code, magnitude = (((bits & 15) << 3 | 0x84) << (bits >> 4 & 7)) - 0x84;
  return (bits & 0x80 ? -magnitude : magnitude) * 65536;
}

template <class Out>
inline Out from_integer(int32_t x) {
  if constexpr (std::is_same_v<Out, float>)
    return (float)x * (1 / 2147483648.0f);
  else
    return (Out)(x >> (32 - 8 * (int)sizeof(Out)));
}
// -1 to 1 maps to the range of integers.
template <class Out, class Real>
inline Out from_real(Real x) {
  if constexpr (std::is_same_v<Out, float>)
    return (float)x;
  else
    return saturate<Out>((double)x * (sizeof(Out) == 2 ? 32767.0 : 2147483647.0));
}

template <int kEncoding, class Out>
CLONES void convert_integers(Out *__restrict out, const uint8_t *__restrict in, int64_t n) {
  constexpr int kBytes = kEncoding - PCM_U8 + 1;
  for (int64_t i = 0; i < n; i++) out[i] = from_integer<Out>(integer_at<kEncoding>(in + i * kBytes));
}
template <class Real, class Out>
CLONES void convert_reals(Out *__restrict out, const uint8_t *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    Real x;
    std::memcpy(&x, in + i * sizeof x, sizeof x);
    out[i] = from_real<Out>(x);
  }
}
template <class Out>
void convert_laws(Out *out, const uint8_t *in, int64_t n, int32_t (*law)(uint8_t)) {
  for (int64_t i = 0; i < n; i++) out[i] = from_integer<Out>(law(in[i]));
}

class WavReader : public AudioReader {
 public:
  WavReader(AudioBytes file, int64_t begin, const AudioInfo &info) : file_(file), at_(begin), info_(info) {}
  void read(int16_t *out, int64_t n) override { convert(out, n); }
  void read(int32_t *out, int64_t n) override { convert(out, n); }
  void read(float *out, int64_t n) override { convert(out, n); }

 private:
  template <class Out>
  void convert(Out *out, int64_t frames) {
    const int64_t n = frames * info_.channels, bytes = bytes_of(info_.encoding), size = n * bytes;
    if (size > file_.size - at_) fail("the WAV file ends before its last sample");
    if (!file_.object) convert_samples(out, file_.data + at_, n);
    if (file_.object && block_.empty()) block_.resize(kBlock);
    for (int64_t i = 0; file_.object && i < n; i += kBlock / bytes) {  // in blocks that stay in the cache
      const int64_t m = std::min(kBlock / bytes, n - i);
      if (file_.object->read(at_ + i * bytes, m * bytes, (char *)block_.data()) < m * bytes)
        fail("the file was cut short while it was read");
      convert_samples(out + i, block_.data(), m);
    }
    at_ += size;
  }
  template <class Out>
  void convert_samples(Out *out, const uint8_t *in, int64_t n) const {
    switch (info_.encoding) {
      case PCM_U8:
        return convert_integers<PCM_U8>(out, in, n);
      case PCM_S16:
        return convert_integers<PCM_S16>(out, in, n);
      case PCM_S24:
        return convert_integers<PCM_S24>(out, in, n);
      case PCM_S32:
        return convert_integers<PCM_S32>(out, in, n);
      case PCM_F32:
        return convert_reals<float>(out, in, n);
      case PCM_F64:
        return convert_reals<double>(out, in, n);
      default:
        convert_laws(out, in, n, info_.encoding == A_LAW ? from_a_law : from_mu_law);
    }
  }
  static constexpr int64_t kBlock = 64 << 10;  // bytes
  const AudioBytes file_;
  int64_t at_;
  const AudioInfo info_;
  std::vector<uint8_t> block_;
};

}  // namespace

AudioInfo peek_wav_head(AudioBytes head, int64_t size) {
  const AudioInfo nothing = {};
  AudioInfo info = {};
  const uint8_t *p = head.data;
  if (head.size < 12 || !is(p + 8, "WAVE") || !(is(p, "RIFF") || is(p, "RF64") || is(p, "BW64"))) return nothing;
  uint64_t long_data = UINT32_MAX;
  for (int64_t at = 12; at + 8 <= head.size;) {
    const uint8_t *chunk = p + at;
    uint64_t length = u32(chunk + 4);
    if (is(chunk, "data")) {
      if (!info.encoding) fail("the WAV file has its samples before the chunk that says what they are");
      if (length == UINT32_MAX) length = long_data;
      // A recording that was cut off, or written to a pipe, has fewer bytes than its header says.
      const uint64_t rest = (uint64_t)(size - at - 8), there = std::min(length, rest);
      info.offset = at + 8;
      if (info.encoding != LIBRARY) info.frames = (int64_t)there / wav_frame_bytes(info);
      return info;
    }
    const int64_t rest = head.size - at - 8;
    if (is(chunk, "ds64") && length >= 16 && rest >= 16) long_data = u64(chunk + 16);
    if (is(chunk, "fmt ")) {
      if (length > (uint64_t)rest && head.size < size) return nothing;
      read_format(info, chunk + 8, (int64_t)std::min(length, (uint64_t)rest));
    }
    at += 8 + (int64_t)length + (int64_t)(length & 1);
  }
  if (head.size < size) return nothing;
  fail("the WAV file of %lld bytes has no chunk of samples", (long long)size);
}

AudioInfo peek_wav(AudioBytes file) { return peek_wav_head(file, file.size); }

int64_t wav_frame_bytes(const AudioInfo &info) {
  return info.encoding >= PCM_U8 && info.encoding <= MU_LAW ? bytes_of(info.encoding) * info.channels : 0;
}

std::unique_ptr<AudioReader> open_wav(AudioBytes file, const AudioInfo &info, int64_t first) {
  const int64_t frame = wav_frame_bytes(info), begin = info.offset + first * frame;
  if (info.offset < 0 || first < 0 || begin > file.size) fail("the WAV file ends before frame %lld", (long long)first);
  return std::make_unique<WavReader>(file, begin, info);
}
