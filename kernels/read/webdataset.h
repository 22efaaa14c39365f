// SPDX-License-Identifier: Apache-2.0
// Components of a WebDataset's sample. Each part is a member of a tar archive, including its header block.
#pragma once
#include "core/tensor.h"

struct WebdatasetArgs {
  int64_t n_outputs;
};
