// SPDX-License-Identifier: Apache-2.0
// Functions of Python, which this library does not link: Python passes in their addresses.
//
// Native resources of Python objects are freed without running Python code. A `__del__` would run in the thread that
// drops the last reference, often the user's: an interrupt (Ctrl-C) there is printed and lost.
#pragma once
#include "core/export.h"

struct PythonFunctions {
  PyObject *(*new_capsule)(void *, const char *, void (*)(PyObject *));
  int (*is_valid)(PyObject *, const char *);
  void *(*pointer)(PyObject *, const char *);
  int (*end_by)(PyObject *, void (*)(PyObject *));
  PyObject *(*no_memory)();
  void (*keep)(PyObject *);
  void (*let_go)(PyObject *);
  void *(*drop_lock)();  // the GIL
  void (*take_lock)(void *);
};
struct Python : PythonFunctions {
  bool ends;           // the interpreter is ending: what must wait for other threads is left as it is
  uint32_t processes;  // increases in a forked child, which lacks the parent's threads
};
extern Python python;
