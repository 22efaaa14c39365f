// SPDX-License-Identifier: Apache-2.0
// The Ops of reductions, on the CPU and the GPU; see reduce.h.
#pragma once
#include "core/convert.h"

constexpr int kAny = 1 << 30;

// Sums of integers modulo 2^64. Groups of at most FEW narrow integers are summed in FAST.
template <class T, class FAST, int FEW>
struct WholeSumBy {
  typedef T In;
  typedef FAST Fast;
  typedef uint64_t Wide;
  static constexpr int kFew = FEW;
  static constexpr bool kCentered = false;
  SHARED static Fast begin() { return 0; }
  SHARED static Wide first() { return 0; }
  SHARED static Fast add(Fast to, In x, double) { return (Fast)(to + (Fast)x); }
  SHARED static Wide join(Wide a, Fast b) { return a + (Wide)(int64_t)b; }
  SHARED static Wide merge(Wide a, Wide b) { return a + b; }
};
template <class T>
struct WholeSum : WholeSumBy<T, uint64_t, kAny> {};
template <>
struct WholeSum<uint8_t> : WholeSumBy<uint8_t, uint16_t, 256> {};
template <>
struct WholeSum<int8_t> : WholeSumBy<int8_t, int16_t, 256> {};
template <>
struct WholeSum<uint16_t> : WholeSumBy<uint16_t, uint32_t, 65536> {};
template <>
struct WholeSum<int16_t> : WholeSumBy<int16_t, int32_t, 65536> {};

// Sums of squares of bytes.
template <class T>
struct WholeSquares : WholeSumBy<T, uint32_t, 65536> {
  SHARED static uint32_t add(uint32_t to, T x, double) { return to + (uint32_t)((int32_t)x * (int32_t)x); }
};

template <class T>
struct RealSum {
  typedef T In;
  typedef double Fast, Wide;
  static constexpr int kFew = kAny;
  static constexpr bool kCentered = false;
  SHARED static double begin() { return 0; }
  SHARED static double first() { return 0; }
  SHARED static double add(double to, T x, double) { return to + (double)x; }
  SHARED static double join(double a, double b) { return a + b; }
  SHARED static double merge(double a, double b) { return a + b; }
};

template <class T>
struct RealSquares : RealSum<T> {
  SHARED static double add(double to, T x, double) { return to + (double)x * (double)x; }
};

// Squared distances from a centre.
template <class T>
struct CenteredSquares : RealSum<T> {
  static constexpr bool kCentered = true;
  SHARED static double add(double to, T x, double center) { return to + ((double)x - center) * ((double)x - center); }
};

template <class T>
struct Limits {  // of integer types
  static constexpr int kBits = sizeof(T) * 8 - (IsSigned<T>::value ? 1 : 0);
  SHARED static T most() { return (T)(~0ull >> (64 - kBits)); }
  SHARED static T least() { return IsSigned<T>::value ? (T)(-(int64_t)most() - 1) : (T)0; }
  SHARED static T highest() { return most(); }
  SHARED static T lowest() { return least(); }
};
template <>
struct Limits<float> {
  SHARED static float most() { return 3.402823466e38f; }
  SHARED static float least() { return -most(); }
  SHARED static float highest() { return most() * most(); }  // infinity
  SHARED static float lowest() { return -highest(); }
};

// The minimum; NaN is skipped.
template <class T>
struct Least {
  typedef T In, Fast, Wide;
  static constexpr int kFew = kAny;
  static constexpr bool kCentered = false;
  SHARED static T begin() { return Limits<T>::highest(); }
  SHARED static T first() { return begin(); }
  SHARED static T add(T to, T x, double) { return x < to ? x : to; }
  SHARED static T join(T a, T b) { return b < a ? b : a; }
  SHARED static T merge(T a, T b) { return b < a ? b : a; }
  SHARED static T of_none() { return Limits<T>::most(); }
};
template <class T>
struct Greatest : Least<T> {
  SHARED static T begin() { return Limits<T>::lowest(); }
  SHARED static T first() { return begin(); }
  SHARED static T add(T to, T x, double) { return x > to ? x : to; }
  SHARED static T join(T a, T b) { return b > a ? b : a; }
  SHARED static T merge(T a, T b) { return b > a ? b : a; }
  SHARED static T of_none() { return Limits<T>::least(); }
};

// Variants for the GPU: sums of bytes in int32, squares of 16-bit integers in uint64, and distances of narrow integers
// in float32, for a few elements at a time.
template <class T, int SIZE>
struct DeviceSum : WholeSum<T> {};
template <class T>
struct DeviceSum<T, 1> : WholeSumBy<T, int32_t, 65536> {};

template <class T, int SIZE>
struct DeviceSquares : RealSquares<T> {};
template <class T>
struct DeviceSquares<T, 1> : WholeSquares<T> {};
template <class T>
struct DeviceSquares<T, 2> : WholeSumBy<T, uint64_t, kAny> {
  SHARED static uint64_t add(uint64_t to, T x, double) { return to + (uint64_t)(uint32_t)((int64_t)x * x); }
};

template <class T, int SIZE>
struct DeviceCentered : CenteredSquares<T> {};
template <class T>
struct NarrowCentered : CenteredSquares<T> {
  typedef float Fast;
  SHARED static float begin() { return 0; }
  SHARED static float add(float to, T x, double center) {
    const float d = (float)x - (float)center;
    return to + d * d;
  }
  SHARED static double join(double a, float b) { return a + (double)b; }
};
template <class T>
struct DeviceCentered<T, 1> : NarrowCentered<T> {};
template <class T>
struct DeviceCentered<T, 2> : NarrowCentered<T> {};
