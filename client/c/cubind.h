/* The client of a cubind daemon in C.

     cubind_client* client;
     cubind_variant* variant;
     cubind_kernel* kernel;
     cubind_binding* binding;
     cubind_query query = CUBIND_QUERY_INIT;
     query.kernel = "rmsnorm_forward";
     query.problem = "N=4096,D=4096,T=bf16";
     cubind_connect(NULL, 0, &client);
     cubind_get(client, &query, &variant);
     cubind_load(variant, &kernel);               // into the current CUDA context
     cubind_bind(kernel, NULL, 0, &binding);
     cubind_set_buffer(binding, "x", x);          // and w, y
     cubind_set_float(binding, "eps", 1e-6);
     cubind_launch(binding, stream);              // as often as you like

   The interface is stable within a soname: names and numbers do not change, and structs grow only at their end. The caller sets `size`
   to the size of the struct that it knows.

   A function that can fail returns a cubind_code, and on failure leaves its outputs unchanged. A function that returns a value of a
   handle fails if the handle is NULL, and returns NULL or 0. Handles are opaque; the `_free` function of a handle's type frees it and
   accepts NULL. A handle stays valid when those that it was made from are freed. Texts and arrays belong
   to the handle that returned them. Many threads may use a client, a variant or a kernel at the same time, one thread a binding. */
#ifndef CUBIND_H
#define CUBIND_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CUBIND_API __attribute__((visibility("default")))
#else
#define CUBIND_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's structs: CUmodule, CUfunction and CUstream of cuda.h point to them, and so does cudaStream_t. */
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;

typedef struct cubind_client cubind_client;   /* a client of one daemon */
typedef struct cubind_variant cubind_variant; /* an answer: a cubin and its launches for a problem */
typedef struct cubind_kernel cubind_kernel;   /* a variant in a CUDA context */
typedef struct cubind_binding cubind_binding; /* a kernel with the arguments of its launches */

/* ---- Errors ---- */

/* The numbers of gRPC's codes. */
typedef enum cubind_code {
  CUBIND_OK = 0,
  CUBIND_CANCELLED = 1,
  CUBIND_INVALID_ARGUMENT = 3,     /* the question or an argument is wrong */
  CUBIND_DEADLINE_EXCEEDED = 4,    /* the time passed */
  CUBIND_NOT_FOUND = 5,            /* unknown kernel or device, no acceptable record with CUBIND_FAIL, or dims of another bucket */
  CUBIND_ALREADY_EXISTS = 6,
  CUBIND_PERMISSION_DENIED = 7,
  CUBIND_RESOURCE_EXHAUSTED = 8,
  CUBIND_FAILED_PRECONDITION = 9,  /* no driver, no GPU, or no cubin that the driver loads */
  CUBIND_ABORTED = 10,
  CUBIND_UNIMPLEMENTED = 12,
  CUBIND_INTERNAL = 13,
  CUBIND_UNAVAILABLE = 14,         /* no daemon answers, or no artifact is ready in time */
  CUBIND_DATA_LOSS = 15            /* the answer is not for the question, or its bytes are damaged */
} cubind_code;

/* "INVALID_ARGUMENT"; "UNKNOWN" for any other number. */
CUBIND_API const char* cubind_code_name(cubind_code code);

/* The message of the last failed call on this thread: what was wrong, where, and what would be right. It is valid until the next call
   fails; "" if none has failed. */
CUBIND_API const char* cubind_last_error(void);

/* The library's version: "0.1.0". */
CUBIND_API const char* cubind_version(void);

/* ---- Asking ---- */

/* Makes a client; sends nothing yet. address: "unix:///path/to/socket" or "host:port"; NULL: CUBIND_ADDRESS, else the user's socket.
   timeout_ms: the time limit of a call; 0: 30 s. */
CUBIND_API cubind_code cubind_connect(const char* address, uint32_t timeout_ms, cubind_client** client);
CUBIND_API void cubind_client_free(cubind_client* client);

/* The number of calls that the client has made. */
CUBIND_API uint64_t cubind_client_calls(const cubind_client* client);

/* cubind_query.on_miss: what to do if no measurement answers. */
enum {
  CUBIND_SERVE = 0, /* return the best available answer */
  CUBIND_WAIT = 1,  /* wait for the tuning job, within the timeout */
  CUBIND_FAIL = 2   /* return CUBIND_NOT_FOUND */
};

/* cubind_query.flags */
enum {
  CUBIND_NO_TUNING = 1,    /* a miss starts no tuning job */
  CUBIND_WARM_L2 = 2,      /* measured with a warm L2 cache */
  CUBIND_GRAPH = 4,        /* measured as a CUDA graph */
  CUBIND_REPRODUCIBLE = 8, /* only variants whose bits do not change from run to run */
  CUBIND_SEALED = 16       /* a miss starts neither a tuning job nor a compile */
};

/* NULL or 0 in a field means its default. */
typedef struct cubind_query {
  size_t size;
  const char* kernel;        /* "rmsnorm_forward" */
  const char* problem;       /* "N=4096,D=4096,T=bf16" */
  const char* device;        /* "nvidia-h200"; NULL: the GPU of the current CUDA context, else the first visible one */
  const char* accept;        /* accepted departures, "bucket+stale" or "exact"; NULL: all */
  const char* invariant_dim; /* "N": only variants whose rows have the same bits for every size of N */
  const char* name_space;
  const char* job;           /* the training job: all its ranks get the answers of one generation */
  int32_t on_miss;
  uint32_t flags;
} cubind_query;

#define CUBIND_QUERY_INIT \
  { sizeof(cubind_query), NULL, NULL, NULL, NULL, NULL, NULL, NULL, CUBIND_SERVE, 0 }

/* Returns the best variant. The rule of an earlier answer covers the other problems of its bucket without a call. */
CUBIND_API cubind_code cubind_get(cubind_client* client, const cubind_query* query, cubind_variant** variant);
CUBIND_API void cubind_variant_free(cubind_variant* variant);

/* ---- Variants ---- */

CUBIND_API const char* cubind_variant_problem(const cubind_variant* variant);       /* "N=4096,D=4096,T=bf16", with the dims in
                                                                                        the order of cubind_bind() */
CUBIND_API const char* cubind_variant_configuration(const cubind_variant* variant); /* "THREADS=256,VECTOR=8" */
CUBIND_API const char* cubind_variant_match(const cubind_variant* variant);         /* "exact", "bucket", "default", ... */
CUBIND_API const char* cubind_variant_evidence(const cubind_variant* variant);      /* "measured", "none", ... */
CUBIND_API double cubind_variant_time_us(const cubind_variant* variant);            /* microseconds; 0: nothing was measured */

/* The cubin; `size` receives its number of bytes. */
CUBIND_API const void* cubind_variant_cubin(const cubind_variant* variant, size_t* size);

/* One launch of a variant's plan. */
typedef struct cubind_launch_info {
  size_t size;
  const char* symbol;    /* the function's name in the cubin */
  uint32_t grid[3];      /* blocks */
  uint32_t block[3];     /* threads */
  uint64_t shared_bytes; /* dynamic shared memory */
  size_t parameters;
  uint32_t cluster[3];                       /* blocks; zeros: none, or what the kernel is declared with */
  int32_t cooperative;                       /* 1: a cooperative launch */
  int32_t programmatic_stream_serialization; /* 1: may begin before the launch before it has ended */
  int32_t priority;                          /* 0: the stream's */
} cubind_launch_info;

/* cubind_parameter.source */
enum {
  CUBIND_BUFFER = 0, /* the caller's device memory */
  CUBIND_VALUE = 1,  /* `value`, computed for this problem */
  CUBIND_SCALAR = 2, /* a number that the caller passes */
  CUBIND_SYMBOL = 3, /* not a parameter: a variable of the module, to which an input is copied before the launch */
  CUBIND_TENSOR_MAP = 4 /* a CUtensorMap of the caller's device memory, which cubind_launch() encodes */
};

/* cubind_parameter.role */
enum {
  CUBIND_ROLE_NONE = 0, /* not a buffer */
  CUBIND_ROLE_IN = 1,
  CUBIND_ROLE_OUT = 2,
  CUBIND_ROLE_INOUT = 3,
  CUBIND_ROLE_ZERO = 4,   /* the caller clears it before each launch */
  CUBIND_ROLE_SCRATCH = 5 /* the caller passes memory with any content */
};

typedef struct cubind_parameter {
  size_t size;
  const char* name;
  const char* type; /* "bf16": the type of the scalar or the buffer's elements */
  int32_t source;
  int32_t role;
  uint64_t extent_bytes; /* buffers: the size */
  uint32_t align_bytes;  /* buffers: the address must be a multiple of this */
  int64_t value;         /* CUBIND_VALUE: the value, converted to `type` at the launch */
  const char* symbol;    /* CUBIND_SYMBOL: the variable's name in the cubin; else NULL */
} cubind_parameter;

/* The number of launches; a launch without blocks does not count. */
CUBIND_API size_t cubind_variant_launches(const cubind_variant* variant);
CUBIND_API cubind_code cubind_variant_launch(const cubind_variant* variant, size_t launch, cubind_launch_info* info);
CUBIND_API cubind_code cubind_variant_parameter(const cubind_variant* variant, size_t launch, size_t parameter,
                                                cubind_parameter* info);

/* ---- Launching ---- */

/* Loads the cubin into the current context, or into the first visible device's primary context if none is current. Freeing the
   kernel and its bindings unloads the module; no launch may be in flight then. */
CUBIND_API cubind_code cubind_load(const cubind_variant* variant, cubind_kernel** kernel);
CUBIND_API void cubind_kernel_free(cubind_kernel* kernel);

/* The driver's handles, for callers that launch the kernel themselves. `launch` counts as in cubind_variant_launch(). The handles are
   valid as long as the kernel. */
CUBIND_API cubind_code cubind_kernel_module(const cubind_kernel* kernel, struct CUmod_st** module);
CUBIND_API cubind_code cubind_kernel_function(const cubind_kernel* kernel, size_t launch,
                                              struct CUfunc_st** function);

/* Computes everything for a launch except the arguments. dims: the dims of another problem of the bucket, in the order of
   cubind_variant_problem(); NULL: the variant's. Returns CUBIND_NOT_FOUND if the answer does not cover these dims: then call
   cubind_get() for them. */
CUBIND_API cubind_code cubind_bind(const cubind_kernel* kernel, const int64_t* dims, size_t count,
                                   cubind_binding** binding);
CUBIND_API void cubind_binding_free(cubind_binding* binding);

/* The arguments that the caller sets: scalars, and buffers with their size in bytes for the binding's dims. */
CUBIND_API size_t cubind_binding_arguments(const cubind_binding* binding);
CUBIND_API cubind_code cubind_binding_argument(const cubind_binding* binding, size_t argument,
                                               cubind_parameter* info);

/* Set an argument by its name in the kernel spec. A scalar is converted to its parameter's type at the launch. */
CUBIND_API cubind_code cubind_set_buffer(cubind_binding* binding, const char* name, const void* device_memory);
CUBIND_API cubind_code cubind_set_float(cubind_binding* binding, const char* name, double value);
CUBIND_API cubind_code cubind_set_integer(cubind_binding* binding, const char* name, int64_t value);

/* Enqueues the launches on the stream (NULL: the default stream), and before each launch the copies of inputs to variables of the
   module. A module has each variable once, so the caller must order launches with different contents on several streams. If an argument
   is missing, an integer does not fit, or an address is NULL or misaligned, launches nothing and returns CUBIND_INVALID_ARGUMENT.
   Allocates nothing and takes no lock, unless the kernel has tensor maps. Then a CUDA graph that captures the launch holds their
   buffers: later launches of the binding with others return CUBIND_FAILED_PRECONDITION. Bind again for other buffers. */
CUBIND_API cubind_code cubind_launch(const cubind_binding* binding, struct CUstream_st* stream);
/* The buffer whose tensor map a captured launch of the binding holds; NULL: none. */
CUBIND_API cubind_code cubind_binding_captured(const cubind_binding* binding, const char* name, const void** device_memory);

#ifdef __cplusplus
}
#endif

#endif
