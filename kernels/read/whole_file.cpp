// SPDX-License-Identifier: Apache-2.0
#include "read/whole_file.h"

#include <cstring>

#include "read/storage.h"

static void run(const Tensor *out, const Tensor *in, const WholeFileArgs &a, Scratch &scratch) {
  Tensor *result = out[0].as<Tensor>();
  const int64_t n = in->volume();
  char *path = scratch.array<char>(n + 1);
  memcpy(path, in->as<char>(), n);
  path[n] = 0;
  if (!*path) fail("the path is empty");
  const Content content = open_object(path, a.direct ? Storage::kDirect : Storage::kOnce)->whole(true);
  result->data = content.data;
  result->shape[0] = content.size;
}

EXPORT_KERNEL(whole_file, WholeFileArgs, run)
