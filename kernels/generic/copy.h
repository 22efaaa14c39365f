// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

struct CopyArgs {};
