// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of kLanes signals in parallel, of any length.
//
// Lengths with small prime factors are split into radices 4, 2, 3, 5 and other primes, in place, with results in an
// order given by `place`. Others are convolutions of power-of-two length (Bluestein).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "audio/lanes.h"

struct Complex {
  Lanes re, im;
};

// Complex signals: X[k] = sum of x[j] exp(-2 pi i j k / n).
class Fft {
 public:
  explicit Fft(int64_t n);
  // Runs in place; frequency k is then at z[place(k)]. `more` has room for more() elements.
  void run(Complex *z, Complex *more) const;
  int64_t place(int64_t k) const { return place_.empty() ? k : place_[k]; }
  int64_t more() const { return convolution_ ? 2 * convolution_->n_ : 0; }
  // The transform of length n; recently used ones are cached.
  static std::shared_ptr<const Fft> of_length(int64_t n);

  struct Stage {
    int64_t length, radix;        // splits transforms of `length` into `radix` parts
    std::vector<float> twiddles;  // (length / radix, radix - 1) complex numbers
    std::vector<float> roots;     // exp(-2 pi i k / radix) for radices without a special case
  };

 private:
  void bluestein(Complex *z, Complex *more) const;
  int64_t n_;
  std::vector<Stage> stages_;
  std::vector<int32_t> place_;
  std::unique_ptr<Fft> convolution_;
  std::vector<float> chirp_,
      filter_;  // complex: (n), and the transform of its conjugate, in the order of `place`
};

// Real signals; computes the frequencies 0 ... n / 2.
class RealFft {
 public:
  explicit RealFft(int64_t n);
  int64_t bins() const { return n_ / 2 + 1; }
  // Size of the work memory of `run` in Lanes; its beginning holds the n samples.
  int64_t room() const { return 2 * (is_even_ ? n_ / 2 : n_) + 2 * complex_.more(); }
  // out[k] = |X[k]|^2, or |X[k]| if `power` is 1.
  void run(Lanes *out, Lanes *work, int power) const;
  // The transform of length n; recently used ones are cached.
  static std::shared_ptr<const RealFft> of_length(int64_t n);

 private:
  int64_t n_;
  bool is_even_;
  Fft complex_;
  std::vector<float> turns_;  // (n / 4 + 1) complex numbers exp(-2 pi i k / n)
};

// One long real signal: its samples are dealt to kLanes signals, whose transforms are joined by small ones across the
// lanes (the four-step algorithm).
class LongRealFft {
 public:
  static bool takes(int64_t n) { return n >= 4096 && n % (2 * kLanes * kLanes) == 0; }
  explicit LongRealFft(int64_t n);
  int64_t room() const { return 2 * (2 * part_ + fft_.more()); }  // in Lanes
  // out[k] = |X[k]|^2, or |X[k]| if `power` is 1, for k <= n / 2. `in` has n_in samples, followed by implicit zeros.
  void run(float *out, const float *in, int64_t n_in, Lanes *work, int power) const;
  static std::shared_ptr<const LongRealFft> of_length(int64_t n);

 private:
  int64_t half_, part_;       // complex numbers: of the signal, and per lane
  Fft fft_;                   // per lane
  std::vector<float> joins_;  // (.., 2, kLanes): real and imaginary parts of exp(-2 pi i k lane / half)
  std::vector<float> turns_;  // (2, half / 2 + kLanes): real and imaginary parts of exp(-2 pi i k / n)
};
