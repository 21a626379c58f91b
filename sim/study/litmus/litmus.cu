// Litmus tests: short programs of two to four threads that communicate through words x and y, which are 0 at first.
//
// A kernel runs one test many times. The threads of a CTA, or of each of its parts, play one role each in an instance of
// their own. They meet before each round, wait for a time that the host has drawn, and take their steps.

enum Access { plain, volatile_, atomic, mixed, acquire };  // mixed: data plain, flag volatile
enum Fence { none, cta, gpu };

template <int access>
__device__ __forceinline__ unsigned load(unsigned* at) {
  unsigned value;
  if (access == plain) asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  if (access == volatile_) asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  if (access == atomic) asm volatile("atom.global.or.b32 %0, [%1], 0;" : "=r"(value) : "l"(at) : "memory");
  if (access == acquire) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

template <int access>
__device__ __forceinline__ void store(unsigned* at, unsigned value) {
  unsigned old;
  if (access == plain) asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
  if (access == volatile_) asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
  if (access == atomic) asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(value) : "memory");
  if (access == acquire) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

template <int fence>
__device__ __forceinline__ void order() {
  if (fence == cta) asm volatile("membar.cta;" ::: "memory");
  if (fence == gpu) asm volatile("membar.gl;" ::: "memory");
}

// A thread's step: its role, the words, what it has loaded. Data and flag are accessed as the test's name says.
#define STEP                                                                                              \
  template <int access, int fence>                                                                        \
  static __device__ __forceinline__ void step(unsigned role, unsigned* x, unsigned* y, unsigned& a, unsigned& b)
#define DATA (access == mixed || access == acquire ? plain : access)
#define FLAG (access == mixed ? volatile_ : access)

struct mp {  // message passing
  STEP {
    if (role == 0) {
      store<DATA>(x, 1);
      order<fence>();
      store<FLAG>(y, 1);
    } else {
      a = load<FLAG>(y);
      order<fence>();
      b = load<DATA>(x);
    }
  }
};

struct sb {  // store buffering
  STEP {
    store<FLAG>(role == 0 ? x : y, 1);
    order<fence>();
    a = load<FLAG>(role == 0 ? y : x);
  }
};

struct lb {  // load buffering
  STEP {
    a = load<FLAG>(role == 0 ? x : y);
    order<fence>();
    store<FLAG>(role == 0 ? y : x, 1);
  }
};

struct w2 {  // two words, each written by both
  STEP {
    store<FLAG>(role == 0 ? x : y, 1);
    order<fence>();
    store<FLAG>(role == 0 ? y : x, 2);
  }
};

struct iriw {  // independent reads of independent writes
  STEP {
    if (role < 2) {
      store<FLAG>(role == 0 ? x : y, 1);
    } else {
      a = load<FLAG>(role == 2 ? x : y);
      order<fence>();
      b = load<FLAG>(role == 2 ? y : x);
    }
  }
};

struct corr {  // coherence of one word: two loads
  STEP {
    if (role == 0) {
      store<FLAG>(x, 1);
    } else {
      a = load<FLAG>(x);
      b = load<DATA>(x);
    }
  }
};

struct coww {  // two stores
  STEP {
    if (role == 0) {
      store<FLAG>(x, 1);
      store<FLAG>(x, 2);
    }
  }
};

struct corw {  // a load, then a store
  STEP {
    if (role == 0) {
      a = load<FLAG>(x);
      store<FLAG>(x, 1);
    } else {
      store<FLAG>(x, 2);
    }
  }
};

struct cowr {  // a store, then a load
  STEP {
    if (role == 0) {
      store<FLAG>(x, 1);
      a = load<FLAG>(x);
    } else {
      store<FLAG>(x, 2);
    }
  }
};

struct see {  // a value that somebody waits for
  STEP {
    if (role == 0) {
      store<FLAG>(x, 1);
    } else {
      for (unsigned k = 0; k < 200 && a == 0; k++) a = load<FLAG>(x);
    }
  }
};

struct inc {  // a word that all threads increment
  STEP { a = atomicAdd(x, 1); }
};

// What the host gives a kernel.
struct Setting {
  unsigned* words;
  const unsigned* places;  // of each instance, in words: x, y, and one that noise is made with
  const unsigned* noise;   // by round and role, what the steps wait behind: 1: a fetch; from 2 on: stores
  const unsigned* delays;  // by round, role and warp
  const unsigned* roles;   // of the parts, in the order of their CTAs or of their warps
  const unsigned* warms;   // by round, roles that load x and y before they meet, as a mask
  unsigned* meetings;      // zeros, by round and warp
  unsigned* results;       // two of each thread
  unsigned parts, rounds, players;  // CTAs, or parts of one; those whose role is not below ``players`` do nothing
  unsigned together;  // 1: the parts are those of one CTA
  unsigned access, fence;
};

__device__ void meet(unsigned* meeting, unsigned players) {
  if (threadIdx.x % 32 == 0) {
    atomicAdd(meeting, 1);
    while (atomicAdd(meeting, 0) != players) {
    }
  }
  __syncwarp();
}

template <class Test>
__device__ __forceinline__ void take(unsigned access, unsigned fence, unsigned role, unsigned* x, unsigned* y,
                                     unsigned& a, unsigned& b) {
#define VARIANT(access, fence) \
  case 3 * access + fence: Test::template step<access, fence>(role, x, y, a, b); break;
#define ACCESS(access) VARIANT(access, none) VARIANT(access, cta) VARIANT(access, gpu)
  switch (3 * access + fence) {
    ACCESS(plain) ACCESS(volatile_) ACCESS(atomic) ACCESS(mixed) VARIANT(acquire, none)
  }
}

template <class Test>
__device__ __forceinline__ void play(const Setting& s) {
  const unsigned threads = s.together ? blockDim.x / s.parts : blockDim.x;
  const unsigned part = s.together ? threadIdx.x / threads : blockIdx.x;
  const unsigned thread = threadIdx.x % threads, warp = thread / 32, warps = threads / 32;
  const unsigned role = s.roles[part];
  if (role >= s.players) return;
  for (unsigned round = 0; round < s.rounds; round++) {
    const unsigned instance = round * threads + thread;
    const unsigned* place = s.places + 3 * instance;
    unsigned *x = s.words + place[0], *y = s.words + place[1], *beside = s.words + place[2];
    unsigned a = 0, b = 0;
    if (s.warms[round] >> role & 1) a = load<plain>(x) + load<plain>(y);
    unsigned noise = s.noise[round * s.players + role];
    unsigned delay = s.delays[(round * s.players + role) * warps + warp] + a;
    meet(s.meetings + round * warps + warp, s.players);
    a = 0;
    for (; delay != 0; delay--) asm volatile("");
    if (noise & 1) asm volatile("prefetch.global.L2 [%0];" ::"l"(beside));
    for (noise >>= 1; noise != 0; noise--) store<plain>(beside, noise);
    take<Test>(s.access, s.fence, role, x, y, a, b);
    s.results[2 * (instance * s.players + role)] = a;
    s.results[2 * (instance * s.players + role) + 1] = b;
  }
}

#define KERNEL(test) \
  extern "C" __global__ void test##_test(Setting s) { play<test>(s); }
KERNEL(mp) KERNEL(sb) KERNEL(lb) KERNEL(w2) KERNEL(iriw)
KERNEL(corr) KERNEL(coww) KERNEL(corw) KERNEL(cowr) KERNEL(see) KERNEL(inc)
