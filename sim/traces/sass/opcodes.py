"""What Lockstep takes SASS opcodes for, per architecture.

The opcodes of each architecture are those of NVIDIA's instruction set reference (CUDA Binary Utilities, chapter 4):
4.2 Volta, 4.3 Turing and 4.4 Ampere and Ada of the edition for CUDA 12.9, 4.3 Hopper of that for 13. Categories are
those of Lockstep's descriptions. Where these have none for what an opcode does, it has the cost of another category,
and a note in :data:`COSTS` that is shown with every result.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.models.execution.isa import Category, Control, Group, Memory, Space
from lockstep.sim.errors import UsageError

__all__ = ["ARCHITECTURES", "COSTS", "Meaning", "architecture", "meaning"]

ARCHITECTURES = {
    "Volta": (70, 72), "Turing": (75,), "Ampere and Ada": (80, 86, 87, 89), "Hopper": (90,),
}  # fmt: skip
"""By the tracer's "binary version"."""
ORDER = tuple(ARCHITECTURES)


@dataclass(frozen=True)
class Meaning:
    """What an opcode is to the model; ``pair``: it computes with 64 bits."""

    category: Category
    group: Group = Group.INT
    op: int = 0
    space: Space = Space.GENERIC
    pair: bool = False


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_COMPUTE: dict[Category, str] = {
    Category.FLOAT: "FADD FADD32I FFMA FFMA32I FMUL FMUL32I FSWZADD HADD2 HADD2_32I HFMA2 HFMA2_32I HMUL2 HMUL2_32I",
    Category.COMPARE: "FCHK FMNMX FSEL FSET FSETP HSET2 HSETP2 IMNMX ISETP",
    Category.SPECIAL: "MUFU",
    Category.DOUBLE: "DADD DFMA DMUL DSETP",
    Category.INTEGER: "IABS IADD IADD3 IADD32I LEA VABSDIFF VABSDIFF4",
    Category.MULTIPLY: "IDP IDP4A IMAD IMUL IMUL32I ISCADD ISCADD32I",
    Category.SHIFT: "BMSK BREV FLO POPC SHF SHL SHR SGXT",
    Category.LOGICAL: "LOP LOP3 LOP32I PLOP3 PSETP",
    Category.CONVERSION: "F2F F2I I2F I2I I2IP FRND",
    Category.MISCELLANEOUS: "MOV MOV32I PRMT SEL SHFL P2R R2P MATCH QSPC B2R R2B CS2R S2R LEPC VOTE NOP PMTRIG "
    "GETLMEMBASE SETLMEMBASE SETCTAID CSMTEST DEPBAR CCTL CCTLL CCTLT ERRBAR BMOV",
}  # fmt: skip
_CONTROL: dict[Control, str] = {
    Control.BRANCH: "BRA BRX CALL RET JMP JMX BREAK RTT BPT",
    Control.NOP: "BSSY BSYNC WARPSYNC YIELD RPCMOV KILL",
    Control.SLEEP: "NANOSLEEP",
    Control.EXIT: "EXIT",
}
_UNIFORM = "R2UR S2UR UBMSK UBREV UCLEA UFLO UIADD3 UIADD3.64 UIMAD UISETP ULDC ULEA ULOP ULOP3 ULOP32I UMOV UP2UR " \
    "UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF USHL USHR VOTEU"  # fmt: skip

_SINCE: dict[str, str] = {
    "Turing": f"{_UNIFORM} BRXU JMXU BMMA IMMA MOVM LDSM",
    "Ampere and Ada": "DMMA F2FP F2IP I2FP HMNMX2 REDUX LDGSTS LDGDEPBAR UF2FP ARRIVES GENMETADATA SPMETADATA",
    "Hopper": "VIADD VIADDMNMX VIMNMX VIMNMX3 VHMNMX FENCE ELECT ENDCOLLECTIVE WARPGROUP HGMMA IGMMA QGMMA BGMMA "
    "CGAERRBAR UCGABAR_ARV UCGABAR_WAIT USETMAXREG ACQBULK",
}
"""Opcodes that came later than Volta."""

_TENSOR = "HMMA IMMA BMMA DMMA HGMMA IGMMA QGMMA BGMMA"
_TEXTURES = "TEX TLD TLD4 TMML TXD TXQ SUATOM SULD SUQUERY SURED SUST"

_TENSOR_COST = "tensor core, which descriptions lack: charged as `special`, one instruction of the SFU"
_UNIFORM_COST = "uniform datapath, which descriptions lack: charged as `integer`, its registers not followed"
COSTS: dict[str, str] = {
    **dict.fromkeys(_words(_TENSOR), _TENSOR_COST),
    **dict.fromkeys(_words(_UNIFORM), _UNIFORM_COST),
    "DMMA": "tensor core, which descriptions lack: charged as `special_double`",
    "LDC": "constant load without an address in the trace: charged as `miscellaneous`, constant cache not followed",
    "LDSM": "matrix load: charged as a load of the scratchpad",
    "LDGSTS": "copy into the scratchpad: charged as a load, its store into the scratchpad not followed",
    "MOVM": "matrix transposition: charged as `miscellaneous`",
    "REDUX": "uniform reduction: charged as `integer`",
    "BSSY": "convergence barrier: charged as `control`; where warps go is the trace's",
    "BSYNC": "convergence barrier: charged as `control`; where warps go is the trace's",
    **dict.fromkeys(_words(_TEXTURES), "texture or surface without an address in the trace: charged as `special`"),
    **dict.fromkeys(_words("WARPGROUP ARRIVES UCGABAR_ARV UCGABAR_WAIT USETMAXREG ELECT"),
                    "synchronisation that descriptions lack: charged as `miscellaneous`, waits for nobody"),
}  # fmt: skip
"""What opcodes cost for which descriptions have no category of their own."""


def _table() -> dict[str, Meaning]:
    found = {name: Meaning(category, pair=category is Category.DOUBLE)
             for category, names in _COMPUTE.items() for name in _words(names)}  # fmt: skip
    for op, names in _CONTROL.items():
        found |= dict.fromkeys(_words(names), Meaning(Category.CONTROL, Group.CONTROL, op))
    found |= dict.fromkeys(_words(_UNIFORM), Meaning(Category.INTEGER))
    found |= dict.fromkeys(_words(f"{_TENSOR} {_TEXTURES}"), Meaning(Category.SPECIAL))
    found["DMMA"] = Meaning(Category.SPECIAL_DOUBLE)
    found |= dict.fromkeys(_words("BRXU JMXU"), found["BRX"])
    others = {
        Category.MISCELLANEOUS: "LDC MOVM LDGDEPBAR ARRIVES GENMETADATA SPMETADATA ELECT ENDCOLLECTIVE WARPGROUP "
        "CGAERRBAR UCGABAR_ARV UCGABAR_WAIT USETMAXREG ACQBULK",
        Category.CONVERSION: "F2FP F2IP I2FP UF2FP", Category.COMPARE: "HMNMX2 VIMNMX VIMNMX3 VHMNMX",
        Category.INTEGER: "REDUX VIADD VIADDMNMX",
    }  # fmt: skip
    for category, names in others.items():
        found |= dict.fromkeys(_words(names), Meaning(category))
    load, store = int(Memory.LOAD), int(Memory.STORE)
    for name, category, space in (
        ("", Category.GLOBAL, Space.GENERIC), ("G", Category.GLOBAL, Space.GLOBAL),
        ("L", Category.LOCAL, Space.LOCAL), ("S", Category.SHARED, Space.SHARED),
    ):  # fmt: skip
        found[f"LD{name}"] = Meaning(category, Group.MEMORY, load, space)
        found[f"ST{name}"] = Meaning(category, Group.MEMORY, store, space)
    found["LDSM"] = found["LDS"]
    found["LDGSTS"] = found["LDG"]
    for name, space in (
        ("ATOM", Space.GENERIC),
        ("ATOMG", Space.GLOBAL),
        ("ATOMS", Space.SHARED),
        ("RED", Space.GLOBAL),
    ):
        found[name] = Meaning(Category.ATOMIC, Group.ATOMIC, 0, space)
    found["BAR"] = Meaning(Category.SYNCHRONIZATION, Group.CONTROL, Control.BARRIER)
    found |= dict.fromkeys(("MEMBAR", "FENCE"), Meaning(Category.SYNCHRONIZATION, Group.CONTROL, Control.FENCE))
    return found


MEANINGS = _table()
_FIRST = {name: since for since, names in _SINCE.items() for name in _words(names)}


def architecture(version: int) -> str:
    """The architecture of a binary version. Raises :class:`UsageError`."""
    for name, versions in ARCHITECTURES.items():
        if version in versions:
            return name
    known = ", ".join(str(each) for versions in ARCHITECTURES.values() for each in versions)
    raise UsageError(f"binary version {version}: no architecture that Lockstep knows; known are {known}")


def meaning(opcode: str, of: str) -> Meaning | None:
    """What an opcode is on an architecture, without its modifiers; None: not known."""
    name = opcode.partition(".")[0]
    if name == "BAR" and opcode.startswith("BAR.ARV"):
        return None  # arrives for others to wait: which barrier, and for how many, is not in the trace
    if ORDER.index(_FIRST.get(name, ORDER[0])) > ORDER.index(of):
        return None
    return MEANINGS.get(name)
