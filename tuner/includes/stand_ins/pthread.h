// Host code alone uses threads; headers name their type.
#pragma once

typedef unsigned long pthread_t;
