// @block@: its Verilated module behind the record of its ports.
//
// step, comb and their shadow_ forms have the signature of the models' slots; an instance is its own handle. What they
// return stops the run loop: 1 at a difference between the model and the RTL, and when the RTL itself has failed.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "unity.h"
#include "verilated_vcd_c.h"

@struct@
static_assert(sizeof(Io) == @size@, "the record type has padding without a name");

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Root = Block___024root;
using Function = int64_t (*)(int64_t, int64_t);
enum Difference { NONE, REGISTERED, COMBINATIONAL };

std::string failure;  // of the RTL: what Verilator's runtime says

inline void put(Root &r, const Io &io) {
@put@
}

inline void take_o(const Root &r, Io &io) {
@take_o@
}

inline void take_c(const Root &r, Io &io) {
@take_c@
}

inline bool same_o(const Io &a, const Io &b) { return @same_o@; }
inline bool same_c(const Io &a, const Io &b) { return @same_c@; }

#ifdef TRACED
// The traced module has the model's outputs as further inputs, which lead nowhere.
inline void put_expected(Root &r, const Io &io) {
@put_expected@
}
#endif

// The ports over time: for every cycle that is unlike the one before, the words of the record that changed.
struct Recorder {
    static constexpr int WORDS = (sizeof(Io) + 7) / 8;
    uint64_t before[WORDS] = {};
    std::vector<uint32_t> repeats, resets;
    std::vector<uint16_t> counts, words;
    std::vector<uint64_t> values;
    bool restarted = false;

    void add(const Io &io, bool last = false) {
        uint64_t now[WORDS] = {};
        std::memcpy(now, &io, sizeof io);
        const bool same = !repeats.empty() && !std::memcmp(now, before, sizeof now);
        if (same && !restarted && !last && repeats.back() != UINT32_MAX) {
            ++repeats.back();
            return;
        }
        if (restarted) resets.push_back(repeats.size());
        restarted = false;
        uint16_t changed = 0;
        for (int k = 0; k < WORDS; ++k)
            if (now[k] != before[k]) {
                words.push_back(k);
                values.push_back(now[k]);
                ++changed;
            }
        std::memcpy(before, now, sizeof now);
        counts.push_back(changed);
        repeats.push_back(1);
    }
};

// What Verilator's eval() comes to for a module with one clock: comb, then the edge. Its triggers and loops take as long
// as a small block. DIRECT says that the generated code has been seen to have this form. Waves need eval().
#if defined(DIRECT) && !defined(TRACED)
inline void evaluate_inputs(Block &, Root &r) {
#ifdef HAS_ICO
    r.__VicoTriggered[0] = 1;
    Block___024root___eval_ico(&r);
#endif
}
inline void evaluate_edge(Block &, Root &r) {
    r.__VnbaTriggered[0] = 1;
    Block___024root___eval_nba(&r);
}
#else
inline void evaluate_inputs(Block &block, Root &) { block.eval(); }
inline void evaluate_edge(Block &block, Root &r) {
    r.clk = 1;
    block.eval();
    r.clk = 0;
    block.eval();
}
#endif

struct Instance {
    VerilatedContext context;  // its own, since a context calls back all blocks that were made with it to trace one
    Block block{&context, "TOP"};
    Root &r = *block.rootp;
    Io seen{};  // the inputs that were evaluated last
    Io own{};   // the RTL's outputs, when the model drives the run
    Function golden_step = nullptr, golden_comb = nullptr;
    int64_t golden = 0;
    uint64_t steps = 0;
    bool held = false;   // the inputs are those of the last edge
    bool rests = false;  // and it changed nothing, so that the next ones change nothing either
    char before[sizeof(Block__Syms)];
    int64_t difference = NONE;
    Recorder *recorder = nullptr;
    VerilatedVcdC *trace = nullptr;

    Instance() { block.eval(); }
    ~Instance() {
        block.final();
        delete recorder;
        if (trace) trace->close();
        delete trace;
    }

    // The combinational logic, for the inputs in ``io``; as it was if they are.
    void set(const Io &io) {
        if (std::memcmp(&seen.i, &io.i, sizeof io.i) == 0) return;
        std::memcpy(&seen.i, &io.i, sizeof io.i);
        put(r, io);
        evaluate_inputs(block, r);
        held = rests = false;
    }

    // One clock edge. A block waits most of the time, with nothing that changes: neither its inputs nor, at an edge,
    // anything inside. Whether something may have changed.
    bool step(const Io &io) {
        set(io);
        if (!held) {
            evaluate_edge(block, r);
        } else if (!rests) {
            std::memcpy(before, r.vlSymsp, sizeof before);
            evaluate_edge(block, r);
            rests = std::memcmp(before, r.vlSymsp, sizeof before) == 0;
        }
        held = true;
        ++steps;
        return !rests;
    }

    void reset() {
        held = rests = false;
        r.rst = 1;
        evaluate_inputs(block, r);
        evaluate_edge(block, r);
        r.rst = 0;
        evaluate_inputs(block, r);
    }
};

Instance &instance(int64_t handle) { return *reinterpret_cast<Instance *>(handle); }
Io &ports(int64_t io) { return *reinterpret_cast<Io *>(io); }

template <class T>
int64_t array(const std::vector<T> &items, int64_t *count) {
    *count = items.size();
    return reinterpret_cast<int64_t>(items.data());
}

constexpr const char *type_of(uint8_t) { return "u1"; }
constexpr const char *type_of(uint16_t) { return "u2"; }
constexpr const char *type_of(uint32_t) { return "u4"; }
constexpr const char *type_of(uint64_t) { return "u8"; }
constexpr const char *type_of(int64_t) { return "i8"; }

struct Leaf {
    const char *path;
    size_t offset;
    const char *type, *port;
    int bit, width;
};
#define LEAF(path, port, bit, width) \
    {#path, offsetof(Io, path), type_of(std::decay_t<decltype(std::declval<Io>().path)>()), port, bit, width},
constexpr Leaf LEAVES[] = {
@table@
};

}  // namespace

void vl_fatal(const char *file, int line, const char *where, const char *message) {
    if (failure.empty()) failure = std::string(file) + ":" + std::to_string(line) + ": " + message;
}
void vl_finish(const char *file, int line, const char *where) { vl_fatal(file, line, where, "$finish"); }
void vl_stop(const char *file, int line, const char *where) { vl_fatal(file, line, where, "$stop"); }

EXPORT const char *layout() {
    static std::string text;
    if (text.empty()) {
        text = "size " + std::to_string(sizeof(Io)) + "\n";
        for (const Leaf &leaf : LEAVES)
            text += std::string(leaf.path) + " " + std::to_string(leaf.offset) + " " + leaf.type + " " + leaf.port + " " +
                    std::to_string(leaf.bit) + " " + std::to_string(leaf.width) + "\n";
    }
    return text.c_str();
}

EXPORT int64_t create() { return reinterpret_cast<int64_t>(new Instance); }
EXPORT void destroy(int64_t handle) { delete &instance(handle); }

// Reset the flip-flops and write the registered outputs after it.
EXPORT void reset(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    self.reset();
    take_o(self.r, ports(io));
}

// Reset the flip-flops and compare the registered outputs with the model's.
EXPORT void shadow_reset(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    self.reset();
    self.difference = NONE;
    if (self.recorder) self.recorder->restarted = true;
    take_o(self.r, self.own);
    if (!same_o(self.own, ports(io))) {
        self.difference = REGISTERED;
        if (self.recorder) self.recorder->add(ports(io), true);
    }
}

EXPORT int64_t step(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    if (self.step(ports(io))) take_o(self.r, ports(io));
    return !failure.empty();
}

EXPORT int64_t comb(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    self.set(ports(io));
    take_c(self.r, ports(io));
    return !failure.empty();
}

// At rest, steps change nothing for as long as the inputs are held: none need to be made.
EXPORT int64_t idle(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    self.set(ports(io));
    return self.rests ? @never@ : 0;
}
EXPORT int64_t skip(int64_t, int64_t) { return 0; }

EXPORT void golden(int64_t handle, int64_t step, int64_t comb, int64_t golden) {
    Instance &self = instance(handle);
    self.golden_step = reinterpret_cast<Function>(step);
    self.golden_comb = reinterpret_cast<Function>(comb);
    self.golden = golden;
}

EXPORT int64_t shadow_step(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    if (self.difference) return 1;
    if (self.recorder) self.recorder->add(ports(io));
    if (self.step(ports(io))) take_o(self.r, self.own);
    const int64_t stop = self.golden_step(self.golden, io);
    if (__builtin_expect(!same_o(self.own, ports(io)), 0)) {
        self.difference = REGISTERED;
        if (self.recorder) self.recorder->add(ports(io), true);
        return 1;
    }
    return stop | !failure.empty();
}

EXPORT int64_t shadow_comb(int64_t handle, int64_t io) {
    Instance &self = instance(handle);
    if (self.difference) return 1;
    self.set(ports(io));
    take_c(self.r, self.own);
    const int64_t stop = self.golden_comb(self.golden, io);
    if (__builtin_expect(!same_c(self.own, ports(io)), 0)) {
        self.difference = COMBINATIONAL;
        if (self.recorder) self.recorder->add(ports(io), true);
        return 1;
    }
    return stop | !failure.empty();
}

EXPORT int64_t shadow_idle(int64_t, int64_t) { return 0; }  // every cycle is compared

EXPORT int64_t steps(int64_t handle) { return instance(handle).steps; }
EXPORT int64_t rests(int64_t handle) { return instance(handle).rests; }
EXPORT int64_t difference(int64_t handle) { return instance(handle).difference; }
EXPORT int64_t own(int64_t handle) { return reinterpret_cast<int64_t>(&instance(handle).own); }
EXPORT const char *failed() { return failure.c_str(); }

EXPORT void record(int64_t handle) {
    if (!instance(handle).recorder) instance(handle).recorder = new Recorder;
}

// The recorded array of a name: its address, and its length in ``count``.
EXPORT int64_t recorded(int64_t handle, const char *name, int64_t *count) {
    const Recorder &recorder = *instance(handle).recorder;
    const std::string which = name;
    if (which == "repeats") return array(recorder.repeats, count);
    if (which == "resets") return array(recorder.resets, count);
    if (which == "counts") return array(recorder.counts, count);
    if (which == "words") return array(recorder.words, count);
    return array(recorder.values, count);
}

// Play a cycle ``times`` times with the same ports and compare; the cycles that agreed. ``sides`` says what is compared:
// 1 the registered outputs alone (then there is no step), 2 the combinational ones too, 3 both and the step.
EXPORT int64_t play(int64_t handle, int64_t io, int64_t times, int64_t sides) {
    Instance &self = instance(handle);
    const Io &expected = ports(io);
    for (int64_t k = 0; k < times; ++k) {
        take_o(self.r, self.own);
        if (!same_o(self.own, expected)) {
            self.difference = REGISTERED;
            return k;
        }
        if (sides == 1) continue;
        self.set(expected);
        take_c(self.r, self.own);
        if (!same_c(self.own, expected)) {
            self.difference = COMBINATIONAL;
            return k;
        }
        if (sides == 3) self.step(expected);
    }
    return times;
}

#ifdef TRACED
EXPORT void trace(int64_t handle, const char *path) {
    Instance &self = instance(handle);
    self.context.traceEverOn(true);
    self.trace = new VerilatedVcdC;
    self.block.trace(self.trace, 99);
    self.trace->open(path);
}

// The waves of one cycle, from just after its first edge on; the ports are those of this cycle.
EXPORT void dump(int64_t handle, int64_t io, int64_t cycle) {
    Instance &self = instance(handle);
    put(self.r, ports(io));
    put_expected(self.r, ports(io));
    self.r.core_cycle = cycle;
    for (int half = 0; half < 2; ++half) {
        self.r.clk = !half;
#ifdef CLOCKED
        self.r.__Vtrigprevexpr___TOP__clk__0 = !half;  // seen, but no edge: that is step's
#endif
        self.block.eval();
        self.trace->dump(static_cast<uint64_t>(10 * cycle + 5 * half));
    }
}
#endif
