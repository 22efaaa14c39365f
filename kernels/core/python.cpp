// SPDX-License-Identifier: Apache-2.0
#include "core/python.h"

#include <pthread.h>

Python python;

EXPORT void python_functions(const PythonFunctions *functions) {
  static_cast<PythonFunctions &>(python) = *functions;
  static const int once = pthread_atfork(nullptr, nullptr, [] { python.processes++; });
  (void)once;
}
EXPORT_SHORT(python_functions)

EXPORT void python_ends() { python.ends = true; }
EXPORT_SHORT(python_ends)
