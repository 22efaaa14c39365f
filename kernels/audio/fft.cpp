// SPDX-License-Identifier: Apache-2.0
#include "audio/fft.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "core/kernel.h"

constexpr int64_t kLargestRadix = 31;
constexpr size_t kMostKept = 32;
constexpr int64_t kNear = 128;  // turns of a LongRealFft are products of kNear neighbouring ones and every kNear-th one

static void push(std::vector<float> &to, double turn) {  // exp(-2 pi i turn)
  to.push_back((float)std::cos(2 * M_PI * turn));
  to.push_back((float)-std::sin(2 * M_PI * turn));
}

ALWAYS_INLINE static Complex times(const Complex &a, const float *w) {
  return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}
ALWAYS_INLINE static Complex operator+(const Complex &a, const Complex &b) { return {a.re + b.re, a.im + b.im}; }
ALWAYS_INLINE static Complex operator-(const Complex &a, const Complex &b) { return {a.re - b.re, a.im - b.im}; }

// Transforms a few elements in place.
ALWAYS_INLINE static void butterfly(Complex (&x)[2]) {
  const Complex a = x[0];
  x[0] = a + x[1], x[1] = a - x[1];
}
ALWAYS_INLINE static void butterfly(Complex (&x)[3]) {
  const Complex sum = x[1] + x[2], difference = x[1] - x[2];
  const float half = 0.5f, sine = 0.866025403784438647f;
  const Complex middle = {x[0].re - half * sum.re, x[0].im - half * sum.im};
  const Complex turned = {sine * difference.im, -sine * difference.re};
  x[0] = x[0] + sum, x[1] = middle + turned, x[2] = middle - turned;
}
ALWAYS_INLINE static void butterfly(Complex (&x)[4]) {
  const Complex a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
  const Complex turned = {d.im, -d.re};
  x[0] = a + c, x[1] = b + turned, x[2] = a - c, x[3] = b - turned;
}
ALWAYS_INLINE static void butterfly(Complex (&x)[5]) {
  const float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;
  const float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;
  const Complex a = x[1] + x[4], b = x[2] + x[3], c = x[1] - x[4], d = x[2] - x[3];
  const Complex p = {x[0].re + c1 * a.re + c2 * b.re, x[0].im + c1 * a.im + c2 * b.im};
  const Complex q = {x[0].re + c2 * a.re + c1 * b.re, x[0].im + c2 * a.im + c1 * b.im};
  const Complex r = {s1 * c.im + s2 * d.im, -s1 * c.re - s2 * d.re};
  const Complex s = {s2 * c.im - s1 * d.im, s1 * d.re - s2 * c.re};
  x[0] = x[0] + a + b, x[1] = p + r, x[2] = q + s, x[3] = q - s, x[4] = p - r;
}

ALWAYS_INLINE static void butterfly(Complex (&x)[8]) {
  const float h = 0.707106781186547524f;
  Complex even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
  butterfly(even), butterfly(odd);
  odd[1] = {(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
  odd[2] = {odd[2].im, -odd[2].re};
  odd[3] = {(odd[3].im - odd[3].re) * h, -((odd[3].re + odd[3].im) * h)};
  for (int k = 0; k < 4; k++) x[k] = even[k] + odd[k], x[k + 4] = even[k] - odd[k];
}

template <int kRadix>
ALWAYS_INLINE static void split(const Fft::Stage &stage, Complex *z, int64_t n) {
  const int64_t m = stage.length / kRadix;
  for (int64_t begin = 0; begin < n; begin += stage.length) {
    const float *w = stage.twiddles.data();
    for (int64_t j = 0; j < m; j++, w += 2 * (kRadix - 1)) {
      Complex *at = z + begin + j, x[kRadix];
      for (int k = 0; k < kRadix; k++) x[k] = at[k * m];
      butterfly(x);
      at[0] = x[0];
      if (j == 0)
        for (int k = 1; k < kRadix; k++) at[k * m] = x[k];
      else
        for (int k = 1; k < kRadix; k++) at[k * m] = times(x[k], w + 2 * (k - 1));
    }
  }
}

ALWAYS_INLINE static void split_any(const Fft::Stage &stage, Complex *z, int64_t n) {
  const int64_t radix = stage.radix, m = stage.length / radix;
  for (int64_t begin = 0; begin < n; begin += stage.length)
    for (int64_t j = 0; j < m; j++) {
      Complex *at = z + begin + j, x[kLargestRadix];
      for (int64_t k = 0; k < radix; k++) x[k] = at[k * m];
      for (int64_t k = 0; k < radix; k++) {
        Complex sum = x[0];
        for (int64_t q = 1, turn = k; q < radix; q++) {
          sum = sum + times(x[q], stage.roots.data() + 2 * turn);
          turn = turn + k < radix ? turn + k : turn + k - radix;
        }
        at[k * m] = k ? times(sum, stage.twiddles.data() + 2 * (j * (radix - 1) + k - 1)) : sum;
      }
    }
}

CLONES static void run_stages(const std::vector<Fft::Stage> &stages, Complex *z, int64_t n) {
  for (const Fft::Stage &stage : stages) {
    if (stage.radix == 4)
      split<4>(stage, z, n);
    else if (stage.radix == 2)
      split<2>(stage, z, n);
    else if (stage.radix == 3)
      split<3>(stage, z, n);
    else if (stage.radix == 5)
      split<5>(stage, z, n);
    else
      split_any(stage, z, n);
  }
}

static std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t f : {4, 2, 3, 5})
    for (; n % f == 0; n /= f) found.push_back(f);
  for (int64_t f = 7; n > 1; f += 2)
    for (f = f * f > n ? n : f; n % f == 0; n /= f) found.push_back(f);
  return found;
}

Fft::Fft(int64_t n) : n_(n) {
  const std::vector<int64_t> factors = factors_of(n);
  if (!factors.empty() && factors.back() > kLargestRadix) {
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    convolution_ = std::make_unique<Fft>(m);
    for (int64_t j = 0; j < n; j++) push(chirp_, (double)(j * j % (2 * n)) / (2 * n));
    Scratch scratch;
    Complex *conjugate = scratch.array<Complex>(m);
    std::memset((void *)conjugate, 0, m * sizeof(Complex));
    for (int64_t j = 0; j < n; j++)
      conjugate[j] = conjugate[(m - j) % m] = {Lanes{} + chirp_[2 * j], Lanes{} - chirp_[2 * j + 1]};
    convolution_->run(conjugate, nullptr);
    for (int64_t k = 0; k < m; k++)
      filter_.push_back(conjugate[k].re[0] / m), filter_.push_back(conjugate[k].im[0] / m);
    return;
  }
  place_.assign(1, 0);
  int64_t length = n, known = 1;
  for (int64_t radix : factors) {
    const int64_t m = length / radix;
    Stage stage = {length, radix, {}, {}};
    for (int64_t j = 0; j < m; j++)
      for (int64_t k = 1; k < radix; k++) push(stage.twiddles, (double)(j * k) / length);
    for (int64_t k = 0; k < radix && radix > 5; k++) push(stage.roots, (double)k / radix);
    // k modulo the known radices selects the block, and the next digit the part of it.
    std::vector<int32_t> places(known * radix);
    for (int64_t digit = 0; digit < radix; digit++)
      for (int64_t k = 0; k < known; k++) places[k + known * digit] = (int32_t)(place_[k] + digit * m);
    place_.swap(places);
    known *= radix, length = m;
    stages_.push_back(std::move(stage));
  }
}

CLONES static void modulate(Complex *to, const Complex *from, const float *by, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = times(from[i], by + 2 * i);
}

CLONES static void conjugate_in_order(Complex *to, const Complex *from, const Fft &order, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const Complex &c = from[order.place(k)];
    to[k] = {c.re, -c.im};
  }
}

// Conjugates and modulates the last n results of `run`: z[k] = conj(y[place(k)]) chirp[k].
CLONES static void demodulate(Complex *z, const Complex *y, const Fft &order, const float *chirp, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const Complex &c = y[order.place(k)];
    z[k] = times({c.re, -c.im}, chirp + 2 * k);
  }
}

void Fft::bluestein(Complex *z, Complex *more) const {
  const int64_t m = convolution_->n_;
  Complex *padded = more, *product = more + m;
  modulate(padded, z, chirp_.data(), n_);
  std::memset((void *)(padded + n_), 0, (m - n_) * sizeof(Complex));
  convolution_->run(padded, nullptr);
  modulate(padded, padded, filter_.data(), m);
  conjugate_in_order(product, padded, *convolution_, m);
  convolution_->run(product, nullptr);
  demodulate(z, product, *convolution_, chirp_.data(), n_);
}

void Fft::run(Complex *z, Complex *more) const {
  if (convolution_)
    bluestein(z, more);
  else
    run_stages(stages_, z, n_);
}

RealFft::RealFft(int64_t n) : n_(n), is_even_(n % 2 == 0), complex_(is_even_ ? n / 2 : n) {
  for (int64_t k = 0; is_even_ && k <= n / 4; k++) push(turns_, (double)k / n);
}

ALWAYS_INLINE static Lanes squared(const Complex &z) { return z.re * z.re + z.im * z.im; }

// Computes a signal's powers from the transform of its sample pairs taken as complex numbers.
CLONES static void powers_of_pairs(Lanes *out, const Complex *z, const Fft &order, const float *turns, int64_t half) {
  const Complex first = z[order.place(0)];
  const Lanes sum = first.re + first.im, difference = first.re - first.im;
  out[0] = sum * sum, out[half] = difference * difference;
  for (int64_t k = 1; k <= half / 2; k++) {
    const Complex a = z[order.place(k)], b = z[order.place(half - k)];
    const Complex even = {(a.re + b.re) * 0.5f, (a.im - b.im) * 0.5f};
    const Complex odd = times({(a.im + b.im) * 0.5f, (b.re - a.re) * 0.5f}, turns + 2 * k);
    out[k] = squared(even + odd), out[half - k] = squared(even - odd);
  }
}

CLONES static void powers(Lanes *out, const Complex *z, const Fft &order, int64_t bins) {
  for (int64_t k = 0; k < bins; k++) out[k] = squared(z[order.place(k)]);
}

CLONES static void roots(float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = __builtin_sqrtf(x[i]);
}

void RealFft::run(Lanes *out, Lanes *work, int power) const {
  Complex *z = (Complex *)work;
  const int64_t size = is_even_ ? n_ / 2 : n_;
  if (!is_even_)
    for (int64_t i = n_; i-- > 0;) z[i] = {work[i], Lanes{}};
  complex_.run(z, z + size);
  if (is_even_)
    powers_of_pairs(out, z, complex_, turns_.data(), size);
  else
    powers(out, z, complex_, bins());
  if (power == 1) roots((float *)out, bins() * kLanes);
}

LongRealFft::LongRealFft(int64_t n) : half_(n / 2), part_(half_ / kLanes), fft_(part_) {
  const auto push_turns = [&](int64_t k) {
    Complex turns;
    for (int lane = 0; lane < kLanes; lane++) {
      const double turn = 2 * M_PI * (double)(k * lane) / (double)half_;
      turns.re[lane] = (float)std::cos(turn), turns.im[lane] = (float)-std::sin(turn);
    }
    joins_.insert(joins_.end(), (const float *)&turns, (const float *)(&turns + 1));
  };
  for (int64_t k = 0; k < kNear; k++) push_turns(k);
  for (int64_t k = 0; k < part_; k += kNear) push_turns(k);
  const int64_t turns = half_ / 2 + kLanes;
  turns_.resize(2 * turns);
  for (int64_t k = 0; k < turns; k++) {
    turns_[k] = (float)std::cos(2 * M_PI * k / n);
    turns_[turns + k] = (float)-std::sin(2 * M_PI * k / n);
  }
}

// Takes sample pairs as complex numbers, one after the other in the lanes.
CLONES static void take_pairs(Complex *z, const float *in, int64_t n_in, int64_t n) {
  constexpr int64_t kSamples = 2 * kLanes;
  const int64_t whole = std::min(n_in / kSamples, n);
  const auto take = [](Complex &to, const float *x) {
    float re[kLanes], im[kLanes];
    for (int lane = 0; lane < kLanes; lane++) re[lane] = x[2 * lane], im[lane] = x[2 * lane + 1];
    to = {load<Lanes>(re), load<Lanes>(im)};
  };
  for (int64_t i = 0; i < whole; i++) take(z[i], in + i * kSamples);
  if (whole == n) return;
  float last[kSamples] = {};
  std::copy_n(in + whole * kSamples, n_in - whole * kSamples, last);
  take(z[whole], last);
  for (int64_t i = whole + 1; i < n; i++) z[i] = Complex{};
}

// Transposes.
ALWAYS_INLINE static void transpose_lanes(Lanes (&x)[kLanes]) {
  typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
  Lanes ones[kLanes], twos[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    ones[i] = __builtin_shuffle(x[i], x[i + 1], Ints{0, 8, 1, 9, 4, 12, 5, 13});
    ones[i + 1] = __builtin_shuffle(x[i], x[i + 1], Ints{2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int i = 0; i < kLanes; i += 4)
    for (int j = 0; j < 2; j++) {
      twos[i + 2 * j] = __builtin_shuffle(ones[i + j], ones[i + j + 2], Ints{0, 1, 8, 9, 4, 5, 12, 13});
      twos[i + 2 * j + 1] = __builtin_shuffle(ones[i + j], ones[i + j + 2], Ints{2, 3, 10, 11, 6, 7, 14, 15});
    }
  for (int i = 0; i < 4; i++) {
    x[i] = __builtin_shuffle(twos[i], twos[i + 4], Ints{0, 1, 2, 3, 8, 9, 10, 11});
    x[i + 4] = __builtin_shuffle(twos[i], twos[i + 4], Ints{4, 5, 6, 7, 12, 13, 14, 15});
  }
}

// re and im receive the frequencies in natural order.
CLONES static void join_lanes(float *re, float *im, const Complex *z, const Fft &order, const float *joins,
                              int64_t part) {
  const auto turn_at = [&](int64_t i) -> Complex {
    return {load<Lanes>(joins + 2 * i * kLanes), load<Lanes>(joins + (2 * i + 1) * kLanes)};
  };
  for (int64_t k = 0; k < part; k += kLanes) {
    const Complex far = turn_at(kNear + k / kNear);
    Lanes rows[2][kLanes];
    for (int i = 0; i < kLanes; i++) {
      const Complex &c = z[order.place(k + i)], near = turn_at(k % kNear + i);
      const Complex v = {c.re * near.re - c.im * near.im, c.re * near.im + c.im * near.re};
      rows[0][i] = v.re * far.re - v.im * far.im, rows[1][i] = v.re * far.im + v.im * far.re;
    }
    transpose_lanes(rows[0]), transpose_lanes(rows[1]);
    Complex x[kLanes];
    for (int i = 0; i < kLanes; i++) x[i] = {rows[0][i], rows[1][i]};
    butterfly(x);
    for (int i = 0; i < kLanes; i++) store(re + i * part + k, x[i].re), store(im + i * part + k, x[i].im);
  }
}

ALWAYS_INLINE static Lanes reversed(const Lanes &x) {
  typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
  return __builtin_shuffle(x, Ints{7, 6, 5, 4, 3, 2, 1, 0});
}

// Like powers_of_pairs. The last frequencies may cross the middle and rewrite equal values there.
CLONES static void powers_in_order(float *out, const float *re, const float *im, const float *cosines,
                                   const float *sines, int64_t half) {
  const float sum = re[0] + im[0], difference = re[0] - im[0];
  out[0] = sum * sum, out[half] = difference * difference;
  for (int64_t k = 1; k <= half / 2; k += kLanes) {
    const int64_t mirrored = half - k - (kLanes - 1);
    const Complex a = {load<Lanes>(re + k), load<Lanes>(im + k)};
    const Complex b = {reversed(load<Lanes>(re + mirrored)), reversed(load<Lanes>(im + mirrored))};
    const Lanes cosine = load<Lanes>(cosines + k), sine = load<Lanes>(sines + k);
    const Complex even = {(a.re + b.re) * 0.5f, (a.im - b.im) * 0.5f};
    const Lanes x = (a.im + b.im) * 0.5f, y = (b.re - a.re) * 0.5f;
    const Complex odd = {x * cosine - y * sine, x * sine + y * cosine};
    store(out + k, squared(even + odd)), store(out + mirrored, reversed(squared(even - odd)));
  }
}

void LongRealFft::run(float *out, const float *in, int64_t n_in, Lanes *work, int power) const {
  Complex *z = (Complex *)work;
  float *re = (float *)(z + part_), *im = re + half_;
  take_pairs(z, in, n_in, part_);
  fft_.run(z, z + 2 * part_);
  join_lanes(re, im, z, fft_, joins_.data(), part_);
  const float *cosines = turns_.data(), *sines = cosines + half_ / 2 + kLanes;
  powers_in_order(out, re, im, cosines, sines, half_);
  if (power == 1) roots(out, half_ + 1);
}

template <class T>
static std::shared_ptr<const T> kept_by_length(int64_t n) {
  using Known = std::map<int64_t, std::shared_ptr<const T>>;
  static std::mutex mutex;
  static Known &known = *new Known;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = known.find(n);
  if (found != known.end()) return found->second;
  if (known.size() >= kMostKept) known.clear();
  return known[n] = std::make_shared<T>(n);
}
std::shared_ptr<const Fft> Fft::of_length(int64_t n) { return kept_by_length<Fft>(n); }
std::shared_ptr<const RealFft> RealFft::of_length(int64_t n) { return kept_by_length<RealFft>(n); }
std::shared_ptr<const LongRealFft> LongRealFft::of_length(int64_t n) { return kept_by_length<LongRealFft>(n); }
