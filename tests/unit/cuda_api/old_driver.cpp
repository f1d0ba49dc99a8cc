// A libcuda, and an NVML, of long ago: it starts and knows nothing else.
extern "C" int cuInit(unsigned) { return 0; }
// NOLINTNEXTLINE(readability-identifier-naming): NVML's own
extern "C" int nvmlInit_v2() { return 9; }  // NVML_ERROR_DRIVER_NOT_LOADED
extern "C" int nvmlShutdown() { return 0; }
