// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_runs.h"
#include "math/arithmetic.h"

// An integer of any type, for comparisons between uint64 and signed ones.
struct Wide {
  bool negative;
  uint64_t bits;
  Wide() = default;
  template <class T>
  DEVICE explicit Wide(T x) : negative(IsSigned<T>::value && x < (T)0), bits((uint64_t)x) {}
  DEVICE bool operator==(const Wide &o) const { return negative == o.negative && bits == o.bits; }
  DEVICE bool operator!=(const Wide &o) const { return !(*this == o); }
  DEVICE bool operator<(const Wide &o) const { return negative != o.negative ? negative : bits < o.bits; }
  DEVICE bool operator>(const Wide &o) const { return o < *this; }
  DEVICE bool operator<=(const Wide &o) const { return !(o < *this); }
  DEVICE bool operator>=(const Wide &o) const { return !(*this < o); }
};

template <class T>
struct IsBool {
  static constexpr bool value = false;
};
template <>
struct IsBool<bool> {
  static constexpr bool value = true;
};

template <int OP, class Out, class T>
DEVICE Out arithmetic_of(T a, T b) {
  if constexpr (OP >= EQ && OP <= GE)
    return comparison<OP>(a, b);
  else if constexpr (IsBool<T>::value)
    return OP == BITAND ? a && b : OP == BITOR ? a || b : OP == BITXOR ? a != b : !a;
  else if constexpr (IsFloat<T>::value)
    return real_operation<OP>(a, b);
  else
    return integer_operation<OP>(a, b);
}

// How an operand lies beside the output.
enum Operand { ALIKE, SINGLE, BROADCAST, CONSTANT };

template <class T>
DEVICE T constant_of(const ArithmeticArgs &a) {
  if constexpr (IsFloat<T>::value)
    return (T)a.real;
  else
    return (T)a.integer;
}

// Operands as large as the output, of one element, or constants: runs of V elements.
template <int OP, class Out, class T, class A, class B, Operand KIND_A, Operand KIND_B, int AT_A, int AT_B, int V,
          int U>
DEVICE void arithmetic_runs(const Launch &l) {
  constexpr int kThreads = 256;
  FOR_SAMPLES(sample, l) {
    const Tensor to = l.tensors[0][sample];
    const ArithmeticArgs args = ((const ArithmeticArgs *)l.args[0])[sample];
    const int64_t n = volume_of(to);
    Out *out = to.template as<Out>();
    const int lead = (int)((unsigned long long)out / sizeof(Out) & (V - 1));
    const int64_t n_runs = n ? (n + lead + V - 1) / V : 0;
    int64_t first = (int64_t)blockIdx.x * (kThreads * U) + threadIdx.x;
    if (first >= n_runs) continue;
    const A *a = KIND_A == CONSTANT ? nullptr : l.tensors[AT_A][sample].template as<A>();
    const B *b = KIND_B == CONSTANT ? nullptr : l.tensors[AT_B][sample].template as<B>();
    T left, right;
    if constexpr (KIND_A == CONSTANT) left = constant_of<T>(args);
    if constexpr (KIND_A == SINGLE) left = (T)load(a);
    if constexpr (KIND_B == CONSTANT) right = constant_of<T>(args);
    if constexpr (KIND_B == SINGLE) right = (T)load(b);
    for (; first < n_runs; first += (int64_t)gridDim.x * (kThreads * U)) {
      A x[U][V] __attribute__((aligned(16)));
      B y[U][V] __attribute__((aligned(16)));
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t e = (first + k * kThreads) * V - lead, rest = n - e;
        if (first + k * kThreads >= n_runs) continue;
        const int begin = e < 0 ? (int)-e : 0, end = rest < V ? (int)rest : V;
        if constexpr (KIND_A == ALIKE) load_run(x[k], a + e, begin, end);
        if constexpr (KIND_B == ALIKE) load_run(y[k], b + e, begin, end);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t e = (first + k * kThreads) * V - lead, rest = n - e;
        if (first + k * kThreads >= n_runs) continue;
        const int begin = e < 0 ? (int)-e : 0, end = rest < V ? (int)rest : V;
        Out z[V] __attribute__((aligned(16)));
#pragma unroll
        for (int i = 0; i < V; i++) {
          if (i < begin || i >= end) continue;
          T p, q;
          if constexpr (KIND_A == ALIKE)
            p = (T)x[k][i];
          else
            p = left;
          if constexpr (KIND_B == ALIKE)
            q = (T)y[k][i];
          else
            q = right;
          z[i] = arithmetic_of<OP, Out>(p, q);
        }
        store_run(out + e, z, begin, end);
      }
    }
  }
}

// Where an operand's element lies for the element `i` of the output: axes of one element are repeated.
template <int N>
struct Repeated {
  int64_t step[N];
  DEVICE void begin(const Tensor &t, int ndim) {
    int64_t n = 1;
#pragma unroll
    for (int d = N - 1; d >= 0; d--) {
      const int mine = d - (ndim - t.ndim);
      const int64_t extent = mine >= 0 && d < ndim ? t.shape[mine] : 1;
      step[d] = extent == 1 ? 0 : n;
      n *= extent;
    }
  }
};

// Any operands: element by element.
template <int OP, class Out, class T, class A, class B, Operand KIND_A, Operand KIND_B, int AT_A, int AT_B, int N>
DEVICE void arithmetic_broadcast(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor to = l.tensors[0][sample];
    const ArithmeticArgs args = ((const ArithmeticArgs *)l.args[0])[sample];
    const int64_t n = volume_of(to);
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (first >= n) continue;
    Out *out = to.template as<Out>();
    Repeated<N> left, right;
    const A *a = nullptr;
    const B *b = nullptr;
    if constexpr (KIND_A != CONSTANT)
      a = l.tensors[AT_A][sample].template as<A>(), left.begin(l.tensors[AT_A][sample], N);
    if constexpr (KIND_B != CONSTANT)
      b = l.tensors[AT_B][sample].template as<B>(), right.begin(l.tensors[AT_B][sample], N);
    for (int64_t i = first; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      uint32_t rest = (uint32_t)i;
      int64_t at_a = 0, at_b = 0;
#pragma unroll
      for (int d = N - 1; d >= 0; d--) {
        const uint32_t extent = (uint32_t)to.shape[d], above = d ? rest / extent : 0, at = rest - above * extent;
        if constexpr (KIND_A != CONSTANT) at_a += at * left.step[d];
        if constexpr (KIND_B != CONSTANT) at_b += at * right.step[d];
        rest = above;
      }
      T p, q;
      if constexpr (KIND_A == CONSTANT)
        p = constant_of<T>(args);
      else
        p = (T)load(a + at_a);
      if constexpr (KIND_B == CONSTANT)
        q = constant_of<T>(args);
      else
        q = (T)load(b + at_b);
      out[i] = arithmetic_of<OP, Out>(p, q);
    }
  }
}
