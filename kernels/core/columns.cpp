// SPDX-License-Identifier: Apache-2.0
// NumPy operations on whole arrays, for planning rules that run as a column program: see penstock/core/program.py.
// Results equal NumPy's, bit for bit.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/native_time.h"
#include "core/program.h"

namespace {

// The types that an operation supports.
template <class T>
struct For {
  static constexpr bool any = true, bools = std::is_same_v<T, bool>, numbers = !bools;
  static constexpr bool floats = std::is_floating_point_v<T>, bits = !floats, integers = numbers && bits;
};

constexpr int kOperands = 4;  // the output, then up to three inputs

// Extents of the output, and byte strides along each axis, of the output and of the inputs.
struct Layout {
  int64_t ndim;
  int64_t extent[kMaxDims];
  int64_t stride[kOperands][kMaxDims];
};

template <class Out, class A, class B, class C, class F>
void row(int64_t n, const int64_t *step, char *out, const char *a, const char *b, const char *c, F f) {
  if (step[0] == sizeof(Out) && step[1] == sizeof(A) && step[2] == sizeof(B) && step[3] == sizeof(C)) {
    for (int64_t i = 0; i < n; i++) ((Out *)out)[i] = f(((const A *)a)[i], ((const B *)b)[i], ((const C *)c)[i]);
  } else if (step[0] == sizeof(Out) && step[1] == sizeof(A) && !step[2] && !step[3]) {
    const B y = *(const B *)b;
    const C z = *(const C *)c;
    for (int64_t i = 0; i < n; i++) ((Out *)out)[i] = f(((const A *)a)[i], y, z);
  } else if (std::is_same_v<Out, A> && out == a && !step[0] && !step[1]) {  // a reduction
    Out total = *(const Out *)a;
    for (int64_t i = 0; i < n; i++, b += step[2], c += step[3]) total = (Out)f((A)total, *(const B *)b, *(const C *)c);
    *(Out *)out = total;
  } else {
    for (int64_t i = 0; i < n; i++, out += step[0], a += step[1], b += step[2], c += step[3])
      *(Out *)out = f(*(const A *)a, *(const B *)b, *(const C *)c);
  }
}

template <class Out, class A, class B, class C, class F>
void each(const Layout &l, char *out, const char *a, const char *b, const char *c, F f) {
  const int last = (int)l.ndim - 1;
  const int64_t step[kOperands] = {l.stride[0][last], l.stride[1][last], l.stride[2][last], l.stride[3][last]};
  int64_t at[kMaxDims] = {};
  while (true) {
    row<Out, A, B, C>(l.extent[last], step, out, a, b, c, f);
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
T quotient(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == (T)-1) return (T)(0 - (std::make_unsigned_t<T>)a);
  const T q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

// Operations on elements x (and y, z), named like NumPy's functions: supported types, result type, expression.
// clang-format off
#define OPERATIONS(OF)                                                                                    \
  OF(add, any, T, (Wrapping)x + (Wrapping)y)                                                              \
  OF(subtract, numbers, T, (Wrapping)x - (Wrapping)y)                                                     \
  OF(multiply, any, T, (Wrapping)x * (Wrapping)y)                                                         \
  OF(divide, floats, T, x / y)                                                                            \
  OF(floor_divide, integers, T, quotient(x, y))                                                           \
  OF(remainder, integers, T, y ? (Wrapping)x - (Wrapping)quotient(x, y) * (Wrapping)y : 0)                \
  OF(minimum, any, T, is_nan(x) || x < y ? x : y)                                                         \
  OF(maximum, any, T, is_nan(x) || x > y ? x : y)                                                         \
  OF(copysign, floats, T, std::copysign(x, y))                                                            \
  OF(bitwise_and, bits, T, x & y)                                                                         \
  OF(bitwise_or, bits, T, x | y)                                                                          \
  OF(bitwise_xor, bits, T, x ^ y)                                                                         \
  OF(equal, any, bool, x == y)                                                                            \
  OF(not_equal, any, bool, x != y)                                                                        \
  OF(less, numbers, bool, x < y)                                                                          \
  OF(less_equal, numbers, bool, x <= y)                                                                   \
  OF(greater, numbers, bool, x > y)                                                                       \
  OF(greater_equal, numbers, bool, x >= y)                                                                \
  OF(logical_and, bools, bool, x && y)                                                                    \
  OF(logical_or, bools, bool, x || y)                                                                     \
  OF(logical_xor, bools, bool, x != y)                                                                    \
  OF(negative, numbers, T, For<T>::floats ? (T)-x : (T)(0 - (Wrapping)x))                                 \
  OF(absolute, numbers, T, For<T>::floats ? (T)std::fabs((double)x) : x < 0 ? (T)(0 - (Wrapping)x) : x)   \
  OF(floor, floats, T, std::floor(x))                                                                     \
  OF(ceil, floats, T, std::ceil(x))                                                                       \
  OF(trunc, floats, T, std::trunc(x))                                                                     \
  OF(rint, floats, T, std::nearbyint(x))                                                                  \
  OF(sqrt, floats, T, std::sqrt(x))                                                                       \
  OF(isfinite, numbers, bool, !For<T>::floats || std::isfinite((double)x))                                \
  OF(isnan, numbers, bool, is_nan(x))                                                                     \
  OF(isinf, numbers, bool, For<T>::floats && std::isinf((double)x))                                       \
  OF(logical_not, bools, bool, !x)                                                                        \
  OF(invert, bits, T, x ^ (T)-1)
// clang-format on

#define NUMBER(name, ...) k_##name,
enum Operation : int32_t { OPERATIONS(NUMBER) k_where, kOperations };
#define NAME(name, ...) #name,
constexpr const char *kNames[] = {OPERATIONS(NAME) "where"};

template <class T>
bool compute(int32_t operation, const Layout &l, char *out, const char *a, const char *b, const char *c) {
  using Wrapping = std::conditional_t<For<T>::integers, uint64_t, T>;
  switch (operation) {
#define CASE(name, types, Result, expression)                                                                      \
  case k_##name:                                                                                                   \
    if constexpr (For<T>::types)                                                                                   \
      each<Result, T, T, T>(l, out, a, b, c,                                                                       \
                            [](T x, [[maybe_unused]] T y, [[maybe_unused]] T z) { return (Result)(expression); }); \
    return For<T>::types;
    OPERATIONS(CASE)
    case k_where:
      return each<T, bool, T, T>(l, out, a, b, c, [](bool which, T x, T y) { return which ? x : y; }), true;
    default:
      return false;
  }
}

}  // namespace

// Returns the number of an operation for `compute_columns`; -1 if there is none of this name.
EXPORT int32_t operation_number(const char *name) {
  int32_t number = 0;
  while (number < kOperations && std::strcmp(kNames[number], name)) number++;
  return number < kOperations ? number : -1;
}
EXPORT_SHORT(operation_number)

// Computes with inputs of one type; comparisons return bool. The first input of `where` is bool.
EXPORT int32_t compute_columns(int32_t operation, int32_t type, const Layout *layout, char *out, const char *a,
                               const char *b, const char *c) {
  try {
    bool done = false;
    for_types<uint8_t, int32_t, int64_t, uint64_t, float, double, bool>(
        type, [&](auto t) { done = compute<decltype(t)>(operation, *layout, out, a, b, c); });
    return done;
  } catch (const std::exception &) {
    return 0;
  }
}
EXPORT_SHORT(compute_columns)
EXPORT_INSTRUCTION(compute_columns)

// Converts values to another type, as C does.
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

// Copies n elements of `bytes` each.
EXPORT void move_elements(const char *const *from, char *const *to, int64_t n, int64_t bytes) {
  if (bytes == 8)
    for (int64_t i = 0; i < n; i++) std::memcpy(to[i], from[i], 8);
  else
    for (int64_t i = 0; i < n; i++) std::memcpy(to[i], from[i], bytes);
}
EXPORT_SHORT(move_elements)
EXPORT_INSTRUCTION(move_elements)

// Cosine and sine of n angles; those of floats may differ from rounded double results.
EXPORT int32_t cosines_and_sines(int32_t type, const void *radians, int64_t n, void *cosine, void *sine) {
  try {
    for_types<float, double>(type, [&](auto t) {
      using T = decltype(t);
      for (int64_t i = 0; i < n; i++) {
        const T x = ((const T *)radians)[i];
        ((T *)cosine)[i] = std::cos(x), ((T *)sine)[i] = std::sin(x);
      }
    });
    return 1;
  } catch (const std::exception &) {
    return 0;
  }
}
EXPORT_SHORT(cosines_and_sines)
EXPORT_INSTRUCTION(cosines_and_sines)
