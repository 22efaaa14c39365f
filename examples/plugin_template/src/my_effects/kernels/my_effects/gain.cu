// form: values
#include "core/gpu_chain.h"
#include "my_effects/gain.h"

// A step of a launch that may have more of them: the operators before and behind it.
template <class To, class From>
struct Gain : Local<To, From> {
  typedef GainArgs Args;
  float gain;
  DEVICE void begin(const Args &a, const Tensor &, const Tensor &) { gain = a.gain; }
  DEVICE void map(typename To::T (&out)[To::C], const typename From::T (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) out[c] = times_gain(in[c], gain);
  }
};
