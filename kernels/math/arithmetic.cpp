// SPDX-License-Identifier: Apache-2.0
#include "math/arithmetic.h"

#include <algorithm>
#include <cstring>

#include "core/stream.h"
#include "math/arithmetic_loops.h"

typedef void (*Load)(void *to, const void *from, int64_t n);

template <class T, class In>
CLONES static void load(void *__restrict to, const void *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((T *)to)[i] = (T)((const In *)from)[i];
}

template <class T>
static Load find_load(int dtype) {
  Load found = nullptr;
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double, bool>(
      dtype, [&](auto i) {
        using In = decltype(i);
        // Operands are promoted in Python: never to a narrower type, nor from float to integer.
        if constexpr (!(IsFloat<In>::value && !(IsFloat<T>::value)) && sizeof(In) <= sizeof(T) || IsFloat<T>::value)
          found = load<T, In>;
      });
  return found;
}

static Load find_load(int compute, int dtype) {
  if (compute == kWide) return find_load<__int128>(dtype);
  Load found = nullptr;
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double, bool>(
      compute, [&](auto t) { found = find_load<decltype(t)>(dtype); });
  if (!found) fail("[internal error] arithmetic: type %d is computed in type %d", dtype, compute);
  return found;
}

constexpr int64_t kBlock = 1024;

// Fills `to` with copies of its first `period` elements.
static void repeat(char *to, int64_t bytes, int64_t period) {
  for (int64_t done = period; done < bytes; done += std::min(done, bytes - done))
    std::memcpy(to + done, to, std::min(done, bytes - done));
}

// One operand. Gives blocks of it, broadcast to the output, in the type of the computation.
class Operand {
 public:
  void constant(const ArithmeticArgs &a, char *room) {
    room_ = room;
    fixed_ = true;
    if (a.compute == kWide) {
      __int128 value = a.integer;
      std::memcpy(room, &value, sizeof value);
    } else {
      for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double, bool>(
          a.compute, [&](auto t) {
            using T = decltype(t);
            T value;
            if constexpr (IsFloat<T>::value)
              value = (T)a.real;
            else
              value = (T)a.integer;
            std::memcpy(room, &value, sizeof value);
          });
    }
    repeat(room, kBlock * size_, size_);
  }

  void tensor(const Tensor &x, const Tensor &out, int compute, char *room) {
    data_ = (const char *)x.data;
    item_ = item_size(x.dtype);
    direct_ = x.dtype == compute;
    load_ = direct_ ? nullptr : find_load(compute, x.dtype);
    room_ = room;
    // Axes of the output; adjacent ones are merged if this operand is contiguous across them.
    int64_t stride = 1;
    for (int d = out.ndim - 1; d >= 0; d--) {
      int mine = d - (out.ndim - x.ndim);
      int64_t extent = mine >= 0 ? x.shape[mine] : 1, step = extent == 1 && out.shape[d] != 1 ? 0 : stride;
      stride *= extent;
      if (out.shape[d] == 1) continue;
      if (n_axes_ && step == step_[n_axes_ - 1] * extent_[n_axes_ - 1]) {
        extent_[n_axes_ - 1] *= out.shape[d];
      } else {
        extent_[n_axes_] = out.shape[d];
        step_[n_axes_++] = step;
      }
    }
    if (n_axes_ == 0) extent_[0] = 1, step_[0] = 1, n_axes_ = 1;
  }

  Operand(int64_t size) : size_(size) {}

  // The number of elements after which the operand repeats, if they fit in a block; else 0.
  int64_t period() const {
    if (fixed_ || n_axes_ > 2) return 0;
    if (n_axes_ == 1) return step_[0] == 0 ? 1 : 0;
    return step_[0] == 1 && step_[1] == 0 && extent_[0] <= kBlock ? extent_[0] : 0;
  }

  // Makes one block of a repeating operand, which is used for all blocks.
  void fix(int64_t block) {
    int64_t n = period();
    get_run(room_, 0, 1, n);
    repeat(room_, block * size_, n * size_);
    fixed_ = true;
  }

  const void *block(int64_t first, int64_t n) {
    if (fixed_) return room_;
    if (n_axes_ == 1 && step_[0] == 1) {
      if (direct_) return data_ + first * item_;
      load_(room_, data_ + first * item_, n);
      return room_;
    }
    int64_t at[kMaxDims], offset = 0, rest = first;
    for (int d = 0; d < n_axes_; d++) {
      at[d] = rest % extent_[d];
      rest /= extent_[d];
      offset += at[d] * step_[d];
    }
    for (int64_t i = 0; i < n;) {
      int64_t m = std::min(extent_[0] - at[0], n - i);
      get_run(room_ + i * size_, offset, step_[0], m);
      i += m;
      offset += m * step_[0];
      at[0] += m;
      for (int d = 0; d < n_axes_ - 1 && at[d] == extent_[d]; d++) {
        offset += step_[d + 1] - at[d] * step_[d];
        at[d] = 0;
        at[d + 1]++;
      }
    }
    return room_;
  }

 private:
  // Copies m elements from `offset` on, or one element m times if the step is 0.
  void get_run(char *to, int64_t offset, int64_t step, int64_t m) {
    int64_t n = step ? m : 1;
    if (direct_)
      std::memcpy(to, data_ + offset * item_, n * item_);
    else
      load_(to, data_ + offset * item_, n);
    if (!step) repeat(to, m * size_, size_);
  }

  int64_t size_;  // bytes of an element in the type of the computation
  const char *data_ = nullptr;
  char *room_ = nullptr;
  int64_t item_ = 0;
  Load load_ = nullptr;
  bool direct_ = false, fixed_ = false;
  int n_axes_ = 0;
  int64_t extent_[kMaxDims], step_[kMaxDims];  // innermost first
};

// Whether one of n integers, each of `size` bytes, is 0.
static bool has_zero(const void *x, int64_t n, int64_t size) {
  auto search = [&](auto t) {
    bool found = false;
    for (int64_t i = 0; i < n; i++) found |= ((const decltype(t) *)x)[i] == 0;
    return found;
  };
  return size == 1   ? search(uint8_t())
         : size == 2 ? search(uint16_t())
         : size == 4 ? search(uint32_t())
                     : search(uint64_t());
}

static void run(const Tensor *out, const Tensor *in, const ArithmeticArgs &a, Scratch &scratch) {
  bool is_comparison = a.operation >= EQ && a.operation <= GE, is_real = a.compute == FLOAT || a.compute == FLOAT64;
  const bool is_narrowed = a.operation == MOD && a.compute == FLOAT64 && out->dtype == FLOAT;
  Loop loop = is_comparison || a.compute == BOOL ? comparison_loop(a.operation, a.compute)
              : is_narrowed                      ? narrow_remainder_loop()
              : is_real                          ? real_loop(a.operation, a.compute)
                                                 : integer_loop(a.operation, a.compute);
  if (!loop) fail("[internal error] no arithmetic operation %d on type %d", a.operation, a.compute);
  int64_t total = out->volume(), size = a.compute == kWide ? 16 : item_size(a.compute);
  if (total == 0) return;
  Operand operands[2] = {size, size};
  bool divides = (a.operation == FLOORDIV || a.operation == MOD) && !is_real;
  bool is_unary = a.operation >= NEG;
  int64_t out_size = item_size(out->dtype);
  char *made = scratch.is_output_large ? scratch.array<char>(kBlock * 16, 2) : nullptr;
  const int64_t most = made ? kStreamBlock / out_size : kBlock;
  int64_t block = most, repeats = 1;  // blocks begin where repeating operands begin
  for (int i = 0; i < 2 - is_unary; i++) {
    char *room = scratch.array<char>(kBlock * 16, i);
    if (a.constant_at == i) {
      operands[i].constant(a, room);
    } else {
      operands[i].tensor(*in++, *out, a.compute, room);
      int64_t period = operands[i].period();
      if (period && (repeats == 1 || repeats % period == 0)) {
        if (repeats == 1) repeats = period, block = std::max<int64_t>(most / period, 1) * period;
        operands[i].fix(block);
      }
    }
  }
  for (int64_t i = 0; i < total; i += block) {
    int64_t n = std::min(block, total - i);
    const void *x = operands[0].block(i, n), *y = is_unary ? x : operands[1].block(i, n);
    if (divides && has_zero(y, n, size)) fail("Integer division by zero.");
    char *to = out->as<char>() + i * out_size;
    loop(made ? made : to, x, y, n);
    if (made) stream_copy(to, made, n * out_size);
  }
}

EXPORT_KERNEL(arithmetic, ArithmeticArgs, run)
