// SPDX-License-Identifier: Apache-2.0
// What rules compute with NumPy, one operation on whole arrays at a time, as a program computes it: see
// penstock/core/program.py. Results are NumPy's, bit for bit.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/native_time.h"
#include "core/program.h"

namespace {

// In the order of penstock.core.program.OPERATIONS.
enum Operation : int32_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
  kMinimum,
  kMaximum,
  kCopysign,
  kAnd,
  kOr,
  kXor,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kNegative,
  kAbsolute,
  kFloor,
  kCeil,
  kTrunc,
  kRint,
  kSqrt,
  kIsFinite,
  kIsNan,
  kIsInf,
  kLogicalNot,
  kInvert,
  kWhere,
  kClip,
};

constexpr int kOperands = 4;  // the output, then up to three inputs
constexpr int kMostAxes = 8;

// Extents of the output, and the distances in bytes of neighbours along each axis, of the output and of the inputs.
struct Layout {
  int64_t ndim;
  int64_t extent[kMostAxes];
  int64_t stride[kOperands][kMostAxes];
};

template <class Out, class A, class B, class C, class F>
void each(const Layout &l, char *out, const char *a, const char *b, const char *c, F f) {
  const int last = (int)l.ndim - 1;
  int64_t at[kMostAxes] = {};
  while (true) {
    char *o = out;
    const char *x = a, *y = b, *z = c;
    for (int64_t i = 0; i < l.extent[last]; i++) {
      *(Out *)o = f(*(const A *)x, *(const B *)y, *(const C *)z);
      o += l.stride[0][last], x += l.stride[1][last], y += l.stride[2][last], z += l.stride[3][last];
    }
    int d = last - 1;
    for (; d >= 0; d--) {
      out += l.stride[0][d], a += l.stride[1][d], b += l.stride[2][d], c += l.stride[3][d];
      if (++at[d] < l.extent[d]) break;
      at[d] = 0;
      out -= l.stride[0][d] * l.extent[d], a -= l.stride[1][d] * l.extent[d];
      b -= l.stride[2][d] * l.extent[d], c -= l.stride[3][d] * l.extent[d];
    }
    if (d < 0) return;
  }
}

template <class T>
T floor_divide(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == (T)-1) return (T)(0 - (std::make_unsigned_t<T>)a);
  const T q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

template <class T>
T remainder(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == (T)-1)) return 0;
  const T r = a % b;
  return r && (a < 0) != (b < 0) ? r + b : r;
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

template <class T>
struct Computing {
  const Layout &l;
  char *out;
  const char *a, *b, *c;

  template <class Out, class F>
  void binary(F f) const {
    each<Out, T, T, uint8_t>(l, out, a, b, out, [&](T x, T y, uint8_t) { return (Out)f(x, y); });
  }
  template <class Out, class F>
  void unary(F f) const {
    each<Out, T, uint8_t, uint8_t>(l, out, a, out, out, [&](T x, uint8_t, uint8_t) { return (Out)f(x); });
  }

  bool numbers(int32_t operation) const {
    using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    switch (operation) {
      case kAdd:
        return binary<T>([](T x, T y) { return (Wrapping)x + (Wrapping)y; }), true;
      case kSubtract:
        return binary<T>([](T x, T y) { return (Wrapping)x - (Wrapping)y; }), true;
      case kMultiply:
        return binary<T>([](T x, T y) { return (Wrapping)x * (Wrapping)y; }), true;
      case kMinimum:
        return binary<T>([](T x, T y) { return is_nan(x) || x <= y ? x : y; }), true;
      case kMaximum:
        return binary<T>([](T x, T y) { return is_nan(x) || x >= y ? x : y; }), true;
      case kNegative:
        return unary<T>([](T x) { return std::is_integral_v<T> ? (T)(0 - (Wrapping)x) : (T)-x; }), true;
      case kAbsolute:
        return unary<T>([](T x) {
                 if constexpr (std::is_integral_v<T>) return x < 0 ? (T)(0 - (Wrapping)x) : x;
                 return (T)std::fabs((double)x);
               }),
               true;
      case kClip:
        each<T, T, T, T>(l, out, a, b, c, [](T x, T low, T high) {
          const T least = is_nan(x) || x > low ? x : low;
          return is_nan(least) || least < high ? least : high;
        });
        return true;
      default:
        return false;
    }
  }

  bool integers(int32_t operation) const {
    if constexpr (std::is_integral_v<T>) {
      switch (operation) {
        case kFloorDivide:
          return binary<T>([](T x, T y) { return floor_divide(x, y); }), true;
        case kRemainder:
          return binary<T>([](T x, T y) { return remainder(x, y); }), true;
        case kAnd:
          return binary<T>([](T x, T y) { return x & y; }), true;
        case kOr:
          return binary<T>([](T x, T y) { return x | y; }), true;
        case kXor:
          return binary<T>([](T x, T y) { return x ^ y; }), true;
        case kInvert:
          return unary<T>([](T x) { return ~x; }), true;
        default:
          break;
      }
    }
    return false;
  }

  bool floats(int32_t operation) const {
    if constexpr (std::is_floating_point_v<T>) {
      switch (operation) {
        case kDivide:
          return binary<T>([](T x, T y) { return x / y; }), true;
        case kCopysign:
          return binary<T>([](T x, T y) { return std::copysign(x, y); }), true;
        case kFloor:
          return unary<T>([](T x) { return std::floor(x); }), true;
        case kCeil:
          return unary<T>([](T x) { return std::ceil(x); }), true;
        case kTrunc:
          return unary<T>([](T x) { return std::trunc(x); }), true;
        case kRint:
          return unary<T>([](T x) { return std::nearbyint(x); }), true;
        case kSqrt:
          return unary<T>([](T x) { return std::sqrt(x); }), true;
        default:
          break;
      }
    }
    return false;
  }

  bool comparisons(int32_t operation) const {
    switch (operation) {
      case kEqual:
        return binary<bool>([](T x, T y) { return x == y; }), true;
      case kNotEqual:
        return binary<bool>([](T x, T y) { return x != y; }), true;
      case kLess:
        return binary<bool>([](T x, T y) { return x < y; }), true;
      case kLessEqual:
        return binary<bool>([](T x, T y) { return x <= y; }), true;
      case kGreater:
        return binary<bool>([](T x, T y) { return x > y; }), true;
      case kGreaterEqual:
        return binary<bool>([](T x, T y) { return x >= y; }), true;
      case kIsNan:
        return unary<bool>([](T x) { return is_nan(x); }), true;
      case kIsFinite:
        return unary<bool>([](T x) { return std::is_integral_v<T> || std::isfinite((double)x); }), true;
      case kIsInf:
        return unary<bool>([](T x) { return !std::is_integral_v<T> && std::isinf((double)x); }), true;
      default:
        return false;
    }
  }

  bool chosen(int32_t operation) const {
    if (operation != kWhere) return false;
    each<T, bool, T, T>(l, out, a, b, c, [](bool which, T x, T y) { return which ? x : y; });
    return true;
  }

  bool run(int32_t operation) const {
    return numbers(operation) || integers(operation) || floats(operation) || comparisons(operation) ||
           chosen(operation);
  }
};

bool run_on_bools(int32_t operation, const Computing<bool> &with) {
  switch (operation) {
    case kAnd:
    case kLogicalAnd:
    case kMultiply:
    case kMinimum:
      return with.binary<bool>([](bool x, bool y) { return x && y; }), true;
    case kOr:
    case kLogicalOr:
    case kAdd:
    case kMaximum:
      return with.binary<bool>([](bool x, bool y) { return x || y; }), true;
    case kXor:
    case kLogicalXor:
    case kNotEqual:
      return with.binary<bool>([](bool x, bool y) { return x != y; }), true;
    case kEqual:
      return with.binary<bool>([](bool x, bool y) { return x == y; }), true;
    case kLogicalNot:
    case kInvert:
      return with.unary<bool>([](bool x) { return !x; }), true;
    default:
      return with.chosen(operation);
  }
}

}  // namespace

// Computes with inputs of one type; comparisons give bool. The first input of kWhere is bool.
EXPORT int32_t compute_columns(int32_t operation, int32_t type, const Layout *layout, char *out, const char *a,
                               const char *b, const char *c) {
  try {
    bool done = false;
    if (type == BOOL) return run_on_bools(operation, Computing<bool>{*layout, out, a, b, c});
    for_types<uint8_t, int32_t, int64_t, uint64_t, float, double>(type, [&](auto t) {
      done = Computing<decltype(t)>{*layout, out, a, b, c}.run(operation);
    });
    return done;
  } catch (const std::exception &) {
    return 0;
  }
}
EXPORT_SHORT(compute_columns)
EXPORT_INSTRUCTION(compute_columns)

// Writes values as another type, as C does.
EXPORT int32_t convert_columns(int32_t to, int32_t from, const Layout *layout, char *out, const char *in) {
  try {
    for_types<uint8_t, int32_t, int64_t, uint64_t, float, double, bool>(to, [&](auto o) {
      for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, int64_t, uint64_t, float, double, bool>(
          from, [&](auto i) {
            using Out = decltype(o);
            using In = decltype(i);
            each<Out, In, uint8_t, uint8_t>(*layout, out, in, out, out, [](In x, uint8_t, uint8_t) { return (Out)x; });
          });
    });
    return 1;
  } catch (const std::exception &) {
    return 0;
  }
}
EXPORT_SHORT(convert_columns)
EXPORT_INSTRUCTION(convert_columns)

// Puts together n elements of `bytes` each from where they lie.
EXPORT void gather_elements(const char *const *from, int64_t n, int64_t bytes, char *out) {
  if (bytes == 8)
    for (int64_t i = 0; i < n; i++) std::memcpy(out + 8 * i, from[i], 8);
  else
    for (int64_t i = 0; i < n; i++) std::memcpy(out + bytes * i, from[i], bytes);
}
EXPORT_SHORT(gather_elements)
EXPORT_INSTRUCTION(gather_elements)

// The other way round.
EXPORT void scatter_elements(char *const *to, int64_t n, int64_t bytes, const char *in) {
  for (int64_t i = 0; i < n; i++) std::memcpy(to[i], in + bytes * i, bytes);
}
EXPORT_SHORT(scatter_elements)
EXPORT_INSTRUCTION(scatter_elements)

// Cosine and sine of n angles.
template <class T>
static void turn(const T *radians, int64_t n, T *cosine, T *sine) {
  for (int64_t i = 0; i < n; i++) cosine[i] = std::cos(radians[i]), sine[i] = std::sin(radians[i]);
}
EXPORT void cosines_and_sines(const double *radians, int64_t n, double *cosine, double *sine) {
  turn(radians, n, cosine, sine);
}
EXPORT_SHORT(cosines_and_sines)
EXPORT_INSTRUCTION(cosines_and_sines)

// The same of floats, which is not always what doubles are rounded to.
EXPORT void float_cosines_and_sines(const float *radians, int64_t n, float *cosine, float *sine) {
  turn(radians, n, cosine, sine);
}
EXPORT_SHORT(float_cosines_and_sines)
EXPORT_INSTRUCTION(float_cosines_and_sines)
