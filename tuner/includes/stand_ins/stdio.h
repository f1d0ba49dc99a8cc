// `printf` is predefined. Host code between declarations of a header may name files.
#pragma once

typedef struct cubind_file FILE;
