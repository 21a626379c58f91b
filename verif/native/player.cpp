// Plays traces to a Verilated block and compares every output in every cycle. Two uses: code coverage, and mutants.
//
//     player RESULTS FIRST LAST TRACE...
//
// For each value of the input that selects a mutant, FIRST to LAST (0 where there is no such input), play the traces
// until one differs, each from a reset on: a mutated flip-flop loses its initial value. RESULTS gets a line per value:
// the value, the number of the trace and the cycle, or -1 -1.
//
// A trace: the number of cycles (8 bytes), then per cycle the reset, the inputs, the outputs, each as Verilator keeps
// it (1, 2, 4, 8 bytes, or words of 4), in the order of ports.h, which defines INPUTS and OUTPUTS as lists of P(name).
// Then, as text, the registers, or words of memories, that get a value before a cycle, in the order of the cycles: cycle,
// path below TOP, value.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"
#include "ports.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

namespace {

struct Wire {
    void* where;
    size_t bytes;
};

std::vector<char> contents(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) std::perror(path), std::exit(3);
    std::fseek(file, 0, SEEK_END);
    std::vector<char> bytes(std::ftell(file));
    std::rewind(file);
    if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::perror(path), std::exit(3);
    std::fclose(file);
    return bytes;
}

struct Preset {
    uint64_t cycle;
    std::string path;
    int64_t value;
};

void set(VerilatedContext& context, const Preset& preset) {
    const size_t bracket = preset.path.find('[');  // of a word of a memory
    const std::string path = "top." TOP "." + preset.path.substr(0, bracket);
    const size_t word = bracket == std::string::npos ? 0 : std::stoul(preset.path.substr(bracket + 1));
    const size_t dot = path.rfind('.');
    const VerilatedScope* scope = context.scopeFind(path.substr(0, dot).c_str());
    const VerilatedVar* variable = scope ? scope->varFind(path.c_str() + dot + 1) : nullptr;
    const int bits = variable ? variable->entBits() : 0;
    if (bits < 1 || bits > 64 || (bits < 64 && (preset.value >= 1LL << bits || preset.value < -(1LL << (bits - 1))))) {
        std::fprintf(stderr, "%s has %d bits, and is to be %lld\n", path.c_str(), bits, (long long)preset.value);
        std::exit(3);
    }
    const uint64_t value = bits < 64 ? preset.value & ((1ULL << bits) - 1) : preset.value;
    const size_t bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
    std::memcpy(static_cast<char*>(variable->datap()) + word * bytes, &value, bytes);
}

// The first cycle in which an output differs, or -1.
int64_t play(VerilatedContext& context, const std::vector<char>& trace, uint32_t mutant) {
    const auto top = std::make_unique<Block>(&context, "top");
#define P(name) {&top->name, sizeof(top->name)},
    const std::vector<Wire> inputs = {{&top->rst, 1}, INPUTS}, outputs = {OUTPUTS};
#undef P
#ifdef MUTANT
    top->MUTANT = mutant;
#endif
    uint64_t cycles;
    std::memcpy(&cycles, trace.data(), 8);
    const char* at = trace.data() + 8;
    top->rst = 1;
    for (int clock = 0; clock < 2; clock++) {
        top->clk = clock;
        top->eval();
    }
    size_t row = 0;
    for (const std::vector<Wire>& wires : {inputs, outputs})
        for (const Wire& wire : wires) row += wire.bytes;
    std::istringstream presets(std::string(at + cycles * row, trace.data() + trace.size()));
    Preset next{};
    const auto read = [&] { return bool(presets >> next.cycle >> next.path >> next.value); };
    bool more = read();
    int64_t found = -1;
    for (uint64_t cycle = 0; cycle < cycles && found < 0; cycle++) {
        for (; more && next.cycle == cycle; more = read()) set(context, next);
        top->clk = 0;
        for (const Wire& wire : inputs) {
            std::memcpy(wire.where, at, wire.bytes);
            at += wire.bytes;
        }
        top->eval();
        for (const Wire& wire : outputs) {
            if (std::memcmp(wire.where, at, wire.bytes)) found = cycle;
            at += wire.bytes;
        }
        top->clk = 1;
        top->eval();
    }
    top->final();
#if VM_COVERAGE
    context.coveragep()->write("coverage.dat");  // its counters live in the block
#endif
    return found;
}

}  // namespace

double sc_time_stamp() { return 0; }

int main(int argc, char** argv) {
    if (argc < 5) return 3;
    std::FILE* results = std::fopen(argv[1], "w");
    std::vector<std::vector<char>> traces;
    for (int k = 4; k < argc; k++) traces.push_back(contents(argv[k]));
    for (uint32_t mutant = std::atoi(argv[2]); mutant <= uint32_t(std::atoi(argv[3])); mutant++) {
        VerilatedContext context;
        int64_t cycle = -1;
        size_t k = 0;
        while (k < traces.size() && (cycle = play(context, traces[k], mutant)) < 0) k++;
        std::fprintf(results, "%u %d %lld\n", mutant, cycle < 0 ? -1 : int(k), (long long)cycle);
    }
    std::fclose(results);
    return 0;
}
