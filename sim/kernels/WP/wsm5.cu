// The physics of clouds in a weather forecast, after WRF's WSM5 (five classes of water beside dry air: vapour, cloud,
// rain, ice, snow; Hong, Dudhia and Chen 2004). A thread per column of air: first rain and snow fall from level to
// level, then every level's water changes from class to class. Mixing ratios in kg/kg, all else in SI units.
#define MAX_LEVELS 40
#define CP 1004.5f        // heat capacity of air
#define RV 461.6f         // gas constant of vapour
#define EPSILON 0.6218f   // of air to that of vapour
#define LV 2.5e6f         // latent heats: of condensation,
#define LF 3.5e5f         // of freezing,
#define LS 2.85e6f        // and of both
#define T0 273.15f
#define TRIPLE 273.16f
#define DENSITY0 1.28f
#define LEAST 1e-9f       // rain and snow below it don't fall or collect anything
#define N0_RAIN 8e6f      // drops by diameter, at zero
#define N0_SNOW 2e6f
#define RAIN_POWER 0.8f   // of the diameter, in a drop's speed
#define SNOW_POWER 0.41f

enum { SNOW, RAIN, ICE, CLOUD, VAPOUR, TEMPERATURE };
enum { DENSITY, PRESSURE, THICKNESS };

// What follows from the size distributions' moments.
__constant__ float rain_slope, snow_slope;      // pi times density of a drop times N0, to the fourth root
__constant__ float rain_speed, snow_speed;      // mean, weighted by mass, where the slope is 1
__constant__ float rain_collects, snow_collects, snow_collects_ice;
__constant__ float rain_grows[2], snow_grows[2]; // at rest, and ventilated

__device__ static float power(float x, float exponent)
{
    return expf(exponent * logf(x));
}

// Mixing ratio at saturation, over water or over ice.
__device__ static float saturated(float temperature, float pressure, bool ice)
{
    float ratio = TRIPLE / temperature;
    float a = ice ? 0.5633f : 5.0780f;
    float b = ice ? 23.1661f : 24.9051f;
    float vapour_pressure = 610.78f * expf(a * logf(ratio) + b * (1.0f - ratio));
    return EPSILON * vapour_pressure / (pressure - vapour_pressure);
}

// The mean diameter, times a constant.
__device__ static float slope(float content, float scale)
{
    return sqrtf(sqrtf(fmaxf(content, LEAST))) / scale;
}

// More and smaller snow flakes where it is cold.
__device__ static float flakes(float temperature)
{
    return fminf(fmaxf(expf(0.12f * (T0 - temperature)), 1.0f), 1e5f);
}

// What keeps a particle from growing: heat that it must give off, and vapour that must come near.
__device__ static float resistance(float latent, float pressure, float temperature, float density, float ratio)
{
    float conducts = 2.115344e-3f * temperature * sqrtf(temperature) / (temperature + 120.0f);
    float diffuses = 8.794e-5f * power(temperature, 1.81f) / pressure;
    return density * latent * latent / (conducts * RV * temperature * temperature) + 1.0f / (ratio * diffuses);
}

// How much more comes near a particle of such a size that falls.
__device__ static float ventilated(float temperature, float pressure, float density, float size)
{
    float viscosity = 1.496e-6f * temperature * sqrtf(temperature) / (temperature + 120.0f) / density;
    float diffuses = 8.794e-5f * power(temperature, 1.81f) / pressure;
    return cbrtf(viscosity / diffuses) * sqrtf(size * sqrtf(DENSITY0 / density) / viscosity);
}

// Rain and snow fall, and snow melts; in as many steps as are needed for none to cross a level in one.
__device__ static void fall(int levels, int pitch, float dt, float *rain, float *snow, float *temperature,
                            const float *density, const float *thickness, float *fallen)
{
    float rain_rate[MAX_LEVELS];
    float snow_rate[MAX_LEVELS];
    float fastest = 0.0f;

#pragma unroll 1
    for (int k = 0; k < levels; k++) {
        int at = pitch * k;
        float thin = sqrtf(DENSITY0 / density[at]) / thickness[at];
        float r = slope(rain[k] * density[at], rain_slope);
        float s = slope(snow[k] * density[at], snow_slope * sqrtf(sqrtf(flakes(temperature[at]))));
        rain_rate[k] = rain[k] > LEAST ? rain_speed * power(r, RAIN_POWER) * thin : 0.0f;
        snow_rate[k] = snow[k] > LEAST ? snow_speed * power(s, SNOW_POWER) * thin : 0.0f;
        fastest = fmaxf(fastest, fmaxf(rain_rate[k], snow_rate[k]));
    }
    int steps = (int)(fastest * dt) + 1;
    float step = dt / (float)steps;

#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        float rain_above = 0.0f;  // kg per square metre, out of the level above
        float snow_above = 0.0f;
#pragma unroll 1
        for (int k = levels - 1; k >= 0; k--) {
            int at = pitch * k;
            float mass = density[at] * thickness[at];
            float rain_out = rain_rate[k] * step * rain[k] * mass;
            float snow_out = snow_rate[k] * step * snow[k] * mass;
            float r = rain[k] + (rain_above - rain_out) / mass;
            float s = snow[k] + (snow_above - snow_out) / mass;
            float warm = temperature[at] - T0;
            if (warm > 0.0f) {
                float melts = fminf(2e-3f * warm * step * sqrtf(s), s);
                s -= melts;
                r += melts;
                temperature[at] -= LF / CP * melts;
            }
            rain[k] = r;
            snow[k] = s;
            rain_above = rain_out;
            snow_above = snow_out;
        }
        fallen[0] += snow_above;
        fallen[pitch] += rain_above;
    }
}

// `state` and `air` hold their quantities one after the other, `fallen` snow and rain in kg per square metre.
extern "C" __global__ void wsm5(int width, int height, int levels, float dt, float *state, const float *air,
                                float *fallen)
{
    int x = 8 * blockIdx.x + threadIdx.x;
    int y = 8 * blockIdx.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int column = width * y + x;
    int pitch = width * height;
    float falling_rain[MAX_LEVELS];
    float falling_snow[MAX_LEVELS];
    int size = pitch * levels;

#pragma unroll 1
    for (int k = 0; k < levels; k++) {
        falling_rain[k] = state[RAIN * size + pitch * k + column];
        falling_snow[k] = state[SNOW * size + pitch * k + column];
    }
    fall(levels, pitch, dt, falling_rain, falling_snow, state + TEMPERATURE * size + column,
         air + DENSITY * size + column, air + THICKNESS * size + column, fallen + column);

#pragma unroll 1
    for (int k = 0; k < levels; k++) {
        int at = pitch * k + column;
        float t = state[TEMPERATURE * size + at];
        float p = air[PRESSURE * size + at];
        float d = air[DENSITY * size + at];
        float q = state[VAPOUR * size + at];
        float qc = state[CLOUD * size + at];
        float qi = state[ICE * size + at];
        float qr = falling_rain[k];
        float qs = falling_snow[k];
        float cold = T0 - t;
        float over_water = saturated(t, p, false);
        float r = slope(qr * d, rain_slope);
        float r_power = power(r, RAIN_POWER);
        float thin = sqrtf(DENSITY0 / d);
        // Warm: cloud becomes rain by itself and when rain sweeps it up, and vapour comes from drops or goes to them.
        float forms = qc > 5e-4f ? fminf(1.72f * power(qc, 7.0f / 3.0f), qc / dt) : 0.0f;
        float swept = qr > LEAST ? fminf(rain_collects * r * r * r * r_power * qc * thin, qc / dt) : 0.0f;
        float excess = q / over_water - 1.0f;
        float onto_rain = 0.0f;
        if (qr > LEAST) {
            float grows = r * r * (rain_grows[0] + rain_grows[1] * ventilated(t, p, d, r * r_power));
            onto_rain = excess * grows / resistance(LV, p, t, d, over_water);
            onto_rain = excess < 0.0f ? fmaxf(onto_rain, -qr / dt) : fminf(onto_rain, 0.5f * (q - over_water) / dt);
        }

        // Cold: snow sweeps up cloud (also where it is warm, as rain) and ice; ice starts, grows, and becomes snow.
        float more = flakes(t);
        float s = slope(qs * d, snow_slope * sqrtf(sqrtf(more)));
        float s_power = power(s, SNOW_POWER);
        float rimes = qs > LEAST ? fminf(snow_collects * more * s * s * s * s_power * qc * thin, qc / dt) : 0.0f;
        float starts = 0.0f, onto_ice = 0.0f, onto_snow = 0.0f, gathers = 0.0f, clumps = 0.0f;
        if (cold > 0.0f) {
            float over_ice = saturated(t, p, true);
            float to_spare = 0.5f * (q - over_ice) / dt;
            float excess_ice = q / over_ice - 1.0f;
            float resists = resistance(LS, p, t, d, over_ice);
            if (excess_ice > 0.0f) {
                float nuclei = 1e3f * expf(0.1f * fminf(cold, 60.0f));
                starts = fminf(fmaxf(4.92e-11f * power(nuclei, 1.33f) / d - qi, 0.0f) / dt, to_spare);
            }
            if (qi > LEAST) {
                float crystals = fminf(fmaxf(5.38e7f * power(d * qi, 0.75f), 1e3f), 1e6f);
                float diameter = fminf(11.9f * sqrtf(d * qi / crystals), 5e-4f);
                onto_ice = 4.0f * diameter * crystals * excess_ice / resists;
                onto_ice = excess_ice < 0.0f ? fmaxf(onto_ice, -qi / dt) : fminf(onto_ice, to_spare);
                clumps = fmaxf(qi - 8.125e-5f / d, 0.0f) / dt;
                if (qs > LEAST)
                    gathers = fminf(expf(-0.07f * cold) * snow_collects_ice * more * s * s * s * s_power * qi * thin,
                                    qi / dt);
            }
            if (qs > LEAST) {
                float grows = more * s * s * (snow_grows[0] + snow_grows[1] * ventilated(t, p, d, s * s_power));
                onto_snow = excess_ice * grows / resists;
                onto_snow = excess_ice < 0.0f ? fmaxf(onto_snow, -qs / dt) : fminf(onto_snow, to_spare);
            }
        }

        // No more than there is.
        float used = (forms + swept + rimes) * dt;
        if (used > qc) {
            float share = qc / used;
            forms *= share;
            swept *= share;
            rimes *= share;
        }
        float gained = (starts + fmaxf(onto_ice, 0.0f)) * dt + qi;
        used = (clumps + gathers - fminf(onto_ice, 0.0f)) * dt;
        if (used > gained) {
            float share = gained / used;
            clumps *= share;
            gathers *= share;
            if (onto_ice < 0.0f)
                onto_ice *= share;
        }

        float deposited = starts + onto_ice + onto_snow;
        float frozen = cold > 0.0f ? rimes : 0.0f;
        q -= (onto_rain + deposited) * dt;
        qc -= (forms + swept + rimes) * dt;
        qi += (starts + onto_ice - clumps - gathers) * dt;
        qr += (forms + swept + onto_rain + rimes - frozen) * dt;
        qs += (onto_snow + clumps + gathers + frozen) * dt;
        t += (LV * onto_rain + LS * deposited + LF * frozen) / CP * dt;

        // Ice melts, and what is far below freezing freezes; then cloud forms or dissolves until vapour is saturated.
        float freezes = t > T0 ? -qi : t < T0 - 40.0f ? qc : 0.0f;
        qi += freezes;
        qc -= freezes;
        t += LF / CP * freezes;
        float ratio = saturated(t, p, false);
        float condenses = fmaxf((q - ratio) / (1.0f + LV * LV / (CP * RV) * ratio / (t * t)), -qc);
        state[TEMPERATURE * size + at] = t + LV / CP * condenses;
        state[VAPOUR * size + at] = q - condenses;
        state[CLOUD * size + at] = fmaxf(qc + condenses, 0.0f);
        state[ICE * size + at] = fmaxf(qi, 0.0f);
        state[RAIN * size + at] = fmaxf(qr, 0.0f);
        state[SNOW * size + at] = fmaxf(qs, 0.0f);
    }
}
