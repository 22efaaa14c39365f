// SPDX-License-Identifier: Apache-2.0
// Conversion between any two data types, by `saturate` of core/convert.h.
#pragma once
#include "core/convert.h"

struct CastArgs {};
