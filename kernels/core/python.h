// SPDX-License-Identifier: Apache-2.0
// Functions of Python's, which this library is not linked to: Python tells where they are.
//
// What Python objects own natively ends by them without a line of Python. A `__del__` would run in whatever thread lets
// go last, often the user's: an interrupt (Ctrl-C) that meets it there is printed and lost.
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
  bool ends;           // the interpreter does: what has to wait for other threads is left as it is
  uint32_t processes;  // goes up in a forked child, in which the parent's threads are missing
};
extern Python python;
