// NVRTC has predefined `assert`; this file follows NDEBUG each time that it is included.
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif
