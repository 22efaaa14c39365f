#include "my_effects/gain.h"

#include "core/kernel.h"

// CLONES: compiled for several instruction sets, of which the processor's best is taken.
template <class T>
CLONES static void multiply(T *__restrict out, const T *__restrict in, int64_t n, float gain) {
  for (int64_t i = 0; i < n; i++) out[i] = times_gain(in[i], gain);
}

// One sample.
static void run(const Tensor *out, const Tensor *in, const GainArgs &a, Scratch &) {
  for_types<uint8_t, uint16_t, float>(in->dtype, [&](auto t) {
    using T = decltype(t);
    multiply(out->as<T>(), in->as<T>(), in->volume(), a.gain);
  });
}

EXPORT_KERNEL(gain, GainArgs, run)
