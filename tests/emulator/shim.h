// SPDX-License-Identifier: Apache-2.0
// CUDA C++ as seen by a C++ compiler: what the kernels use of it, for the emulated device. Threads of a block are
// fibers of one host thread, so that shared memory is static memory and atomics are plain operations.
#pragma once
// The special functions of C++17, which no kernel uses, are half of <cmath>, and it of what each compilation reads.
#if __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
#include <cmath>
#include <cstdint>
#include <cstring>

#include "context.h"

extern "C" __attribute__((visibility("default"))) EmulatedContext emulated_context;
EmulatedContext emulated_context;

#define __CUDACC__ 1
#define __host__
#define __device__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#define __global__ __attribute__((used, used, visibility("default")))
#define DEVICE inline
#define DYNAMIC_SHARED(T, name) T *name = (T *)emulated_context.shared
#define threadIdx emulated_context.thread
#define blockIdx emulated_context.block
#define blockDim emulated_context.threads
#define gridDim emulated_context.blocks
#define warpSize 32

template <class T>
struct Vector2 {
  T x, y;
};
template <class T>
struct Vector3 {
  T x, y, z;
};
template <class T, int ALIGN>
struct __attribute__((aligned(ALIGN))) Vector4 {
  T x, y, z, w;
};
struct __attribute__((aligned(8))) uint2 : Vector2<unsigned> {};
struct __attribute__((aligned(8))) int2 : Vector2<int> {};
struct __attribute__((aligned(8))) float2 : Vector2<float> {};
struct __attribute__((aligned(4))) short2 : Vector2<short> {};
struct __attribute__((aligned(4))) ushort2 : Vector2<unsigned short> {};
struct __attribute__((aligned(16))) double2 : Vector2<double> {};
struct __attribute__((aligned(16))) longlong2 : Vector2<long long> {};
struct __attribute__((aligned(16))) ulonglong2 : Vector2<unsigned long long> {};
struct float3 : Vector3<float> {};
struct int3 : Vector3<int> {};
struct uchar3 : Vector3<unsigned char> {};
struct uint4 : Vector4<unsigned, 16> {};
struct int4 : Vector4<int, 16> {};
struct float4 : Vector4<float, 16> {};
struct uchar4 : Vector4<unsigned char, 4> {};
struct short4 : Vector4<short, 8> {};
struct ushort4 : Vector4<unsigned short, 8> {};
#define MAKE2(T, V) \
  inline V make_##V(T x, T y) { return V{{x, y}}; }
#define MAKE4(T, V) \
  inline V make_##V(T x, T y, T z, T w) { return V{{x, y, z, w}}; }
MAKE2(unsigned, uint2)
MAKE2(int, int2)
MAKE2(float, float2)
MAKE2(short, short2)
MAKE4(unsigned, uint4)
MAKE4(int, int4)
MAKE4(float, float4)
MAKE4(unsigned char, uchar4)
MAKE4(short, short4)

// The device faults on accesses that are not aligned to their size.
template <class T>
inline T __ldg(const T *p) {
  if ((uintptr_t)p % alignof(T)) emulated_context.fail("a load is not aligned");
  T v;
  memcpy((void *)&v, (const void *)p, sizeof v);
  return v;
}
template <class T>
inline T __ldcs(const T *p) {
  return __ldg(p);
}
template <class T>
inline void __stcs(T *p, T v) {
  *p = v;
}

inline void __syncthreads() { emulated_context.wait(0); }
inline int __syncthreads_or(int predicate) {
  static int any;
  emulated_context.wait(0);
  any = 0;
  emulated_context.wait(0);
  any |= predicate != 0;
  emulated_context.wait(0);
  return any;
}
inline void __syncwarp(unsigned = ~0u) { emulated_context.wait(1); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// All lanes of a warp hand in a value, then each reads that of a lane.
template <class T>
inline T exchanged(T value, int lane) {
  static_assert(sizeof(T) <= 8, "");
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  const int mine = emulated_context.linear;
  unsigned long long *slots = emulated_context.slots[emulated_context.turns[mine / 32]];
  slots[mine] = bits;
  emulated_context.wait(1);
  bits = slots[(mine & ~31) + (lane & 31)];
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline T __shfl_sync(unsigned, T v, int lane, int width = 32) {
  return exchanged(v, (emulated_context.linear & ~(width - 1)) + (lane & (width - 1)));
}
template <class T>
inline T __shfl_xor_sync(unsigned, T v, int mask, int = 32) {
  return exchanged(v, emulated_context.linear ^ mask);
}
template <class T>
inline T __shfl_down_sync(unsigned, T v, unsigned by, int width = 32) {
  const int lane = emulated_context.linear & 31;
  return exchanged(v, (lane & (width - 1)) + (int)by < width ? lane + (int)by : lane);
}
template <class T>
inline T __shfl_up_sync(unsigned, T v, unsigned by, int width = 32) {
  const int lane = emulated_context.linear & 31;
  return exchanged(v, (lane & (width - 1)) >= (int)by ? lane - (int)by : lane);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  const int mine = emulated_context.linear, n = (int)(blockDim.x * blockDim.y * blockDim.z);
  unsigned long long *slots = emulated_context.slots[emulated_context.turns[mine / 32]];
  slots[mine] = predicate != 0;
  emulated_context.wait(1);
  unsigned bits = 0;
  for (int i = 0; i < 32 && (mine & ~31) + i < n; i++) bits |= (unsigned)slots[(mine & ~31) + i] << i;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <class T>
inline T atomicAdd(T *p, T v) {
  T old = *p;
  *p = old + v;
  return old;
}
template <class T>
inline T atomicMax(T *p, T v) {
  T old = *p;
  if (v > old) *p = v;
  return old;
}
template <class T>
inline T atomicMin(T *p, T v) {
  T old = *p;
  if (v < old) *p = v;
  return old;
}
template <class T>
inline T atomicOr(T *p, T v) {
  T old = *p;
  *p = old | v;
  return old;
}
template <class T>
inline T atomicCAS(T *p, T compare, T v) {
  T old = *p;
  if (old == compare) *p = v;
  return old;
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; i++) {
    unsigned byte = (unsigned)(both >> (selector >> 4 * i & 7) * 8) & 255;
    if (selector >> 4 * i & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << 8 * i;
  }
  return out;
}
inline int __float_as_int(float f) {
  int i;
  memcpy(&i, &f, 4);
  return i;
}
inline unsigned __float_as_uint(float f) { return (unsigned)__float_as_int(f); }
inline float __int_as_float(int i) {
  float f;
  memcpy(&f, &i, 4);
  return f;
}
inline float __uint_as_float(unsigned u) { return __int_as_float((int)u); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline void sincospif(float x, float *s, float *c) { *s = (float)sin(M_PI * x), *c = (float)cos(M_PI * x); }
inline float sinpif(float x) { return (float)sin(M_PI * x); }
inline float cospif(float x) { return (float)cos(M_PI * x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline int __float2int_rd(float x) { return (int)floorf(x); }
inline int __float2int_rn(float x) { return (int)nearbyintf(x); }
inline int __float2int_rz(float x) { return (int)x; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mul24(int a, int b) { return a * b; }
template <class A, class B>
inline auto min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
inline auto max(A a, B b) {
  return a < b ? b : a;
}

template <class A>
inline void emulated_call(void (*entry)(A), const void *argument) {
  entry(*(const A *)argument);
}
template <class A>
constexpr int emulated_size(void (*)(A)) {
  return sizeof(A);
}
