from __future__ import annotations

import pytest

from lockstep.models.jit import view
from lockstep.models.warppool import thread_map_table
from lockstep.rtl.warppool.thread_map_table import ThreadMapTable
from lockstep.verif.bench import Bench, seeded
from lockstep.verif.simulation import compare
from lockstep.verif.warppool import bench_thread_map_table as declared


@pytest.mark.parametrize("shape", declared.SHAPES)
@pytest.mark.parametrize("name", declared.CONFIGURATIONS)
def test_hardware_equals_the_model(name: str, shape: str) -> None:
    parameters = declared.CONFIGURATIONS[name]
    bench = Bench(thread_map_table, **parameters)
    environment = declared.Environment(parameters, shape, seeded())
    i, o, c = view(bench.i), view(bench.o), bench.c if bench.c is None else view(bench.c)

    def stimulate(bench: Bench) -> None:
        environment.drive(i, o)
        bench.comb()
        environment.observe(i, o, c)

    compare(ThreadMapTable(**parameters), bench, stimulate, 1000 if parameters.get("entries", 0) < 1024 else 200)
    environment.finish()
