#define HEADER "kernel.cu"
#include HEADER
