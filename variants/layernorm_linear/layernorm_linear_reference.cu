// The plain statements of LayerNorm and of a matrix product, one after the other; what is between them is rounded to
// T.
#include "layernorm_forward_reference.cu"
#include "reference.cu"
