// A heart muscle cell over time, in the manner of Rodinia's myocyte: a thread per cell integrates all its equations with
// the seventh-order formula of Fehlberg's pair; its states and slopes lie together in device memory. The equations are
// those of ten Tusscher and Panfilov (2006) for the epicardium: volts in mV, time in ms, concentrations in mM.
#define STATES 19
#define STAGES 13

enum State { V, CA, CA_SR, CA_SS, NA, K, M, H, J, XR1, XR2, XS, R, S, D, F, F2, F_CASS, R_BAR };

// What differs between cells.
struct Cell {
    float stimulus;    // pA/pF, ...
    float duration;    // ... for so many ms
    float calcium;     // conductance of the L-type channel, relative
    float potassium;   // of the slow delayed rectifier, relative
};

__constant__ float weight[STAGES][STAGES];  // of the slopes before, by stage
__constant__ float node[STAGES];            // where in the step a stage is
__constant__ float order_seven[STAGES];     // weights of the result

#define RT_F 26.713761f           // mV at 310 K
#define FARADAY 96485.3415f
#define CAPACITANCE 0.185f
#define CYTOPLASM 0.016404f
#define RETICULUM 0.001094f
#define SUBSPACE 0.00005468f
#define CA_OUT 2.0f
#define NA_OUT 140.0f
#define K_OUT 5.4f

__device__ static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

__device__ static float square(float x)
{
    return x * x;
}

__device__ static float buffered(float change, float buffer, float half, float calcium)
{
    return change / (1 + buffer * half / square(calcium + half));
}

// Where it goes and how fast, of a gate.
__device__ static float approach(float gate, float end, float time)
{
    return (end - gate) / time;
}

__device__ static void gate_slopes(const float *y, float *slope)
{
    float v = y[V];
    float time;

    time = sigmoid((v + 60) / 5) * (0.1f * sigmoid((-v - 35) / 5) + 0.1f * sigmoid((50 - v) / 200));
    slope[M] = approach(y[M], square(sigmoid((v + 56.86f) / 9.03f)), time);

    float rise_h, fall_h, rise_j, fall_j;
    if (v >= -40) {
        rise_h = 0;
        fall_h = 0.77f / 0.13f * sigmoid((v + 10.66f) / 11.1f);
        rise_j = 0;
        fall_j = 0.6f * expf(0.057f * v) * sigmoid((v + 32) / 10);
    } else {
        rise_h = 0.057f * expf((-v - 80) / 6.8f);
        fall_h = 2.7f * expf(0.079f * v) + 310000 * expf(0.3485f * v);
        rise_j = (-25428 * expf(0.2444f * v) - 6.948e-6f * expf(-0.04391f * v)) * (v + 37.78f) *
                 sigmoid(-0.311f * (v + 79.23f));
        fall_j = 0.02424f * expf(-0.01052f * v) * sigmoid(0.1378f * (v + 40.14f));
    }
    float end = square(sigmoid((-v - 71.55f) / 7.43f));
    slope[H] = approach(y[H], end, 1 / (rise_h + fall_h));
    slope[J] = approach(y[J], end, 1 / (rise_j + fall_j));

    slope[XR1] = approach(y[XR1], sigmoid((v + 26) / 7), 450 * sigmoid((v + 45) / 10) * 6 * sigmoid((-v - 30) / 11.5f));
    slope[XR2] = approach(y[XR2], sigmoid((-v - 88) / 24), 3 * sigmoid((v + 60) / 20) * 1.12f * sigmoid((60 - v) / 20));
    time = 1400 / sqrtf(1 + expf((5 - v) / 6)) * sigmoid((35 - v) / 15) + 80;
    slope[XS] = approach(y[XS], sigmoid((v + 5) / 14), time);
    slope[R] = approach(y[R], sigmoid((v - 20) / 6), 9.5f * expf(-square(v + 40) / 1800) + 0.8f);
    time = 85 * expf(-square(v + 45) / 320) + 5 * sigmoid((20 - v) / 5) + 3;
    slope[S] = approach(y[S], sigmoid((-v - 20) / 5), time);

    time = (1.4f * sigmoid((v + 35) / 13) + 0.25f) * 1.4f * sigmoid((-v - 5) / 5) + sigmoid((v - 50) / 20);
    slope[D] = approach(y[D], sigmoid((v + 8) / 7.5f), time);
    time = 1102.5f * expf(-square(v + 27) / 225) + 200 * sigmoid((v - 13) / 10) + 180 * sigmoid((-v - 30) / 10) + 20;
    slope[F] = approach(y[F], sigmoid((-v - 20) / 7), time);
    time = 600 * expf(-square(v + 25) / 170) + 31 * sigmoid((v - 25) / 10) + 16 * sigmoid((-v - 30) / 10);
    slope[F2] = approach(y[F2], 0.67f * sigmoid((-v - 35) / 7) + 0.33f, time);
    float bound = 1 / (1 + square(y[CA_SS] / 0.05f));
    slope[F_CASS] = approach(y[F_CASS], 0.6f * bound + 0.4f, 80 * bound + 2);
}

__device__ static void slopes(const float *y, float *slope, float time, const Cell &cell)
{
    float v = y[V], ca = y[CA], ca_sr = y[CA_SR], ca_ss = y[CA_SS], na = y[NA], k = y[K];
    float e_k = RT_F * logf(K_OUT / k), e_na = RT_F * logf(NA_OUT / na), e_ca = 0.5f * RT_F * logf(CA_OUT / ca);
    float e_ks = RT_F * logf((K_OUT + 0.03f * NA_OUT) / (k + 0.03f * na));

    gate_slopes(y, slope);

    float i_na = 14.838f * y[M] * y[M] * y[M] * y[H] * y[J] * (v - e_na);
    float forward = expf(2 * (v - 15) / RT_F);
    float i_cal = cell.calcium * 0.0000398f * y[D] * y[F] * y[F2] * y[F_CASS] * 4 * (v - 15) * (FARADAY / RT_F) *
                  (0.25f * forward * ca_ss - CA_OUT) / (forward - 1);
    float i_to = 0.294f * y[R] * y[S] * (v - e_k);
    float i_kr = 0.153f * y[XR1] * y[XR2] * (v - e_k);
    float i_ks = cell.potassium * 0.392f * y[XS] * y[XS] * (v - e_ks);
    float opens = 0.1f * sigmoid(-0.06f * (v - e_k - 200));
    float closes = (3 * expf(0.0002f * (v - e_k + 100)) + expf(0.1f * (v - e_k - 10))) * sigmoid(0.5f * (v - e_k));
    float i_k1 = 5.405f * opens / (opens + closes) * (v - e_k);
    float inward = expf(0.35f * v / RT_F), outward = expf(-0.65f * v / RT_F);
    float i_naca = 1000 / (87.5f * 87.5f * 87.5f + NA_OUT * NA_OUT * NA_OUT) / (1.38f + CA_OUT) / (1 + 0.1f * outward) *
                   (inward * na * na * na * CA_OUT - outward * NA_OUT * NA_OUT * NA_OUT * ca * 2.5f);
    float i_nak = 2.724f * K_OUT / (K_OUT + 1) * na / (na + 40) /
                  (1 + 0.1245f * expf(-0.1f * v / RT_F) + 0.0353f * expf(-v / RT_F));
    float i_pca = 0.1238f * ca / (ca + 0.0005f);
    float i_pk = 0.0146f * sigmoid((v - 25) / 5.98f) * (v - e_k);
    float i_bna = 0.00029f * (v - e_na), i_bca = 0.000592f * (v - e_ca);
    float stimulus = time < cell.duration ? cell.stimulus : 0;

    slope[V] = -(i_na + i_cal + i_to + i_kr + i_ks + i_k1 + i_naca + i_nak + i_pca + i_pk + i_bna + i_bca + stimulus);

    float reticulum = 2.5f - 1.5f / (1 + square(1.5f / ca_sr));
    float opening = 0.15f / reticulum, closing = 0.045f * reticulum;
    float open = opening * ca_ss * ca_ss * y[R_BAR] / (0.06f + opening * ca_ss * ca_ss);
    slope[R_BAR] = 0.005f * (1 - y[R_BAR]) - closing * ca_ss * y[R_BAR];
    float release = 0.102f * open * (ca_sr - ca_ss), leak = 0.00036f * (ca_sr - ca);
    float uptake = 0.006375f / (1 + square(0.00025f / ca)), transfer = 0.0038f * (ca_ss - ca);
    float per_current = CAPACITANCE / (CYTOPLASM * FARADAY);

    slope[CA_SR] = buffered(uptake - release - leak, 10, 0.3f, ca_sr);
    slope[CA_SS] = buffered(-transfer * (CYTOPLASM / SUBSPACE) + release * (RETICULUM / SUBSPACE) -
                            i_cal * CAPACITANCE / (2 * SUBSPACE * FARADAY), 0.4f, 0.00025f, ca_ss);
    slope[CA] = buffered(-(i_bca + i_pca - 2 * i_naca) * per_current / 2 - (uptake - leak) * (RETICULUM / CYTOPLASM) +
                         transfer, 0.2f, 0.001f, ca);
    slope[NA] = -(i_na + i_bna + 3 * i_nak + 3 * i_naca) * per_current;
    slope[K] = -(stimulus + i_k1 + i_to + i_kr + i_ks - 2 * i_nak + i_pk) * per_current;
}

// `states` has the states at each time, `stages` the slopes of a step, and the states that these are taken at.
extern "C" __global__ void solver(float *states, float *stages, const Cell *cells, int count, int steps, float step)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;

    if (thread >= count)
        return;
    Cell cell = cells[thread];
    float *y = states + thread * (steps + 1) * STATES;
    float *slope = stages + thread * (STAGES + 1) * STATES;
    float *inner = slope + STAGES * STATES;

    for (int at = 0; at < steps; at++) {
        for (int stage = 0; stage < STAGES; stage++) {
            for (int i = 0; i < STATES; i++) {
                float sum = 0;
                for (int before = 0; before < stage; before++)
                    sum += weight[stage][before] * slope[before * STATES + i];
                inner[i] = y[i] + step * sum;
            }
            slopes(inner, slope + stage * STATES, (at + node[stage]) * step, cell);
        }
        for (int i = 0; i < STATES; i++) {
            float sum = 0;
            for (int stage = 0; stage < STAGES; stage++)
                sum += order_seven[stage] * slope[stage * STATES + i];
            y[STATES + i] = y[i] + step * sum;
        }
        y += STATES;
    }
}
