/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEADROOM_SIM_H
#define HEADROOM_SIM_H
#include <stddef.h>
#include <stdint.h>

/*
 * The C interface of virtual GPUs (libheadroom_sim.so), for programs started by `headroom sim -- CMD`.
 *
 * Devices are named by CUDA ordinal: the environment's CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are read once, by the
 * first call of the process, and later changes have no effect. A context is made by the first call that needs one. All
 * calls are thread-safe. They return 0 or an error; the numbers are those of CUDA's runtime where it has one.
 * After fork() the child gets HEADROOM_SIM_NOT_INITIALIZED from every call, as with CUDA; exec makes it whole again.
 */
#ifdef __cplusplus
extern "C" {
#endif

enum {
  HEADROOM_SIM_OK = 0,
  HEADROOM_SIM_INVALID_VALUE = 1,
  HEADROOM_SIM_OUT_OF_MEMORY = 2,
  HEADROOM_SIM_NOT_INITIALIZED = 3,
  HEADROOM_SIM_NO_DEVICE = 100,
  HEADROOM_SIM_INVALID_DEVICE = 101,
  HEADROOM_SIM_NOT_READY = 600,
  HEADROOM_SIM_CONTEXT_DESTROYED = 709,
  HEADROOM_SIM_DEVICE_LOST = 999, /* CUDA: unknown error; sticky until the context is destroyed */
  HEADROOM_SIM_NO_BOX = -1,       /* not started by `headroom sim`, or the box is gone */
  HEADROOM_SIM_INTERRUPTED = -2,  /* a signal handler ran while waiting: call again */
  HEADROOM_SIM_NO_SLOT = -3       /* 64 processes already have a context on this device */
};

enum { HEADROOM_SIM_COMPUTE = 0, HEADROOM_SIM_GRAPHICS = 1 };
enum { HEADROOM_SIM_TO_DEVICE = 0, HEADROOM_SIM_FROM_DEVICE = 1 };
enum { HEADROOM_SIM_PAGEABLE = 0, HEADROOM_SIM_PINNED = 1 };

/* Optional: every call does it. */
int headroom_sim_init(void);
int headroom_sim_device_count(int* count);
/* Strings are cut to `size`, the final zero included. */
int headroom_sim_device_uuid(int device, char* text, size_t size);
int headroom_sim_device_name(int device, char* text, size_t size);
/* The position in PCI order, which is NVML's index. */
int headroom_sim_device_pci_index(int device, int* index);

/* Creating a context that exists is no error. A graphics context holds memory and no compute. */
int headroom_sim_context_create(int device, int kind);
int headroom_sim_context_destroy(int device);

int headroom_sim_malloc(int device, uint64_t bytes, uint64_t* address);
int headroom_sim_free(int device, uint64_t address);
int headroom_sim_mem_get_info(int device, uint64_t* free_bytes, uint64_t* total_bytes);

/* Queues a kernel that takes `duration_ns` alone on the device and `sm_permille` (1 … 1000) of its SMs; returns at
 * once, unless the queue is full (8 alternations between kinds of work). */
int headroom_sim_launch(int device, int64_t duration_ns, uint32_t sm_permille);
/* Queues a copy. Waits for it, unless `async` and the host memory is pinned. */
int headroom_sim_copy(int device, uint64_t bytes, int direction, int host_memory, int async);
/* Waits for all queued work. Sleeps; never spins. */
int headroom_sim_synchronize(int device);

/* An event is the number of the work queued so far. */
int headroom_sim_event_record(int device, int64_t* event);
int headroom_sim_event_query(int device, int64_t event); /* 0, or HEADROOM_SIM_NOT_READY */
int headroom_sim_event_synchronize(int device, int64_t event);
/* The same for at most `limit_ns`; then HEADROOM_SIM_NOT_READY. For callers that must look up from time to time. */
int headroom_sim_event_wait(int device, int64_t event, int64_t limit_ns);

/* What the device did for this process, by the device's own clock (CLOCK_MONOTONIC). */
typedef struct headroom_sim_stats {
  int64_t now_ns;        /* the instant this is true at */
  int64_t submitted_ns;  /* work queued since the context exists, kernels and copies */
  int64_t attained_ns;   /* … and done */
  int64_t kernel_ns;     /* kernels done */
  int64_t created_ns;    /* when the context was created */
  int64_t done_at_ns;    /* when the queue last ran empty */
  int64_t busy_ns;       /* of the device, everybody's kernels, since the box started */
  uint64_t memory_bytes; /* of this context */
} headroom_sim_stats;
int headroom_sim_get_stats(int device, headroom_sim_stats* stats);

const char* headroom_sim_error_name(int error);
const char* headroom_sim_error_string(int error);

#ifdef __cplusplus
}
#endif
#endif
