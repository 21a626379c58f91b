"""The energy of a netlist under activity, against sums by hand."""

import json

import numpy as np
import pytest

from lockstep.synth.power import Cycle, Mismatch, PowerError, Powers, function, measure

LIBRARY = """
library (hand) {
  nom_voltage : 2; voltage_unit : "1V"; capacitive_load_unit (1,ff); leakage_power_unit : "1nW";
  power_lut_template (loads) { variable_1 : total_output_net_capacitance; index_1 ("0, 10"); }
  cell (INV) {
    leakage_power () { when : "A"; value : 3; }
    leakage_power () { when : "!A"; value : 1; }
    pin (A) { direction : input; capacitance : 4; }
    pin (Y) { direction : output; function : "A'";
      internal_power () { related_pin : "A";
        rise_power (loads) { values ("1, 11"); }
        fall_power (loads) { values ("2, 22"); } } }
  }
  cell (DFF) {
    cell_leakage_power : 5;
    ff (IQ, IQN) { clocked_on : "C"; next_state : "D"; }
    pin (C) { direction : input; capacitance : 1;
      internal_power () { rise_power (scalar) { values ("7"); } fall_power (scalar) { values ("8"); } } }
    pin (D) { direction : input; capacitance : 2; }
    pin (Q) { direction : output; function : "IQ";
      internal_power () { related_pin : "C"; rise_power (scalar) { values ("100"); }
                          fall_power (scalar) { values ("200"); } } }
  }
}
"""
NETLIST = {
    "ports": {"clk": {"bits": [2]}, "a": {"bits": [3]}, "y": {"bits": [5]}},
    "cells": {
        "flop": {"type": "DFF", "connections": {"C": [2], "D": [3], "Q": [4]}},
        "inverter": {"type": "INV", "connections": {"A": [4], "Y": [5]}},
    },
}


def run(inputs, outputs=None, period=1.0):
    flopped = [0, *inputs[:-1]]
    outputs = outputs or [1 - value for value in flopped]
    cycles = [Cycle({"a": np.array([a], np.uint8)}, {"y": np.array([y], np.uint8)})
              for a, y in zip(inputs, outputs, strict=True)]  # fmt: skip
    netlist = json.dumps({"modules": {"top": NETLIST}})
    return measure(netlist, "top", Powers(LIBRARY), cycles, len(cycles), period).femtojoules


def test_without_activity_there_are_the_clock_and_leakage():
    found = run([0] * 10, period=1000)
    assert found == {
        "clock": 10 * (7 + 8) + 10 * 2 * 1 * 2,  # the pin's edges, and half of 1 fF at 2 V for each of two edges
        "internal": 0,
        "switching": 0,
        "leakage": 10 * (5 + 1),  # nW for 1 us each
    }


def test_energy_is_the_sum_by_hand():
    found = run([1, 1, 0, 0, 0], period=1000)  # the flip-flop is 1 in cycles 1 and 2
    assert found["internal"] == (100 + 200) + (2 + 1)  # the inverter's output has no load
    assert found["switching"] == 2 * 2 * 2 + 2 * 4 * 2  # nets of 2 fF and 4 fF, two edges each
    assert found["leakage"] == 5 * 5 + 3 * 1 + 2 * 3


def test_twice_the_edges_are_twice_the_switching():
    slow, fast = run([1, 1, 0, 0] * 20 + [0, 0]), run([1, 0, 1, 0] * 20 + [0, 0])
    assert fast["switching"] == 2 * slow["switching"]
    assert fast["internal"] == 2 * slow["internal"]
    assert fast["clock"] == slow["clock"]


def test_a_wrong_output_is_found():
    with pytest.raises(Mismatch, match="cycle 2: y: recorded 0x1, netlist 0x0"):
        run([0, 1, 0, 0], [1, 1, 1, 1])


def test_a_table_is_read_at_the_load():
    cell = Powers(LIBRARY).cell("INV")
    assert cell.edge("Y", True, cell.values(0), 5.0, ["A"]) == pytest.approx(6)
    assert cell.edge("Y", False, cell.values(1), 50.0, ["A"]) == pytest.approx(22)


@pytest.mark.parametrize("text", ["!(A*B)", "(A B)'", "!A+!B", "!(A&B)", "1^(A*B)"])
def test_functions(text):
    assert [function(text)({"A": a, "B": b}) for a in (0, 1) for b in (0, 1)] == [1, 1, 1, 0]


@pytest.mark.parametrize("text", ["", "library (x) {", LIBRARY.replace("internal_power", "none"),
                                  LIBRARY.replace("nom_voltage : 2;", "")])  # fmt: skip
def test_a_library_without_power_is_refused(text):
    with pytest.raises(PowerError):
        Powers(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"A\'"', '"B\'"', "cell INV has a function, table or number that cannot be read"),
        ('"A\'"', f'"{"(" * 5000}A"', "cell INV has a function, table or number that cannot be read"),
        ("capacitance : 4", "capacitance : four", "cell INV has a function, table or number that cannot be read"),
        ('"2, 22"', '"2, 22, 3"', "cell INV has a function, table or number that cannot be read"),
        ('"1, 11"', '"1, x"', "cell INV has a function, table or number that cannot be read"),
        ("rise_power (loads)", "rise_power (others)", "cell INV has a function, table or number that cannot be read"),
        ("pin (A) {", "".join(f"pin (P{k}) {{ direction : input; }} " for k in range(8)) + "pin (A) {",
         "cell INV has 9 inputs: at most 8"),
    ],
)  # fmt: skip
def test_a_cell_that_cannot_be_read_is_named(old, new, says):
    with pytest.raises(PowerError, match=says):
        Powers(LIBRARY.replace(old, new)).cell("INV")


def test_comments_without_an_end_take_no_longer():
    with pytest.raises(PowerError, match="does not say its voltage"):
        Powers("library (x) { " + "/* " * 1_000_000)
