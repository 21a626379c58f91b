"""From signatures to records: the rules of a port, and what keeps records, cache and compiled code up to date."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lockstep.models import blocks, cache
from lockstep.models.jit import record
from lockstep.rtl import configuration, registry
from lockstep.rtl.ports import Field, PortError, layout
from lockstep.sim.device import description
from lockstep.verif.blocks import declaration


def component(members: dict[str, wiring.Member], combinational: dict[str, tuple[str, ...]] | None = None):
    """A component with these ports."""
    instance = wiring.Component(wiring.Signature(members))
    instance.combinational = combinational or {}
    return instance


def types(fields: list[Field]) -> dict:
    """A layout as nested dictionaries of type names, for comparison."""
    return {f["name"]: types(f["fields"]) if "fields" in f else f["type"] for f in fields}


@pytest.mark.parametrize(
    "width, kind",
    [(1, "u1"), (8, "u1"), (9, "u2"), (16, "u2"), (17, "u4"), (32, "u4"), (33, "i8"), (63, "i8"), (64, "u8")],
)
def test_smallest_type_for_the_width(width: int, kind: str) -> None:
    [field] = layout(component({"a": In(width)}))["i"]
    assert field == {"name": "a", "type": kind, "width": width, "shape": []}


@pytest.mark.parametrize(
    "shape, message",
    [
        (65, "has 65 bits; 1 to 64 are allowed"),
        (unsigned(0), "has 0 bits"),
        (range(1), "has 0 bits"),
        (signed(8), "is signed"),
        (data.UnionLayout({"a": 8, "b": 4}), "UnionLayout has no record"),
        (data.StructLayout({"a": 8, "b": data.UnionLayout({"c": 8})}), "UnionLayout has no record"),
        (data.FlexibleLayout(8, {"a": data.Field(8, 0)}), "FlexibleLayout has no record"),
        (data.ArrayLayout(65, 2), "has 65 bits"),
    ],
)
@pytest.mark.parametrize("flow", [In, Out])
def test_shapes_without_a_record_are_refused(shape: Any, message: str, flow: Any) -> None:
    with pytest.raises(PortError, match=f"Component.port.*{message}"):
        layout(component({"port": flow(shape)}))
    with pytest.raises(PortError, match=f"Component.port.*{message}"):
        layout(component({"port": flow(stream.Signature(shape))}))


RESERVED = "clk rst class register union lambda eval final name rootp near reference a__b padding"


@pytest.mark.parametrize("name", RESERVED.split())
def test_names_that_others_need_are_refused(name: str) -> None:
    struct = data.StructLayout({name: 1})
    for members in ({name: In(1)}, {"a": Out(wiring.Signature({name: In(1)}))}, {"a": In(stream.Signature(struct))}):
        with pytest.raises(PortError, match=f"{name!r} is reserved"):
            layout(component(members))


def test_streams_and_interfaces_go_to_the_side_that_drives_them() -> None:
    """The signature of an ``In`` member is flipped already; flipping it again would exchange the sides."""
    payload = data.StructLayout({"address": 32, "inner": data.StructLayout({"flag": 1, "wide": 40})})
    both = wiring.Signature({"ask": Out(9), "answer": In(17), "request": Out(stream.Signature(4))})
    sides = layout(
        component(
            {
                "request": In(stream.Signature(payload)),
                "line": Out(stream.Signature(payload)),
                "client": In(both),
                "server": Out(both),
            }
        )
    )
    leaves = {"address": "u4", "inner": {"flag": "u1", "wide": "i8"}}
    assert types(sides["i"]) == {
        "request": {"payload": leaves, "valid": "u1"},
        "line": {"ready": "u1"},
        "client": {"ask": "u2", "request": {"payload": "u1", "valid": "u1"}},
        "server": {"answer": "u4", "request": {"ready": "u1"}},
    }
    assert types(sides["o"]) == {
        "request": {"ready": "u1"},
        "line": {"payload": leaves, "valid": "u1"},
        "client": {"answer": "u4", "request": {"ready": "u1"}},
        "server": {"ask": "u2", "request": {"payload": "u1", "valid": "u1"}},
    }


def test_fields_come_in_the_signature_s_order() -> None:
    fields = layout(component({name: In(8) for name in "zaymb"}))["i"]
    assert [field["name"] for field in fields] == list("zaymb")


def test_arrays() -> None:
    struct = data.StructLayout({"x": data.ArrayLayout(5, 4)})
    [plain, nested, structs, interfaces] = layout(
        component(
            {
                "plain": In(3).array(2),
                "nested": In(data.ArrayLayout(data.ArrayLayout(20, 3), 2)),
                "structs": In(struct).array(2, 3),
                "interfaces": In(wiring.Signature({"a": Out(1)})).array(2),
            }
        )
    )["i"]
    assert plain == {"name": "plain", "type": "u1", "width": 3, "shape": [2]}
    assert nested == {"name": "nested", "type": "u4", "width": 20, "shape": [2, 3]}
    assert structs["shape"] == [2, 3]
    assert structs["fields"] == [{"name": "x", "type": "u1", "width": 5, "shape": [4]}]
    assert interfaces["shape"] == [2]


def test_combinational_outputs_have_their_own_side() -> None:
    grant = wiring.Signature({"valid": Out(1), "warp": Out(6)})
    members = {"request": In(8), "in_": In(stream.Signature(4)), "grant": Out(grant), "other": Out(1)}
    sides = layout(component(members, {"grant": ("request", "in_.valid"), "in_.ready": ("request",)}))
    assert types(sides["c"]) == {"in_": {"ready": "u1"}, "grant": {"valid": "u1", "warp": "u1"}}
    assert types(sides["o"]) == {"other": "u1"}
    assert "c" not in layout(component({"a": In(1), "b": Out(1)}))


@pytest.mark.parametrize(
    "paths", [{"grant": ("nothing",)}, {"nothing": ("request",)}, {"request": ("request",)}, {"grant": ("grant",)}]
)
def test_combinational_paths_must_exist(paths: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(PortError, match="'combinational' names it"):
        layout(component({"request": In(1), "grant": Out(1)}, paths))


@pytest.mark.parametrize("options", [{"always_ready": True}, {"always_valid": True}])
def test_streams_need_valid_and_ready(options: dict[str, bool]) -> None:
    with pytest.raises(PortError, match="both valid and ready"):
        layout(component({"a": In(stream.Signature(1, **options))}))
    with pytest.raises(PortError, match="both valid and ready"):
        layout(component({"a": Out(stream.Signature(1, **options))}))


def padding(kind: np.dtype) -> Iterator[tuple[int, int]]:
    """Bytes of a record that no field covers."""
    if kind.subdtype:
        kind = kind.subdtype[0]
    if kind.names is None or kind.fields is None:
        return
    end = 0
    for name in kind.names:
        inner, offset = kind.fields[name][:2]
        if offset != end:
            yield end, offset
        yield from padding(inner)
        end = offset + inner.itemsize
    if end != kind.itemsize:
        yield end, kind.itemsize


def test_every_byte_of_a_record_is_in_a_named_field() -> None:
    for block in registry.blocks():
        assert not list(padding(blocks.ports(block)))
    assert list(padding(np.dtype([("a", "u1"), ("b", "u4")], align=True))) == [(1, 4)]
    kind = record([("a", "u1"), ("b", record([("c", "u8"), ("d", "u1")]), (2,)), ("e", "u2")])
    assert not list(padding(kind))


def test_every_block_has_a_model_of_the_same_name() -> None:
    assert "scheduling.warp_scheduler" in registry.blocks()
    for block in registry.blocks():
        assert (cache.ROOT / "models" / Path(*block.split("."))).with_suffix(".py").exists()
        assert type(registry.largest(block)).__module__ == f"lockstep.rtl.{block}"


def widths(fields: list[Field], prefix: str = "") -> dict[str, tuple[int, list[int]]]:
    leaves: dict[str, tuple[int, list[int]]] = {}
    for field in fields:
        path = f"{prefix}.{field['name']}"
        leaves |= widths(field["fields"], path) if "fields" in field else {path: (field["width"], field["shape"])}
    return leaves


@pytest.mark.parametrize("block", registry.blocks())
def test_smaller_instances_fit_the_largest_record(block: str) -> None:
    """Those of every GPU, and those of the benches."""
    largest = layout(registry.largest(block))
    gpus = [description.load(name) for name in description.names()]
    every = [configuration.parameters(block, gpu) for gpu in gpus] + list(declaration(block).configurations.values())
    for smaller in every:
        sides = layout(registry.component(block)(**smaller))
        assert sides.keys() == largest.keys()
        for side, fields in sides.items():
            small, large = widths(fields), widths(largest[side])
            assert small.keys() == large.keys()
            for path, (width, shape) in small.items():
                assert width <= large[path][0]
                assert all(a <= b for a, b in zip(shape, large[path][1], strict=True))


# The other blocks of WarpPool have sizes that depend on each other, and tests of their own.
@pytest.mark.parametrize("block", ["cta.cta_dispatcher", "scheduling.warp_scheduler", "lsu.intra_warp_coalescer"])
def test_sizes_out_of_range_are_refused(block: str) -> None:
    cls = registry.component(block)
    for parameter, most in cls.LARGEST.items():
        with pytest.raises(ValueError, match="must be"):
            cls(**cls.LARGEST | {parameter: most + 1})


# ------------------------------------------------------------------------------------------------ cache and processes

_READS_A_PORT = """
import sys
import numpy as np
from lockstep.models import port_reader
print(port_reader.run(), "amaranth" in sys.modules)
"""

_PORT_READER = """
import numpy as np
from lockstep.models.blocks import ports
from lockstep.models.jit import address, addressof, argument, call, entry, i64, pointer_to, slot

PORTS = ports("scheduling.warp_scheduler")
at = pointer_to(PORTS)


@slot
def request(where, unused):
    return i64(at(where).i.request)


@entry
def start(function, io):
    return call(function, addressof(io), 0)


def run():
    io = np.zeros((), PORTS)
    io["i"]["request"] = 1234
    return start(address(request), argument(io))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources that the layouts and the models come from, importable before the real ones."""
    for folder in ("models", "rtl"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(cache.ROOT / folder, tmp_path / "lockstep" / folder, ignore=ignored)
    (tmp_path / "lockstep" / "models" / "port_reader.py").write_text(_PORT_READER, encoding="utf-8")
    return tmp_path


def execute(tree: Path, code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree), "LOCKSTEP_CACHE": str(tree / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr


@pytest.mark.long
def test_models_import_no_amaranth(tree: Path) -> None:
    modules = [f"lockstep.models.{block}" for block in registry.blocks()]
    uncompiled = "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'"  # which would take most of the time
    code = f"{uncompiled}; import sys, {', '.join(modules)}; print('amaranth' in sys.modules)"
    assert execute(tree, code) == "False"


@pytest.mark.exhaustive
@pytest.mark.long
def test_an_edited_signature_changes_the_record_and_the_compiled_code(tree: Path) -> None:
    source = tree / "lockstep" / "rtl" / "scheduling" / "warp_scheduler.py"
    size = "from lockstep.models.blocks import ports; print(ports('scheduling.warp_scheduler').itemsize)"
    before = int(execute(tree, size))
    assert execute(tree, _READS_A_PORT) == "1234 False"
    layouts = list((tree / "cache" / "layouts").iterdir())
    assert len(layouts) == 1
    assert execute(tree, size) == str(before)
    assert list((tree / "cache" / "layouts").iterdir()) == layouts

    text = source.read_text(encoding="utf-8")
    source.write_text(
        text.replace('"policy": In', '"extra": In(64).array(4),\n                "policy": In'), encoding="utf-8"
    )
    assert int(execute(tree, size)) == before + 32
    assert execute(tree, _READS_A_PORT) == "1234 False"


def test_a_port_that_breaks_a_rule_is_one_clear_line(tree: Path) -> None:
    source = tree / "lockstep" / "rtl" / "scheduling" / "warp_scheduler.py"
    source.write_text(
        source.read_text(encoding="utf-8").replace('"start": In(warps)', '"start": In(2 * warps)'), encoding="utf-8"
    )
    error = execute(tree, "from lockstep.models.blocks import layouts; layouts()").splitlines()[-1]
    assert error.endswith("WarpScheduler.start: has 128 bits; 1 to 64 are allowed")
    assert not (tree / "cache" / "layouts").exists()
