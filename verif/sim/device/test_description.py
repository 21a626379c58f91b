"""GPU descriptions: the files, their sources, overrides, and every way to get one wrong."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lockstep.models.memory.mesh import nodes_of
from lockstep.models.memory.timing import return_delay, slice_delay
from lockstep.models.occupancy import occupancy
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.spec import parameters

SOURCES = "Kloosterman|Jatala|Chen|Kayiran|public|derived:|assumed|unused:|GPGPU-Sim"
FILES = sorted(description.FOLDER.glob("*.toml"))


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """gtx480 with one line changed."""
    text = (description.FOLDER / "gtx480.toml").read_text(encoding="utf-8")
    assert len(re.findall(old, text, re.MULTILINE)) == 1
    file = tmp_path / "mine.toml"
    file.write_text(re.sub(old, new, text, flags=re.MULTILINE), encoding="utf-8")
    return file


def refused(gpu: object, overrides: dict | None, *words: str) -> None:
    with pytest.raises(UsageError) as caught:
        description.load(gpu, overrides)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_names() -> None:
    assert description.names() == [
        "dyncta110", "dyncta30", "dyncta56", "gtx280", "gtx480", "gtx580", "gtx980", "tesla-c2050",
    ]  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_value_has_a_source(file: Path) -> None:
    values = [line for line in lines(file) if "=" in line and not line.startswith(("#", "name", "source"))]
    written = description.PARAMETERS.keys() - description.DEFAULTS.keys()
    for key in parameters.OPTIONAL_KEYS:
        section, name = key.split(".")
        if name in tomllib.loads(file.read_text(encoding="utf-8")).get(section, {}):
            written |= {key}
    for section in parameters.OPTIONAL:
        if f"[{section}]" not in lines(file):
            written = {key for key in written if not key.startswith(f"{section}.")}
    assert len(values) == 1 + sum("." in key for key in written) - 2 * len(parameters.CATEGORIES)
    for line in values:
        assert re.search(rf"\S  +# ({SOURCES}) ?\S?", line), line


@pytest.mark.parametrize("name", description.names())
def test_loads_and_fits_a_cta(name: str) -> None:
    gpu = description.load(name)
    assert gpu.name == name
    assert occupancy(gpu, 256, 20, 4096).ctas >= 1


def test_what_the_papers_fix() -> None:
    gtx480, c2050, gtx580, gtx980, ka = (
        description.load(n) for n in ("gtx480", "tesla-c2050", "gtx580", "gtx980", "dyncta30")
    )

    def l1_bytes(gpu: parameters.Gpu) -> int:
        return gpu.l1.sets * gpu.l1.ways * gpu.l1.line_bytes

    def l2_bytes(gpu: parameters.Gpu) -> int:
        return gpu.l2.slices * gpu.l2.sets * gpu.l2.ways * gpu.l1.line_bytes

    def bandwidth(gpu: parameters.Gpu) -> float:
        return gpu.dram.channels * gpu.dram.bus_bytes * 2 * gpu.clocks.dram / 1000  # GB/s

    assert (gtx480.core.sms, gtx480.core.warps, gtx480.core.scheduler) == (15, 48, "gto")
    assert (gtx480.l1.sets, gtx480.l1.ways, gtx480.l1.mshrs, l1_bytes(gtx480)) == (64, 4, 32, 32 << 10)
    assert (c2050.core.sms, c2050.core.scheduler, c2050.core.registers) == (14, "lrr", 32768)
    assert (l1_bytes(c2050), l2_bytes(c2050), c2050.scratchpad.bytes) == (16 << 10, 768 << 10, 48 << 10)
    assert (gtx580.core.sms, gtx580.core.issue_interval, gtx580.l1.latency, gtx580.l2.latency) == (16, 2, 30, 100)
    assert (gtx580.dram.latency, l2_bytes(gtx580), gtx580.l1.mshrs) == (600, 768 << 10, 64)
    assert gtx580.l2.mshrs * gtx580.l2.slices == 128
    assert gtx580.pipelines["special_double"].latency == 72
    # 8 blocks of 128 bytes per cycle
    assert gtx580.dram.channels * gtx580.dram.bus_bytes * 2 == 8 * 128 and gtx580.clocks.dram == gtx580.clocks.core
    assert (gtx980.core.sms, gtx980.core.warps, gtx980.core.ctas, gtx980.core.schedulers) == (16, 64, 32, 4)
    assert (gtx980.core.registers, gtx980.scratchpad.bytes, gtx980.l1.data) == (65536, 96 << 10, 0)
    assert (l1_bytes(gtx980), l2_bytes(gtx980), bandwidth(gtx980)) == (48 << 10, 2 << 20, 224)
    assert (ka.core.sms, ka.core.threads, ka.core.issue_interval, ka.l1.line_bytes) == (30, 1024, 4, 64)
    assert (l1_bytes(ka), l2_bytes(ka), ka.crossbar.concentration) == (32 << 10, 8 * 256 << 10, 3)
    assert (ka.dram.tRC, ka.dram.tRCD, ka.dram.queue, ka.dram.banks) == (35, 12, 128, 4)


def test_what_gtx280_is() -> None:
    """Chen table 1-1, and what makes the chip one of compute capability 1.3."""
    gpu = description.load("gtx280")
    core, scratchpad = gpu.core, gpu.scratchpad
    assert (core.sms, core.warps, core.threads, core.ctas, core.threads_per_cta) == (30, 32, 1024, 8, 512)
    assert (core.registers, scratchpad.bytes, scratchpad.banks, gpu.compute_capability) == (16384, 16384, 16, "1.3")
    assert (core.coalescing, scratchpad.broadcasts, gpu.l1.data, gpu.l2.data) == ("half-warp", "one", 0, 0)
    # Eight lanes at 1296 MHz: a warp in four of their cycles, and one f64 unit.
    assert core.issue_interval * 1296 == 4 * gpu.clocks.core == 2 * 1296
    assert gpu.pipelines["float"].interval * 1296 // gpu.clocks.core == 4
    assert gpu.pipelines["double"].interval == 8 * gpu.pipelines["float"].interval
    for clock, bandwidth in ((1107, 141.7), (800, 102.4)):
        dram = description.load("gtx280", {"clocks.dram": clock})
        moved = dram.dram.channels * dram.dram.bus_bytes * 2 * dram.clocks.dram / 1000
        assert moved == pytest.approx(bandwidth, abs=0.1)  # GB/s of a GTX 280 and of a Tesla C1060


@pytest.mark.parametrize(("name", "side", "cores", "controllers"), [("dyncta56", 8, 56, 8), ("dyncta110", 11, 110, 11)])
def test_what_the_paper_fixes_of_meshes(name: str, side: int, cores: int, controllers: int) -> None:
    """Kayiran section 5.3 and table 1; all else is as on dyncta30, and so is what a slice and DRAM take themselves."""
    gpu, smaller = description.load(name), description.load("dyncta30")
    assert (gpu.core.sms, gpu.dram.channels, gpu.l2.slices) == (cores, controllers, controllers)
    assert gpu.mesh == parameters.Mesh(
        columns=side, rows=side, virtual_channels=4, buffers=4, routing_delay=2, channel_latency=2, input_speedup=2
    )
    ports, slices = nodes_of(gpu)
    assert sorted(ports + slices) == list(range(side * side))
    assert slices == [node * (side + 1) for node in range(side)]
    assert (slice_delay(gpu), return_delay(gpu)) == (slice_delay(smaller), return_delay(smaller))
    others = {key for key, value in description.values(gpu).items() if value != description.values(smaller)[key]}
    assert others - {key for key in others if key.startswith("mesh.")} == {
        "name", "source", "core.sms", "crossbar.concentration", "l2.latency", "dram.latency",
    } | ({"l2.slices", "dram.channels"} if controllers != 8 else set())  # fmt: skip


def test_a_mesh_is_described_as_a_whole(tmp_path: Path) -> None:
    text = (description.FOLDER / "dyncta56.toml").read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(re.sub(r"^routing_delay.*\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    refused(file, None, "mesh.routing_delay is missing")


def test_a_mesh_in_place_of_crossbars() -> None:
    gpu = description.load("gtx480", {"mesh.columns": 12, "mesh.rows": 3})
    assert gpu.mesh.columns == 12 and description.load("gtx480").mesh.columns == 0


def test_overrides() -> None:
    gpu = description.load("gtx480", {"l1.mshrs": 64, "pipelines.float.latency": 30, "core.scheduler": "lrr"})
    assert (gpu.l1.mshrs, gpu.pipelines["float"].latency, gpu.core.scheduler) == (64, 30, "lrr")
    assert gpu.pipelines["integer"] == description.load("gtx480").pipelines["integer"]


def test_values_give_the_description_back() -> None:
    gpu = description.load("gtx480", {"l1.mshrs": 7})
    flat = description.values(gpu)
    again = description.load("gtx980", {key: flat[key] for key in description.PARAMETERS})
    assert description.values(again) == flat | {key: getattr(again, key) for key in description.IDENTITY}


def test_parse_setting() -> None:
    assert description.parse_setting("l1.mshrs=0x40") == ("l1.mshrs", 64)
    assert description.parse_setting("core.scheduler = lrr") == ("core.scheduler", "lrr")
    for text in ("l1.mshrs", "l1.mshrs=many", "l1.mshr=3"):
        with pytest.raises(UsageError):
            description.parse_setting(text)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"l1.mshr": 3}, ("l1.mshr", "did you mean l1.mshrs")),
        ({"pipelines.flaot.latency": 3}, ("did you mean pipelines.float.latency",)),
        ({"l1.mshrs": "many"}, ("l1.mshrs", "integer")),
        ({"l1.mshrs": True}, ("l1.mshrs", "integer")),
        ({"l1.mshrs": 3.5}, ("l1.mshrs", "integer")),
        ({"l1.mshrs": 0}, ("l1.mshrs", "1 to 256 MSHRs")),
        ({"core.sms": 129}, ("core.sms", "1 to 128")),
        ({"core.warps": 65}, ("core.warps", "1 to 64")),
        ({"core.scheduler": "gt0"}, ("core.scheduler", "lrr, greedy-rr, gto")),
        ({"pipelines.float.pipe": "fpu"}, ("alu, sfu, dp, lsu",)),
        ({"pipelines.float.pipe": "lsu"}, ("pipelines.float.pipe", "memory instructions")),
        ({"pipelines.global.pipe": "alu"}, ("pipelines.global.pipe", "use lsu")),
        ({"l1.sets": 48}, ("l1.sets", "power of two")),
        ({"l1.sets": 1024}, ("l1.sets * l1.ways", "2048")),
        ({"texture_cache.sets": 24}, ("texture_cache.sets", "power of two")),
        ({"texture_cache.sets": 256}, ("texture_cache.sets * texture_cache.ways = 768", "512")),
        ({"l2.slices": 13}, ("l2.slices", "multiple of dram.channels")),
        ({"mesh.columns": 5, "mesh.rows": 6}, ("l2.slices = 12", "diagonal", "room for 6")),
        ({"mesh.columns": 12, "mesh.rows": 2}, ("mesh.columns * mesh.rows = 24", "15 ports of SMs", "too few nodes")),
        ({"mesh.columns": 33}, ("mesh.columns", "0 to 32 nodes")),
        ({"dram.interleave": 64}, ("dram.interleave", "l1.line_bytes")),
        ({"l2.sector_bytes": 96}, ("l2.sector_bytes", "power of two")),
        ({"l1.line_bytes": 64, "instruction_cache.line_bytes": 64}, ("l2.sector_bytes", "l1.line_bytes = 64")),
        ({"l1.latency": 7}, ("l1.latency", "8 to 4096 core cycles")),
        ({"l2.latency": 20}, ("l2.latency", "parts on the way")),
        ({"dram.latency": 190}, ("dram.latency", "parts on the way")),
        ({"core.warps": 16}, ("core.threads", "32 * core.warps")),
        ({"core.threads": 512}, ("core.threads_per_cta", "core.threads")),
        ({"scratchpad.bytes": 16384}, ("scratchpad.bytes_per_cta",)),
        ({"scratchpad.banks": 24}, ("scratchpad.banks", "power of two")),
        ({"core.instruction_buffer": 1}, ("core.fetch_width",)),
        (
            {"core.warps": 1, "core.threads": 32, "core.threads_per_cta": 32, "core.active_warps": 1},
            ("core.schedulers = 2", "core.warps = 1"),
        ),
        ({"dram.tRAS": 41}, ("dram.tRAS = 41", "dram.tRC = 40")),
        ({"dram.tRP": 41}, ("dram.tRP = 41", "dram.tRC = 40")),
        ({"dram.tRCD": 29}, ("dram.tRCD = 29", "dram.tRAS = 28")),
        ({"core.registers_per_thread": 64, "core.registers": 2016}, ("core.registers_per_thread = 64", "= 63")),
    ],
)
def test_refused_overrides(overrides: dict, words: tuple[str, ...]) -> None:
    refused("gtx480", overrides, *words)


def test_unknown_gpu() -> None:
    refused("gtx48", None, "gtx48", "did you mean gtx480", "tesla-c2050")
    refused("nowhere.toml", None, "nowhere.toml", "no such file")


def test_refused_files(tmp_path: Path) -> None:
    refused(changed(tmp_path, r"^mshrs = 32 +# Kloosterman.*", "mshr = 32"), None, "mine.toml", "l1.mshr", "l1.mshrs")
    refused(changed(tmp_path, r"^mshrs = 32 +# Kloosterman.*", ""), None, "l1.mshrs is missing")
    refused(changed(tmp_path, r"^\[scratchpad\]", "[scratchpda]"), None, "[scratchpda]", "did you mean scratchpad")
    refused(changed(tmp_path, r"^mshrs = 32 +# Kloosterman.*", "mshrs = '32'"), None, "l1.mshrs", "integer")
    refused(changed(tmp_path, r"^name = .*", "name = 3"), None, "name")
    refused(changed(tmp_path, r"^compute_capability = .*", "compute_capability = 'two'"), None, "compute_capability")
    refused(changed(tmp_path, r"^\[l1\]", "[l1"), None, "not a TOML file")
    for value in ("9" * 5000, "[" * 5000):
        refused(changed(tmp_path, r"^mshrs = 32 +# Kloosterman.*", f"mshrs = {value}"), None, "not a TOML file")


def test_a_file_of_a_user(tmp_path: Path) -> None:
    gpu = description.load(changed(tmp_path, r"^mshrs = 32 +# Kloosterman.*", "mshrs = 48"))
    assert gpu.l1.mshrs == 48


MINE = """base = "gtx480"
[l1]
mshrs = 48  # what if
[pipelines]
float = { latency = 30 }
"""


def derived(tmp_path: Path, name: str = "mine", base: str = "gtx480", text: str = MINE) -> Path:
    file = tmp_path / f"{name}.toml"
    file.write_text(text.replace("gtx480", base), encoding="utf-8")
    return file


def test_a_description_that_says_what_differs_from_another(tmp_path: Path) -> None:
    base, gpu = description.load("gtx480"), description.load(derived(tmp_path))
    assert (gpu.name, gpu.source, gpu.compute_capability) == ("mine", "gtx480, with changes", "2.0")
    before, after = description.values(base), description.values(gpu)
    changed = {key: after[key] for key in description.PARAMETERS if after[key] != before[key]}
    assert changed == {"l1.mshrs": 48, "pipelines.float.latency": 30}


def test_a_base_that_has_a_base(tmp_path: Path) -> None:
    """The base's path is relative to the file that names it, not to where the command runs."""
    derived(tmp_path)
    text = 'base = "gtx480"\nname = "ours"\n[l1]\nways = 2\n'
    gpu = description.load(derived(tmp_path, "second", "mine.toml", text))
    assert (gpu.name, gpu.l1.mshrs, gpu.l1.ways) == ("ours", 48, 2)


def test_refused_bases(tmp_path: Path) -> None:
    refused(derived(tmp_path, base="gtx48"), None, "gtx48", "did you mean gtx480")
    refused(derived(tmp_path, base="other.toml"), None, "other.toml", "no such file")
    refused(derived(tmp_path, base="mine.toml"), None, "mine.toml", "base")
    derived(tmp_path, "second", "mine.toml")
    refused(derived(tmp_path, base="second.toml"), None, "second.toml", "base")
    refused(derived(tmp_path, text='bse = "gtx480"'), None, "unknown parameter bse", "did you mean base")
    refused(derived(tmp_path, text=""), None, "name is missing", "or a base")
    refused(derived(tmp_path, text="base = 3"), None, "base must be", "3")
    refused(derived(tmp_path, text='base = "gtx480"\n[l1]\nmshr = 3'), None, "mine.toml", "l1.mshr", "l1.mshrs")


@pytest.mark.parametrize("name", description.names())
def test_every_value_is_explained(name: str) -> None:
    explained = description.explain(name)
    assert [each.key for each in explained] == list(description.PARAMETERS)
    assert {each.key: each.value for each in explained}.items() <= description.values(description.load(name)).items()
    for each in explained:
        assert each.meaning and each.source and each.allowed, each
        assert each.unit or isinstance(each.value, str) or each.allowed == "0 to 1", each


def test_where_values_come_from(tmp_path: Path) -> None:
    overrides = {"core.sms": 3}
    sources = {each.key: each.source for each in description.explain(derived(tmp_path), overrides, ["sharing"])}
    assert sources["l1.mshrs"] == "what if"
    assert sources["l1.ways"] == "gtx480: Kloosterman table 3.2"
    assert sources["core.sms"] == "override"
    assert sources["core.scheduler"] == "default of a mechanism"
    assert sources["warppool.queues"] == sources["mesh.columns"] == "default"
    assert sources["pipelines.float.latency"] == ""
