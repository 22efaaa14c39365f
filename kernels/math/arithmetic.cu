// SPDX-License-Identifier: Apache-2.0
// form: own
// form with one input: values
// constants: operation, compute, constant_at
#include "core/gpu_chain.h"
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
    return OP == BITAND   ? a && b
           : OP == BITOR  ? a || b
           : OP == BITXOR ? a != b
           : OP == SHL    ? a
           : OP == SHR    ? a && !b
                          : !a;
  else if constexpr (IsFloat<T>::value)
    return real_operation<OP>(a, b);
  else
    return integer_operation<OP>(a, b);
}

template <int DTYPE>
struct ComputeType {
  typedef Wide type;
};
#define COMPUTE_TYPE(T)                   \
  template <>                             \
  struct ComputeType<DTypeOf<T>::value> { \
    typedef T type;                       \
  };
COMPUTE_TYPE(uint8_t)
COMPUTE_TYPE(uint16_t)
COMPUTE_TYPE(uint32_t)
COMPUTE_TYPE(uint64_t)
COMPUTE_TYPE(int8_t)
COMPUTE_TYPE(int16_t)
COMPUTE_TYPE(int32_t)
COMPUTE_TYPE(int64_t)
COMPUTE_TYPE(float)
COMPUTE_TYPE(double)
COMPUTE_TYPE(bool)
#undef COMPUTE_TYPE

template <class T, class X>
DEVICE T computed_in(X x) {
  if constexpr (DTypeOf<X>::value == UINT8 && IsFloat<T>::value)
    return (T)to_float(x);
  else
    return (T)x;
}

template <class T>
DEVICE T constant_of(const ArithmeticArgs &a) {
  if constexpr (IsFloat<T>::value)
    return (T)a.real;
  else
    return (T)a.integer;
}

// One tensor, or a tensor and a constant.
template <class To, class From, int OPERATION, int COMPUTE, int CONSTANT_AT>
struct Arithmetic : Local<To, From> {
  typedef ArithmeticArgs Args;
  typedef typename To::T Out;
  typedef typename ComputeType<COMPUTE>::type T;
  T constant;
  DEVICE void begin(const Args &a, const Tensor &, const Tensor &) { constant = constant_of<T>(a); }
  DEVICE void map(Out (&out)[To::C], const typename From::T (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) {
      const T x = computed_in<T>(in[c]);
      out[c] = arithmetic_of<OPERATION, Out>(CONSTANT_AT == 0 ? constant : x, CONSTANT_AT == 1 ? constant : x);
    }
  }
};

// Size of an operand relative to the output: the same, one element, or anything else.
enum Operand { ALIKE, SINGLE, BROADCAST };

// An operand of the output's size, or of one element, which is used for all.
template <class T, class X, Operand KIND, int V>
struct OperandRun {
  X x[V] __attribute__((aligned(16)));
  DEVICE void read(const X *p, bool is_aligned) {
    if constexpr (KIND == ALIKE) {
      if (is_aligned)
        load_aligned(x, p);
      else
        load_run(x, p, 0, V);
    }
  }
  DEVICE T get(int i, T single) const {
    if constexpr (KIND == ALIKE) return computed_in<T>(x[i]);
    return single;
  }
};

// Runs of V elements, aligned in the output. Partial runs at the begin and the end are done separately.
template <int OP, class Out, class T, class A, class B, Operand KIND_A, Operand KIND_B, int AT_A, int AT_B, int V,
          int U>
DEVICE void arithmetic_runs(const Launch &l) {
  constexpr int kThreads = 256;
  FOR_SAMPLES(sample, l) {
    const Tensor to = l.tensors[0][sample];
    const int64_t n = volume_of(to);
    Out *out = to.template as<Out>();
    const int lead = (int)((unsigned long long)out / sizeof(Out) & (V - 1));
    const int64_t n_runs = n ? (n + lead + V - 1) / V : 0, whole = (n + lead) / V;
    int64_t first = (int64_t)blockIdx.x * (kThreads * U) + threadIdx.x;
    if (first - threadIdx.x >= n_runs) continue;
    const A *a = l.tensors[AT_A][sample].template as<A>();
    const B *b = l.tensors[AT_B][sample].template as<B>();
    T left, right;
    if constexpr (KIND_A == SINGLE) left = computed_in<T>(load(a));
    if constexpr (KIND_B == SINGLE) right = computed_in<T>(load(b));
    a -= lead, b -= lead, out -= lead;
    const bool a_is_aligned = ((unsigned long long)a & (alignment_of_run<A, V>() - 1)) == 0;
    const bool b_is_aligned = ((unsigned long long)b & (alignment_of_run<B, V>() - 1)) == 0;
    for (; first < n_runs; first += (int64_t)gridDim.x * (kThreads * U)) {
      OperandRun<T, A, KIND_A, V> x[U];
      OperandRun<T, B, KIND_B, V> y[U];
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t i = first + k * kThreads;
        if (i >= whole || (i == 0 && lead)) continue;
        x[k].read(a + i * V, a_is_aligned);
        y[k].read(b + i * V, b_is_aligned);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t i = first + k * kThreads;
        if (i >= whole || (i == 0 && lead)) continue;
        Out z[V] __attribute__((aligned(16)));
#pragma unroll
        for (int e = 0; e < V; e++) z[e] = arithmetic_of<OP, Out>(x[k].get(e, left), y[k].get(e, right));
        store_aligned(out + i * V, z);
      }
    }
    // Block 0 does the partial runs at the begin and the end.
    if (blockIdx.x == 0 && threadIdx.x < 2 * V) {
      const int64_t run = threadIdx.x < V ? 0 : n_runs - 1, e = run * V + threadIdx.x % V;
      const bool is_cut = threadIdx.x < V ? lead > 0 || whole == 0 : n_runs > 1 && whole < n_runs;
      if (is_cut && e >= lead && e < n + lead) {
        if constexpr (KIND_A == ALIKE) left = computed_in<T>(load(a + e));
        if constexpr (KIND_B == ALIKE) right = computed_in<T>(load(b + e));
        out[e] = arithmetic_of<OP, Out>(left, right);
      }
    }
  }
}

// Strides of an operand along the output's axes; 0 along axes that are broadcast.
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

// Any operands, with broadcasting, element by element.
template <int OP, class Out, class T, class A, class B, int AT_A, int AT_B, int N>
DEVICE void arithmetic_broadcast(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor to = l.tensors[0][sample];
    const int64_t n = volume_of(to);
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (first >= n) continue;
    Out *out = to.template as<Out>();
    Repeated<N> left, right;
    const A *a = l.tensors[AT_A][sample].template as<A>();
    const B *b = l.tensors[AT_B][sample].template as<B>();
    left.begin(l.tensors[AT_A][sample], N);
    right.begin(l.tensors[AT_B][sample], N);
    for (int64_t i = first; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      uint32_t rest = (uint32_t)i;
      int64_t at_a = 0, at_b = 0;
#pragma unroll
      for (int d = N - 1; d >= 0; d--) {
        const uint32_t extent = (uint32_t)to.shape[d], above = d ? rest / extent : 0, at = rest - above * extent;
        at_a += at * left.step[d], at_b += at * right.step[d];
        rest = above;
      }
      out[i] = arithmetic_of<OP, Out>((T)load(a + at_a), (T)load(b + at_b));
    }
  }
}
