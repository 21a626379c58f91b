/* Options, phase timers and file helpers that the programs of this folder share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define BENCH_MAX_INPUTS 4

enum bench_phase { PHASE_NONE, PHASE_IO, PHASE_COPY, PHASE_KERNEL, PHASE_COMPUTE, PHASE_LAST };

struct bench_options {
  const char *output;
  const char *inputs[BENCH_MAX_INPUTS + 1];
  int n_inputs;
};

struct bench_timers {
  enum bench_phase current;
  struct timeval since;
  double spent[PHASE_LAST];
};

static inline void bench_switch(struct bench_timers *t, enum bench_phase next)
{
  struct timeval now;
  gettimeofday(&now, NULL);
  t->spent[t->current] += (now.tv_sec - t->since.tv_sec) + 1e-6 * (now.tv_usec - t->since.tv_usec);
  t->since = now;
  t->current = next;
}

static inline void bench_start(struct bench_timers *t)
{
  memset(t, 0, sizeof *t);
  gettimeofday(&t->since, NULL);
}

static inline void bench_print(struct bench_timers *t)
{
  static const char *const names[PHASE_LAST] = { "other", "io", "copy", "kernel", "compute" };
  bench_switch(t, PHASE_NONE);
  for (int i = 0; i < PHASE_LAST; i++)
    printf("%-8s: %f s\n", names[i], t->spent[i]);
}

/* -i a,b,c -o out; what is left stays in argv */
static inline struct bench_options bench_read_options(int *argc, char **argv)
{
  struct bench_options o;
  int kept = 1;
  memset(&o, 0, sizeof o);
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "-o") && i + 1 < *argc) {
      o.output = argv[++i];
    } else if (!strcmp(argv[i], "-i") && i + 1 < *argc) {
      for (char *s = strtok(argv[++i], ","); s && o.n_inputs < BENCH_MAX_INPUTS; s = strtok(NULL, ","))
        o.inputs[o.n_inputs++] = s;
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return o;
}

#define CUDA_ERRCK                                                                  \
  do {                                                                              \
    cudaError_t status_ = cudaGetLastError();                                       \
    if (status_ != cudaSuccess) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      exit(-1);                                                                     \
    }                                                                               \
  } while (0)

#endif
