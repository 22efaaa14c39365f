// SPDX-License-Identifier: Apache-2.0
// form: values
#include "core/gpu_chain.h"
#include "generic/copy.h"

template <class To, class From>
struct Copy : Local<To, From> {
  typedef CopyArgs Args;
};
