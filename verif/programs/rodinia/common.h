/* The type of a number and the sizes that the membrane programs share. */
#ifndef COMMON_H
#define COMMON_H

#ifndef fp
#define fp float
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define N_THREADS 128
#define N_STATES 8
#define N_COEFFICIENTS 4

typedef struct run_settings
{
	int cells;
	int steps;
	fp dt;
} run_settings;

#ifdef __cplusplus
}
#endif

#endif
