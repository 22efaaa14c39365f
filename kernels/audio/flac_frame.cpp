// SPDX-License-Identifier: Apache-2.0
#include "audio/flac_frame.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "audio/lanes.h"
#include "core/kernel.h"

namespace {

constexpr int kMostOrder = 32;

[[noreturn]] void damaged(const char *what) { fail("the FLAC frame %s", what); }

// Bits, most significant first.
class Bits {
 public:
  Bits(const uint8_t *p, const uint8_t *end) : p_(p), end_(end) {}

  uint32_t get(int n) {  // up to 32
    if (!n) return 0;
    if (count_ < n) {
      refill();
      if (count_ < n) damaged("is cut off");
    }
    const uint32_t v = (uint32_t)(cache_ >> (64 - n));
    drop(n);
    return v;
  }
  int32_t get_signed(int n) {
    if (!n) return 0;
    return (int32_t)(get(n) << (32 - n)) >> (32 - n);
  }
  // Consumes the zeros before the next 1, and that 1; returns their number.
  uint32_t zeros() {
    for (uint32_t n = 0;;) {
      refill();
      if (!count_) damaged("is cut off");
      const int here = cache_ ? __builtin_clzll(cache_) : 64;
      if (here < count_) {
        drop(here + 1);
        return n + here;
      }
      n += count_;
      drop(count_);
    }
  }
  // Reads n numbers, each with its upper bits in unary and its lower k bits in binary.
  ALWAYS_INLINE void rice(int32_t *out, int64_t n, int k) {
    // Most numbers fit in the bits at hand.
    Bits b = *this;
    for (int64_t i = 0; i < n; i++) {
      b.refill();
      const int zeros = __builtin_clzll(b.cache_ | 1), size = zeros + 1 + k;
      uint32_t v;
      if (size <= b.count_) {
        v = (uint32_t)zeros << k | (uint32_t)(b.cache_ << zeros << 1 >> 1 >> (63 - k));
        b.drop(size);
      } else {
        v = b.zeros() << k;
        v |= b.get(k);
      }
      out[i] = (int32_t)(v >> 1 ^ -(v & 1));
    }
    *this = b;
  }
  const uint8_t *at() const { return p_ - count_ / 8; }  // the next whole byte

 private:
  // Holds at least 56 bits, unless near the end. Beyond `count_`, the cache may hold bits that were not counted yet.
  ALWAYS_INLINE void refill() {
    if (end_ - p_ >= 8) {
      uint64_t next;
      std::memcpy(&next, p_, 8);
      cache_ |= __builtin_bswap64(next) >> count_;
      p_ += (63 - count_) >> 3;
      count_ |= 56;
      return;
    }
    for (; count_ < 56 && p_ < end_; count_ += 8) cache_ |= (uint64_t)*p_++ << (56 - count_);
  }
  ALWAYS_INLINE void drop(int n) { cache_ <<= n, count_ -= n; }

  const uint8_t *p_, *end_;
  uint64_t cache_ = 0;
  int count_ = 0;
};

CLONES void read_rice(Bits &bits, int32_t *out, int64_t n, int k) { bits.rice(out, n, k); }

void read_residual(Bits &bits, int32_t *out, int64_t length, int order) {
  const uint32_t method = bits.get(2);
  if (method > 1) damaged("is coded in an unknown way");
  const int width = method ? 5 : 4, partitions = 1 << bits.get(4);
  const int64_t each = length / partitions;
  if (each * partitions != length || each < order) damaged("is divided into parts that are too short");
  for (int i = 0; i < partitions; i++) {
    const int64_t n = each - (i ? 0 : order);
    const int k = (int)bits.get(width);
    if (k < (1 << width) - 1) {
      read_rice(bits, out, n, k);
    } else {
      const int plain = (int)bits.get(5);
      for (int64_t j = 0; j < n; j++) out[j] = bits.get_signed(plain);
    }
    out += n;
  }
}

// x[i] += the prediction from the `order` samples before it. Sums of type T don't overflow in a valid stream.
template <class T, int kOrder>
void predict(int32_t *x, int64_t n, const int32_t *coefficients, int shift, int order) {
  typedef std::make_unsigned_t<T> U;  // damaged streams may overflow
  const int taps = kOrder ? kOrder : order;
  int32_t c[kMostOrder];
  std::copy_n(coefficients, taps, c);
  int32_t last = x[taps - 1];  // in a register, so that the next sum need not wait for memory
  for (int64_t i = taps; i < n; i++) {
    U sum = 0;
    for (int j = taps - 1; j > 0; j--) sum += (U)((U)(T)c[j] * (U)(T)x[i - 1 - j]);
    sum += (U)((U)(T)c[0] * (U)(T)last);
    x[i] = last = (int32_t)((uint32_t)x[i] + (uint32_t)((T)sum >> shift));
  }
}

template <class T>
void predict_by(int32_t *x, int64_t n, const int32_t *coefficients, int shift, int order) {
  typedef void (*Predict)(int32_t *, int64_t, const int32_t *, int, int);
  static constexpr Predict of[] = {predict<T, 0>,  predict<T, 1>,  predict<T, 2>, predict<T, 3>, predict<T, 4>,
                                   predict<T, 5>,  predict<T, 6>,  predict<T, 7>, predict<T, 8>, predict<T, 9>,
                                   predict<T, 10>, predict<T, 11>, predict<T, 12>};
  of[order <= 12 ? order : 0](x, n, coefficients, shift, order);
}

int log2_up(int n) { return n > 1 ? 32 - __builtin_clz(n - 1) : 0; }

void read_channel(Bits &bits, int32_t *x, int64_t n, int width) {
  if (bits.get(1)) damaged("has a channel of an unknown kind");
  const int type = (int)bits.get(6);
  int unused = 0;  // low bits that are 0 in all samples
  if (bits.get(1)) unused = (int)std::min<uint32_t>(bits.zeros(), 64) + 1;
  width -= unused;
  if (width < 1) damaged("has samples of no bits");
  if (type == 0) {
    std::fill(x, x + n, bits.get_signed(width));
  } else if (type == 1) {
    for (int64_t i = 0; i < n; i++) x[i] = bits.get_signed(width);
  } else {
    const bool is_fixed = type >= 8 && type <= 12;
    if (!is_fixed && type < 32) damaged("has a channel of an unknown kind");
    const int order = is_fixed ? type - 8 : type - 31;
    if (order > n) damaged("is shorter than what foretells it");
    for (int i = 0; i < order; i++) x[i] = bits.get_signed(width);
    // Predictors that make the differences of orders 1 to 4 zero.
    static constexpr int32_t fixed[5][4] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
    int32_t c[kMostOrder];
    int shift = 0, precision = 0;
    if (is_fixed) {
      std::copy_n(fixed[order], order, c);
    } else {
      precision = (int)bits.get(4) + 1;
      shift = bits.get_signed(5);
      if (precision == 16 || shift < 0) damaged("is foretold by unknown numbers");
      for (int i = 0; i < order; i++) c[i] = bits.get_signed(precision);
    }
    read_residual(bits, x + order, n, order);
    // Without a shift, only the lower 32 bits of sums matter.
    if (is_fixed || width + precision + log2_up(order) <= 32) {
      if (order) predict_by<int32_t>(x, n, c, shift, order);
    } else {
      predict_by<int64_t>(x, n, c, shift, order);
    }
  }
  if (unused)
    for (int64_t i = 0; i < n; i++) x[i] = (int32_t)((uint32_t)x[i] << unused);
}

// Remainders of bytes at eight distances from the end, modulo x^16 + x^15 + x^2 + 1.
struct Crc16 {
  uint16_t of[8][256];
  constexpr Crc16() : of() {
    for (int i = 0; i < 256; i++) {
      uint32_t crc = (uint32_t)i << 8;
      for (int bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? crc << 1 ^ 0x8005 : crc << 1;
      of[0][i] = (uint16_t)crc;
    }
    for (int k = 1; k < 8; k++)
      for (int i = 0; i < 256; i++) of[k][i] = (uint16_t)(of[k - 1][i] << 8 ^ of[0][of[k - 1][i] >> 8]);
  }
};
constexpr Crc16 kCrc16;

uint32_t crc16(const uint8_t *p, int64_t n) {
  uint32_t crc = 0;
  const auto &t = kCrc16.of;
  for (; n >= 8; n -= 8, p += 8)
    crc = t[7][p[0] ^ crc >> 8] ^ t[6][p[1] ^ (crc & 255)] ^ t[5][p[2]] ^ t[4][p[3]] ^ t[3][p[4]] ^ t[2][p[5]] ^
          t[1][p[6]] ^ t[0][p[7]];
  for (; n > 0; n--) crc = (crc << 8 & 0xffff) ^ t[0][crc >> 8 ^ *p++];
  return crc;
}

uint8_t crc8(const uint8_t *p, int n) {  // modulo x^8 + x^2 + x + 1
  uint32_t crc = 0;
  for (int i = 0; i < n; i++) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; bit++) crc = crc & 0x80 ? (crc << 1 ^ 7) & 255 : crc << 1;
  }
  return (uint8_t)crc;
}

}  // namespace

bool read_flac_header(FlacFrame &frame, const uint8_t *p, int64_t size, const FlacStream &stream) {
  if (size < kFlacLeast || p[0] != 0xff || (p[1] & 0xfe) != 0xf8) return false;
  const int length_code = p[2] >> 4, rate_code = p[2] & 15, assignment = p[3] >> 4, bits_code = p[3] >> 1 & 7;
  static constexpr int8_t bits_of[] = {0, 8, 12, -1, 16, 20, 24, 32};
  if (!length_code || rate_code == 15 || assignment > MID_SIDE || p[3] & 1) return false;
  if (bits_code && bits_of[bits_code] != stream.bits) return false;
  if ((assignment >= LEFT_SIDE ? 2 : assignment + 1) != stream.channels) return false;
  // The number is coded like a UTF-8 character, with up to 36 bits.
  const int more = p[4] < 0x80 ? 0 : __builtin_clz(~((uint32_t)p[4] << 24)) - 1;
  if (more > 6 || (more == 0 && p[4] >= 0x80)) return false;
  const int extra = (length_code == 6 ? 1 : length_code == 7 ? 2 : 0) + (rate_code == 12 ? 1 : rate_code > 12 ? 2 : 0);
  const int header = 4 + 1 + more + extra;  // without its checksum
  if (size < header + 1) return false;
  uint64_t number = more ? p[4] & (0x3f >> more) : p[4];
  for (int i = 1; i <= more; i++) {
    if ((p[4 + i] & 0xc0) != 0x80) return false;
    number = number << 6 | (p[4 + i] & 0x3f);
  }
  if (crc8(p, header) != p[header]) return false;
  const uint8_t *behind = p + 5 + more;
  frame.length = length_code == 1   ? 192
                 : length_code < 6  ? 576 << (length_code - 2)
                 : length_code == 6 ? behind[0] + 1
                 : length_code == 7 ? (behind[0] << 8 | behind[1]) + 1
                                    : 256 << (length_code - 8);
  frame.first = (int64_t)(p[1] & 1 ? number : number * stream.longest);
  frame.header_size = header + 1, frame.assignment = assignment;
  return true;
}

int64_t decode_flac_frame(int32_t *planes, int64_t pitch, const uint8_t *p, int64_t size, const FlacFrame &frame,
                          const FlacStream &stream) {
  Bits bits(p + frame.header_size, p + size);
  const int side = frame.assignment == SIDE_RIGHT ? 0 : frame.assignment >= LEFT_SIDE ? 1 : -1;
  for (int c = 0; c < stream.channels; c++)
    read_channel(bits, planes + c * pitch, frame.length, stream.bits + (c == side));
  const uint8_t *end = bits.at();
  if (p + size - end < 2) damaged("is cut off");
  if (crc16(p, end - p) != (uint32_t)(end[0] << 8 | end[1])) damaged("does not have the checksum that it says");
  return end + 2 - p;
}
