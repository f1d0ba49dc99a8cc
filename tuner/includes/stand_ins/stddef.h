// size_t, ptrdiff_t, wchar_t and NULL are predefined.
#pragma once

#ifndef offsetof
#define offsetof(type, member) ((::size_t)__INTADDR__(&(((type*)0)->member)))
#endif
typedef struct alignas(16) {
  long double first;
  long long second;
} max_align_t;
