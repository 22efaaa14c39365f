// SPDX-License-Identifier: Apache-2.0
// Components of a WebDataset's sample. Each part is a member of a tar archive with the header block before it.
#pragma once
#include "core/tensor.h"

struct WebdatasetArgs {
  int64_t n_outputs;
};
