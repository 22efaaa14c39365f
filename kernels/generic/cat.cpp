// SPDX-License-Identifier: Apache-2.0
#include "generic/cat.h"

#include <cstring>

#include "core/kernel.h"

namespace {

// Scatters pieces of N bytes, such as planes to pixels.
template <int N>
CLONES void scatter(char *__restrict out, const char *__restrict in, int64_t pieces, int64_t step) {
  for (int64_t i = 0; i < pieces; i++) std::memcpy(out + i * step, in + i * N, N);
}

void copy_pieces(char *out, const char *in, int64_t pieces, int64_t piece, int64_t step) {
  switch (piece) {
    case 1:
      return scatter<1>(out, in, pieces, step);
    case 2:
      return scatter<2>(out, in, pieces, step);
    case 3:
      return scatter<3>(out, in, pieces, step);
    case 4:
      return scatter<4>(out, in, pieces, step);
    case 8:
      return scatter<8>(out, in, pieces, step);
    case 12:
      return scatter<12>(out, in, pieces, step);
    default:
      for (int64_t i = 0; i < pieces; i++) std::memcpy(out + i * step, in + i * piece, piece);
  }
}

// A piece of several elements, such as a pixel.
template <int N>
struct Piece {
  char bytes[N];
};

// Two to four inputs with pieces of one size: writes the output once, in order.
template <class T, int K>
CLONES void interleave(T *__restrict out, const T *const *in, int64_t n) {
  const T *a[K];
  for (int k = 0; k < K; k++) a[k] = in[k];
  // Three bytes as a word, in half the instructions: the next piece is written over the fourth byte.
  const int64_t by_words = sizeof(T) == 3 ? n - 1 : 0;
  for (int64_t i = 0; i < by_words; i++)
    for (int k = 0; k < K; k++) std::memcpy((char *)(out + i * K + k), (const char *)(a[k] + i), 4);
  for (int64_t i = by_words; i < n; i++)
    for (int k = 0; k < K; k++) out[i * K + k] = a[k][i];
}

template <class T>
bool interleave_any(const Tensor *out, const Tensor *in, int inputs, int64_t n) {
  const T *from[4];
  for (int k = 0; k < inputs; k++) from[k] = in[k].as<const T>();
  switch (inputs) {
    case 2:
      return interleave<T, 2>(out->as<T>(), from, n), true;
    case 3:
      return interleave<T, 3>(out->as<T>(), from, n), true;
    case 4:
      return interleave<T, 4>(out->as<T>(), from, n), true;
  }
  return false;
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const CatArgs &a, Scratch &) {
  const int64_t pieces = cat_pieces(in[0], a.axis), size = item_size(in[0].dtype);
  if (!pieces || !out->volume()) return;
  const int64_t first = cat_piece(in[0], a.axis);
  int64_t step = 0;
  bool alike = a.inputs >= 2 && a.inputs <= 4;
  for (int k = 0; k < a.inputs; k++) {
    const int64_t piece = cat_piece(in[k], a.axis);
    step += piece;
    alike = alike && piece == first;
  }
  if (alike && first == 1 && interleave_any<uint8_t>(out, in, a.inputs, pieces)) return;
  if (alike && first == 3 && interleave_any<Piece<3>>(out, in, a.inputs, pieces)) return;
  if (alike && first == 4 && size == 4 && interleave_any<uint32_t>(out, in, a.inputs, pieces)) return;
  if (alike && first == 12 && interleave_any<Piece<12>>(out, in, a.inputs, pieces)) return;
  int64_t at = 0;
  for (int k = 0; k < a.inputs; k++) {
    const int64_t piece = cat_piece(in[k], a.axis);
    if (piece) copy_pieces((char *)out->data + at, (const char *)in[k].data, pieces, piece, step);
    at += piece;
  }
}

EXPORT_KERNEL(cat, CatArgs, run)
