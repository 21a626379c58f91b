/* Element type, array declarations, timers and comparison for the loop nests of this folder. */
#ifndef POLY_H
#define POLY_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#ifndef DATA_TYPE
#define DATA_TYPE float
#define DATA_PRINTF_MODIFIER "%0.2lf "
#endif

#if !defined(MINI_DATASET) && !defined(SMALL_DATASET) && !defined(STANDARD_DATASET)
#define SMALL_DATASET
#endif

#ifdef MINI_DATASET
#define POLY_SIZE(mini, small, standard) mini
#elif defined(SMALL_DATASET)
#define POLY_SIZE(mini, small, standard) small
#else
#define POLY_SIZE(mini, small, standard) standard
#endif

#define PERCENT_DIFF_ERROR_THRESHOLD 0.5

#define POLY_2D(T, name, n, m) T (*name)[m] = (T (*)[m])malloc(sizeof(T) * (n) * (m))
#define POLY_1D(T, name, n) T *name = (T *)malloc(sizeof(T) * (n))
#define POLY_DEAD_CODE_GUARD(argc, argv) if ((argc) > 42 && !(argv)[0][0])

static inline double rtclock(void)
{
  struct timeval t;
  if (gettimeofday(&t, NULL) != 0) printf("gettimeofday failed\n");
  return t.tv_sec + t.tv_usec * 1.0e-6;
}

static inline double percent_diff(double a, double b)
{
  if (fabs(a) < 0.01 && fabs(b) < 0.01) return 0.0;
  return 100.0 * fabs(a - b) / (fabs(a) + 1e-8);
}

static inline int report(const char *what, int fail)
{
  printf("%s: %d values beyond %4.2f percent\n", what, fail, PERCENT_DIFF_ERROR_THRESHOLD);
  return fail != 0;
}

#endif
