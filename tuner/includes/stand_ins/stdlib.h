// malloc, free and the abs functions are predefined.
#pragma once
#include <sys/types.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
