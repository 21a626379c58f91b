// A scene of spheres above a plane by ray tracing, after the RAY of GPGPU-Sim's benchmarks: a thread follows a pixel's ray
// through up to five reflections, with a ray to the light from each. The objects stand in constant memory.
//
// Sums of products are written as fmaf, so that the compiler has no choice: results are exact.
#define OBJECTS 4
#define DEPTH 5           // rays of a pixel
#define FAR 10000.0f      // of what is not seen
#define STEP 0.0001f      // of a reflected ray before it begins, so that it does not hit where it comes from
#define AMBIENT 0.05f
#define DIFFUSE 0.3f
#define SPECULAR 0.8f
#define REFLECTED 0.8f

struct Object {
    float3 centre;  // of a plane: a point of it
    float radius;
    float4 colour;
    int plane;  // horizontal
};

struct Camera {
    float3 forward, up, right, eye;
};

struct Ray {
    float3 origin, direction;
};

__constant__ Object objects[OBJECTS];
__constant__ Camera camera;
__constant__ float3 light;

__device__ static float3 operator-(float3 a, float3 b)
{
    return make_float3(a.x - b.x, a.y - b.y, a.z - b.z);
}

// scale a + b
__device__ static float3 add_scaled(float scale, float3 a, float3 b)
{
    return make_float3(fmaf(scale, a.x, b.x), fmaf(scale, a.y, b.y), fmaf(scale, a.z, b.z));
}

__device__ static float4 add_scaled(float scale, float4 a, float4 b)
{
    return make_float4(fmaf(scale, a.x, b.x), fmaf(scale, a.y, b.y), fmaf(scale, a.z, b.z), fmaf(scale, a.w, b.w));
}

__device__ static float dot(float3 a, float3 b)
{
    return fmaf(a.z, b.z, fmaf(a.y, b.y, a.x * b.x));
}

// Makes a vector one long, and returns how long it was.
__device__ static float normalise(float3 &a)
{
    float length = sqrtf(dot(a, a));
    float scale = 1.0f / length;
    a = make_float3(a.x * scale, a.y * scale, a.z * scale);
    return length;
}

// The scene moves by `shift`.
__device__ static float3 centre(const Object &object, float shift)
{
    return make_float3(object.centre.x + shift, object.centre.y, object.centre.z);
}

// Along the ray to the object, or 0.
__device__ static float distance_to(const Ray &ray, const Object &object, float shift)
{
    float3 to = centre(object, shift) - ray.origin;

    if (object.plane) {
        if (fabsf(ray.direction.y) < 0.0001f)
            return 0.0f;
        return fmaxf(to.y / ray.direction.y, 0.0f);
    }
    float nearest = dot(to, ray.direction);  // the ray's point nearest to the centre
    float centre2 = dot(to, to);
    float radius2 = object.radius * object.radius;
    float beside2 = fmaf(-nearest, nearest, centre2);
    bool outside = centre2 > radius2;
    if ((outside && nearest < 0.0f) || beside2 > radius2)
        return 0.0f;
    float half_chord = sqrtf(radius2 - beside2);
    return outside ? nearest - half_chord : nearest + half_chord;
}

__device__ static bool shadowed(const Ray &ray, float reach, float shift)
{
#pragma unroll 1
    for (int i = 0; i < OBJECTS; i++) {
        float at = distance_to(ray, objects[i], shift);
        if (at > 0.0f && at < reach)
            return true;
    }
    return false;
}

// The colour at the ray's end, without what is reflected there; turns the ray into the reflected one.
__device__ static float4 shade(Ray &ray, float length, int seen, float shift)
{
    ray.origin = add_scaled(length, ray.direction, ray.origin);
    float3 normal = make_float3(0.0f, 1.0f, 0.0f);
    if (!objects[seen].plane) {
        normal = ray.origin - centre(objects[seen], shift);
        normalise(normal);
    }
    float away = dot(normal, ray.direction);
    float side = away > 0.0f ? -1.0f : 1.0f;

    float diffuse = AMBIENT;
    float specular = 0.0f;
    Ray shadow = {ray.origin, light - ray.origin};
    float reach = normalise(shadow.direction);
    shadow.origin = add_scaled(STEP, shadow.direction, shadow.origin);
    float lit = side * dot(normal, shadow.direction);
    if (lit > 0.0f && !shadowed(shadow, reach, shift)) {
        diffuse = fmaf(DIFFUSE, fminf(lit, 1.0f), AMBIENT);
        float3 half = shadow.direction - ray.direction;
        normalise(half);
        float gloss = fminf(fmaxf(side * dot(normal, half), 0.0f), 1.0f);
        float gloss2 = gloss * gloss;
        float gloss8 = gloss2 * gloss2 * gloss2 * gloss2;
        float gloss16 = gloss8 * gloss8;
        specular = SPECULAR * (gloss16 * gloss16 * gloss16 * gloss2);  // to the 50th
    }

    ray.direction = add_scaled(-2.0f * away, normal, ray.direction);
    normalise(ray.direction);
    ray.origin = add_scaled(STEP, ray.direction, ray.origin);
    return add_scaled(diffuse, objects[seen].colour, make_float4(specular, specular, specular, 0.0f));
}

__device__ static unsigned int byte(float value)
{
    return (unsigned int)(__saturatef(value) * 255.0f);
}

extern "C" __global__ void render(unsigned int *image, int width, int height, float shift, float focus)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= width || y >= height)
        return;
    float pixel = 2.0f / (float)min(width, height);
    float right = ((float)x - 0.5f * (float)width) * pixel;
    float up = ((float)y - 0.5f * (float)height) * pixel;
    float3 forward = make_float3(focus * camera.forward.x, focus * camera.forward.y, focus * camera.forward.z);
    Ray ray = {camera.eye, add_scaled(up, camera.up, add_scaled(right, camera.right, forward))};
    normalise(ray.direction);

    float4 colours[DEPTH];
    colours[0] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    int depth = 0;
#pragma unroll 1
    for (; depth < DEPTH; depth++) {
        int seen = -1;
        float least = FAR;
#pragma unroll 1
        for (int i = 0; i < OBJECTS; i++) {
            float at = distance_to(ray, objects[i], shift);
            if (at > 0.0f && at < least) {
                least = at;
                seen = i;
            }
        }
        if (seen < 0)
            break;
        colours[depth] = shade(ray, least, seen, shift);
    }
#pragma unroll 1
    for (int i = depth - 1; i > 0; i--)
        colours[i - 1] = add_scaled(REFLECTED, colours[i], colours[i - 1]);
    float4 colour = colours[0];
    image[width * y + x] = byte(colour.w) << 24 | byte(colour.z) << 16 | byte(colour.y) << 8 | byte(colour.x);
}
