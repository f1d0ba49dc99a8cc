// A trigraph of a backslash:
// ??/
#include "kernel.cu"
