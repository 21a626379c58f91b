#pragma once
#include "common.h"

/* Where a gate settles at a voltage. */
__host__ __device__ static inline fp settled(fp v, fp half, fp slope)
{
	return (fp)1 / ((fp)1 + (fp)expf(-(v - half) / slope));
}

__host__ __device__ inline void derivatives(fp t, const fp *y, const fp *c, fp *dy)
{
	fp v = y[0];
	fp stimulus = (t < (fp)0.01) ? (fp)1.5 : (fp)0;
	fp current = c[0] * y[1] * y[2] * (v - (fp)1.0) + c[1] * y[3] * (v + (fp)0.8) + c[2] * (v + (fp)0.2);
	dy[0] = stimulus - current;
	dy[1] = (settled(v, -0.3f, 0.1f) - y[1]) * (fp)20;
	dy[2] = (settled(-v, 0.5f, 0.1f) - y[2]) * (fp)4;
	dy[3] = (settled(v, 0.0f, 0.2f) - y[3]) * (fp)2;
	for (int i = 4; i < N_STATES; i++)
		dy[i] = c[3] * (y[i - 1] - y[i]) / (fp)(i - 2);
}
