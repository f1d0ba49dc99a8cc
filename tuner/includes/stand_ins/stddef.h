// size_t, ptrdiff_t, wchar_t and NULL are predefined.
#pragma once

#undef offsetof  // CCCL's is no constant
#define offsetof(type, member) ((::size_t)__INTADDR__(&(((type*)0)->member)))
typedef struct alignas(16) {
  long double first;
  long long second;
} max_align_t;
