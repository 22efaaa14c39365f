// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo alone: decodes the JPEG files named on the command line again and again from memory, on one thread,
// with one decompressor kept for all and one output buffer, and prints images per second. The floor of what a pipeline
// costs.
//
//   cc -O3 -o decode_alone bench/native/decode_alone.c -ljpeg && ./decode_alone 10 photos/*.jpg
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Needs stdio.h before it.
#include <jpeglib.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: %s ROUNDS FILE...\n", argv[0]), 2;
  int rounds = atoi(argv[1]), n = argc - 2;
  unsigned char **data = malloc(n * sizeof *data), *out = NULL;
  size_t *size = malloc(n * sizeof *size), room = 0;
  for (int i = 0; i < n; i++) {
    FILE *f = fopen(argv[i + 2], "rb");
    if (!f) return perror(argv[i + 2]), 1;
    fseek(f, 0, SEEK_END);
    size[i] = ftell(f);
    rewind(f);
    data[i] = malloc(size[i]);
    if (fread(data[i], 1, size[i], f) != size[i]) return perror(argv[i + 2]), 1;
    fclose(f);
  }
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr errors;
  d.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&d);
  double best = 1e9, total = 0;
  for (int r = 0; r < rounds; r++) {
    double begin = now();
    for (int i = 0; i < n; i++) {
      jpeg_mem_src(&d, data[i], size[i]);
      jpeg_read_header(&d, TRUE);
      d.out_color_space = JCS_RGB;
      jpeg_start_decompress(&d);
      size_t row = 3 * (size_t)d.output_width, need = row * d.output_height;
      if (need > room) out = realloc(out, room = need);
      while (d.output_scanline < d.output_height) {
        JSAMPROW rows[16];
        for (int k = 0; k < 16; k++) rows[k] = out + row * (d.output_scanline + k);
        jpeg_read_scanlines(&d, rows, 16);
      }
      jpeg_finish_decompress(&d);
    }
    double t = now() - begin;
    total += t;
    if (t < best) best = t;
  }
  printf("%.1f images/s in the best round, %.1f on average\n", n / best, n * rounds / total);
  return 0;
}
