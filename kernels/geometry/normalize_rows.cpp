// SPDX-License-Identifier: Apache-2.0
#include "geometry/normalize_rows.h"

Split3 split3_for(int dtype) {
  return dtype == FLOAT ? split3_plain<float> : dtype == FLOAT16 ? split3_plain<half> : nullptr;
}
