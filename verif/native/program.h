// A Verilated module as a program of its own: its code, and what its Verilog does to the process when it stops.

#pragma once

#include <cstdio>
#include <cstdlib>

#include "unity.h"

void vl_fatal(const char* file, int line, const char*, const char* message) {
    std::fprintf(stderr, "%s:%d: %s\n", file, line, message);
    std::exit(1);
}
void vl_stop(const char* file, int line, const char* where) { vl_fatal(file, line, where, "$stop"); }
void vl_finish(const char*, int, const char*) { Verilated::threadContextp()->gotFinish(true); }  // as cocotb ends
