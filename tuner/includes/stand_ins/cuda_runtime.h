// The compiler has predefined the runtime's types and functions. With nvcc this header also brings what is
// included here.
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits.h>
#include <stddef.h>
#include <cstdint>
