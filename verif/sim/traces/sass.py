"""Traces in Accel-Sim's text format, made by hand after its description."""

from __future__ import annotations

from pathlib import Path

FULL, HALF, REST = "ffffffff", "0000ffff", "ffff0000"


def header(
    binary: int = 80, grid: str = "(2,1,1)", block: str = "(64,1,1)", tracer: int = 4, extra: str = "", shmem: int = 512
) -> str:
    return f"""-kernel name = _Z3addPf
-kernel id = 1
-grid dim = {grid}
-block dim = {block}
-shmem = {shmem}
-nregs = 24
-binary version = {binary}
-cuda stream id = 0
-shmem base_addr = 0x00007f0000000000
-local mem base_addr = 0x00007f0001000000
-nvbit version = 1.5.5
-accelsim tracer version = {tracer}
{extra}
#traces format = as the description says

"""


def warp(number: int, cta: int) -> list[str]:
    """A warp that diverges: half of its lanes take the branch, both halves meet at a barrier; then a load that is
    listed, one with differences, one with a stride, a scratchpad, local memory, an atomic, and exits half by half."""
    base = 0x7F5C00000000 + 0x1000 * cta + 0x80 * number
    listed = " ".join(f"0x{base + 64 * (lane * 7 % 32):x}" for lane in range(32))
    differences = " ".join(["4"] * 15 + ["1024"] + ["-4"] * 15)
    return [
        f"0000 {FULL} 1 R1 MOV 0 0",
        f"0010 {FULL} 1 R0 S2R 0 0 0",
        f"0020 {FULL} 1 R2 IMAD.WIDE 2 R0 R1 0 4",
        f"0030 {HALF} 0 BRA 0 0",
        f"0080 {HALF} 1 R4 FADD 2 R0 R1 0",
        f"0090 {HALF} 0 BSYNC 0 0",
        f"0040 {REST} 1 R4 FMUL 2 R0 R1 0",
        f"0050 {REST} 0 BRA 0 0",
        f"00a0 {FULL} 0 BAR.SYNC 0 0",
        f"00b0 {FULL} 1 R6 LDG.E.64.SYS 1 R2 8 0 {listed}",
        f"00c0 {FULL} 1 R8 LDG.E.SYS 1 R2 4 2 0x{base:x} {differences}",
        f"00d0 {FULL} 1 R9 LDG.E.CONSTANT.SYS 1 R2 4 1 0x{base:x} 4",
        "00e0 00000000 1 R9 LDG.E.SYS 1 R2 4 1",
        f"00f0 {FULL} 0 STS 2 R0 R9 4 1 0x7f0000000000 4",
        f"0100 {FULL} 1 R10 LDS.U 1 R0 4 1 0x0 4",
        f"0110 {HALF} 0 STL 2 R1 R10 4 1 0x7f0001000010 0",
        f"0120 {FULL} 0 RED.E.ADD.STRONG.GPU 2 R2 R10 4 1 0x{0x7F5D00000000:x} 0",
        f"0130 {FULL} 1 R12 HMMA.16816.F32 3 R4 R6 R8 0",
        f"0140 {FULL} 1 R13 MUFU.RCP 1 R4 0",
        f"0150 {FULL} 0 STG.E.SYS 2 R2 R13 4 1 0x{base + 0x100000:x} 4",
        f"0160 {HALF} 0 EXIT 0 0",
        f"0160 {REST} 0 EXIT 0 0",
    ]


def text(ctas: int = 2, prefix: str = "", **given: object) -> str:
    """A kernel's file."""
    parts = [header(**given)]  # type: ignore[arg-type]
    for cta in range(ctas):
        parts.append(f"#BEGIN_TB\n\nthread block = {cta},0,0\n")
        for number in range(2):
            lines = warp(number, cta)
            parts.append(f"\nwarp = {number}\ninsts = {len(lines)}\n" + "".join(f"{prefix}{line}\n" for line in lines))
        parts.append("\n#END_TB\n\n")
    return "".join(parts)


def written(folder: Path, kernel: str) -> Path:
    """A ``kernelslist.g`` beside a kernel's file."""
    (folder / "kernel-1.traceg").write_text(kernel, encoding="ascii")
    copies = "MemcpyHtoD,0x00007f5c00000000,4096\n"
    (folder / "kernelslist.g").write_text(f"{copies}kernel-1.traceg\n", encoding="ascii")
    return folder / "kernelslist.g"
