"""The micro-operations of the golden model: what PTX is lowered to, and what a warp executes.

One PTX instruction is one micro-operation (pseudo-instructions such as ``cvta`` become moves). A micro-operation goes
through three steps, each a loop over the lanes:

1. *fetch*: up to four sources, each a register, a register pair or an immediate, become 32- or 64-bit lane values,
   extended or flushed on the way (:class:`Fetch`);
2. *execute*: the function of its group (:class:`Group`) computes all lanes, active or not;
3. *write*: the result goes to the destination register (:class:`Write`) in the lanes of the mask.

Registers are 32 bits wide. A 64-bit value takes an aligned even/odd pair, low half in the even register. Predicates
are 32-bit lane masks in their own file; carry flags are predicates too.
"""

from __future__ import annotations

from enum import IntEnum

from lockstep.models.jit import pointer_to, record

LANES = 32
MAX_REGISTERS = 255  # per thread; 255 itself is RZ: reads zero, is not written
RZ = 255
MAX_PREDICATES = 63  # per thread; 63 itself is PT: reads all ones, is not written
PT = 63


class Group(IntEnum):
    """The function that executes a micro-operation: an index into the GPU's table of slots."""

    CONTROL = 0  # branches, barriers, exits: executed by the SM itself
    INT = 1  # 32 bits and narrower
    LONG = 2  # 64-bit integers
    FLOAT = 3  # f32
    DOUBLE = 4  # f64
    CONVERT = 5
    PREDICATE = 6  # comparisons, selections, predicate logic
    MEMORY = 7  # loads and stores of every space
    ATOMIC = 8
    TEXTURE = 9
    WARP = 10  # special registers, shuffles, votes, match
    PACKED = 11  # f16, bf16, f16x2, dp4a, video
    SYSTEM = 12  # functions that CUDA's system library has, and the host executes


class Fetch(IntEnum):
    """How a source becomes a lane value. Those up to ``BF16`` give 32 bits, the others 64."""

    NONE = 0
    WORD = 1  # the 32 bits as they are
    S16 = 2  # low 16 bits, sign-extended
    U16 = 3
    S8 = 4
    U8 = 5
    FTZ = 6  # f32, subnormals become zero of the same sign
    F16 = 7  # low 16 bits as IEEE half, widened to f32
    BF16 = 8
    PAIR = 9  # a 64-bit register pair
    S32 = 10  # 32 bits sign-extended to 64
    U32 = 11  # 32 bits zero-extended to 64
    S16_LONG = 12  # low 16 bits sign-extended to 64: conversions from narrow integers
    U16_LONG = 13
    S8_LONG = 14
    U8_LONG = 15


class Write(IntEnum):
    """How a result lands in its register."""

    NONE = 0
    WORD = 1
    HALF = 2  # low 16 bits, upper half zero
    PAIR = 3
    F16 = 4  # f32 result rounded (rounding field) to IEEE half, upper half zero
    BF16 = 5


class Kind(IntEnum):
    """What a source operand is."""

    NONE = 0
    REGISTER = 1
    IMMEDIATE = 2  # bits in ``imm``, as a register (pair) would hold them, before the fetch


class Flag(IntEnum):
    """Bits of ``flags``."""

    SAT = 1  # f32/f64/f16: clamp the result to [0, 1], NaN to 0
    FTZ = 2  # flush subnormal f32 results, and f16 sources and results
    NAN = 4  # min/max propagate NaN
    XORSIGN = 8  # min/max.xorsign.abs
    SIGNED = 16  # loads: sign-extend; also s32 texture results
    VOLATILE = 32  # bypasses the L1 (volatile, .cv, acquire, relaxed.gpu)
    UNIFORM = 64  # bra.uni, call.uni
    CACHE_GLOBAL = 128  # .cg: cached in the L2 only
    RELU = 256
    ADDED = 512  # by a pass of the compiler: counted apart from the program's own
    HINT = 1024  # shifts the priority of region-p scheduling; costs nothing
    SPILL = 2048  # spilled registers: a load may find what was never written, as a register's reader may
    CONSTANT = 4096  # an operand comes from the constant bank, whose value a launch puts into ``imm``
    CALL = 8192  # a branch that stands for a call, or for the return from one
    ACQUIRE = 16384  # an access that acquires ...
    RELEASE = 32768  # ... or releases: it stands beside fences where lines of the L1 have values of their own
    IN_CTA = 65536  # ... for the threads of its CTA alone


class Round(IntEnum):
    RN = 0
    RZ = 1
    RM = 2  # towards minus infinity
    RP = 3
    RNA = 4  # nearest, ties away


class Compare(IntEnum):
    """Bits over the outcomes of a comparison: less 1, equal 2, greater 4, unordered 8."""

    LT = 1
    EQ = 2
    LE = 3
    GT = 4
    NE = 5
    GE = 6
    NUM = 7
    NAN = 8
    LTU = 9
    EQU = 10
    LEU = 11
    GTU = 12
    NEU = 13
    GEU = 14


class Bool(IntEnum):
    """How ``setp`` and ``set`` combine the comparison with ``psrc``."""

    NONE = 0
    AND = 1
    OR = 2
    XOR = 3


class Category(IntEnum):
    """Instruction categories that a GPU description gives a pipeline, a latency and an initiation interval."""

    INTEGER = 0
    FLOAT = 1
    DOUBLE = 2
    SPECIAL = 3
    SPECIAL_DOUBLE = 4
    LOGICAL = 5
    CONTROL = 6
    SYNCHRONIZATION = 7
    COMPARE = 8
    CONVERSION = 9
    MISCELLANEOUS = 10
    VIDEO = 11
    MULTIPLY = 12
    SHIFT = 13
    DIVIDE_INTEGER = 14
    DIVIDE = 15
    DIVIDE_DOUBLE = 16
    SHARED = 17
    GLOBAL = 18
    LOCAL = 19
    CONST = 20
    PARAM = 21
    ATOMIC = 22
    TEXTURE = 23


class Space(IntEnum):
    GENERIC = 0
    GLOBAL = 1
    SHARED = 2
    LOCAL = 3
    CONST = 4
    PARAM = 5


# -------------------------------------------------------------------------------------------------- operations by group


class Control(IntEnum):
    NOP = 0
    BRANCH = 1  # guarded: lanes of the mask go to ``target``; reconverges at ``reconverge``
    EXIT = 2
    BARRIER = 3  # bar/barrier.sync: a = barrier (src 0), b = threads (src 1, none: all)
    ARRIVE = 4
    REDUCE = 5  # bar.red: ``sub`` 0 popc, 1 and, 2 or; predicate in psrc; result to dst or pdst
    FENCE = 6  # membar, fence: issues when earlier memory operations are performed; ``sub`` 1: not for a CTA alone
    WARP_SYNC = 7  # bar.warp.sync
    TRAP = 8  # ``sub`` 1: __assertfail
    INDEXED = 9  # brx.idx: a = index; ``target`` = first entry in the kernel's branch table, ``imm[3]`` = entries
    SLEEP = 10  # nanosleep: a no-op of the control category


class Int(IntEnum):
    """``a b c d`` are the fetched sources."""

    MOV = 0
    ADD = 1  # with psrc != PT a carry comes in; with pdst != PT the carry goes out
    SUB = 2  # likewise, the flag is the borrow
    MUL = 3
    MULHI_S = 4
    MULHI_U = 5
    MULHI16 = 6  # (a * b) >> 16 of sources that were extended from 16 bits
    MAD = 7  # a * b + c, low half; carry as ADD
    MADHI_S = 8  # high half of a * b, + c; carry as ADD
    MADHI_U = 9
    MULHI24 = 10  # bits 47..16 of the 24-bit product; sub = 1 signed
    MUL24 = 11  # bits 31..0 of the 24-bit product; sub = 1 signed
    MAD24 = 12
    SAD_S = 13
    SAD_U = 14
    DIV_S = 15  # by zero: all ones, as the hardware gives
    DIV_U = 16
    REM_S = 17
    REM_U = 18
    ABS = 19
    NEG = 20
    MIN_S = 21
    MIN_U = 22
    MAX_S = 23
    MAX_U = 24
    AND = 25
    OR = 26
    XOR = 27
    NOT = 28
    CNOT = 29
    SHL = 30  # shift amounts clamp at 32 (16-bit forms at 16, which the write takes care of)
    SHR_S = 31
    SHR_U = 32
    SHF_L_CLAMP = 33
    SHF_L_WRAP = 34
    SHF_R_CLAMP = 35
    SHF_R_WRAP = 36
    BFE_S = 37
    BFE_U = 38
    BFI = 39
    BREV = 40
    POPC = 41
    CLZ = 42
    BFIND_S = 43  # sub = 1: .shiftamt
    BFIND_U = 44
    PRMT = 45  # sub: 0 default, 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16
    LOP3 = 46  # sub = look-up table
    ADD_SAT = 47  # s32
    SUB_SAT = 48
    MADHI_SAT = 49
    SZEXT_S = 50  # sub = 1: wrap
    SZEXT_U = 51
    BMSK = 52  # sub = 1: wrap
    FNS = 53
    MADHI24 = 54


class Long(IntEnum):
    MOV = 0
    ADD = 1  # carries as in Int
    SUB = 2
    MUL = 3  # also mul.wide: its sources are extended by the fetch
    MULHI_S = 4
    MULHI_U = 5
    MAD = 6
    MADHI_S = 7
    MADHI_U = 8
    SAD_S = 9
    SAD_U = 10
    DIV_S = 11
    DIV_U = 12
    REM_S = 13
    REM_U = 14
    ABS = 15
    NEG = 16
    MIN_S = 17
    MIN_U = 18
    MAX_S = 19
    MAX_U = 20
    AND = 21
    OR = 22
    XOR = 23
    NOT = 24
    CNOT = 25
    SHL = 26  # amount: 32-bit source fetched with U32
    SHR_S = 27
    SHR_U = 28
    BFE_S = 29
    BFE_U = 30
    BFI = 31
    BREV = 32
    POPC = 33  # result 32 bits (Write.WORD takes the low word)
    CLZ = 34
    BFIND_S = 35
    BFIND_U = 36
    PACK = 37  # a low word, b high word (each fetched with U32)
    UNPACK = 38  # low word of a to dst, high word to v[0] (either RZ: dropped)
    PACK16 = 39  # a b c d: four 16-bit pieces (fetched with U32) -> 64
    UNPACK16 = 40  # four 16-bit pieces to dst, v[0], v[1], v[2]
    PACK16X2 = 41  # two 16-bit pieces -> 32 bits
    UNPACK16X2 = 42
    PACK8X4 = 43  # four bytes -> 32 bits
    UNPACK8X4 = 44


class Float(IntEnum):
    """f32. ``rnd`` gives the rounding, Flag.FTZ and Flag.SAT act on the result."""

    ADD = 0
    SUB = 1
    MUL = 2
    FMA = 3
    DIV = 4
    DIV_APPROX = 5
    DIV_FULL = 6
    RCP = 7
    RCP_APPROX = 8
    SQRT = 9
    SQRT_APPROX = 10
    RSQRT_APPROX = 11
    SIN = 12
    COS = 13
    LG2 = 14
    EX2 = 15
    TANH = 16
    MIN = 17  # with c (kind not NONE): three-input
    MAX = 18
    ABS = 19
    NEG = 20
    COPYSIGN = 21
    MOV = 22  # cvt between floats of 16 and 32 bits: NaN becomes canonical, .sat, .ftz and .relu apply


class Double(IntEnum):
    ADD = 0
    SUB = 1
    MUL = 2
    FMA = 3
    DIV = 4
    RCP = 5
    SQRT = 6
    RCP_APPROX = 7  # rcp.approx.ftz.f64
    RSQRT_APPROX = 8  # sub = 1: .ftz, on the upper word only
    MIN = 9
    MAX = 10
    ABS = 11
    NEG = 12
    COPYSIGN = 13
    MOV = 14


class Integer(IntEnum):
    """Integer types as conversions name them in ``sub``."""

    U8 = 0
    S8 = 1
    U16 = 2
    S16 = 3
    U32 = 4
    S32 = 5
    U64 = 6
    S64 = 7


class Convert(IntEnum):
    """``sub`` is the integer type (:class:`Integer`). Results of 8 to 32 bits are 32-bit lanes, others 64-bit lanes."""

    F32_TO_INT = 0  # rounds by rnd, clamps to the type, NaN gives 0
    F64_TO_INT = 1
    INT_TO_F32 = 2  # source lanes: 64 bits, extended by the fetch; sub = U64: unsigned, otherwise signed
    INT_TO_F64 = 3
    F32_TO_F64 = 4
    F64_TO_F32 = 5
    ROUND_F32 = 6  # cvt.rni/rzi/rmi/rpi.f32.f32
    ROUND_F64 = 7
    CLAMP = 8  # cvt.sat between integers: source lanes are 64 bits, signed unless flags lack SIGNED; sub: the target


class Predicate(IntEnum):
    """``sub`` of the comparisons: a :class:`Compare` in the low 4 bits, a :class:`Bool` above them."""

    SETP_S32 = 0  # result to pdst, and with pdst2 the comparison's complement, both combined with psrc
    SETP_U32 = 1
    SETP_S64 = 2
    SETP_U64 = 3
    SETP_F32 = 4
    SETP_F64 = 5
    SET_S32 = 6  # result 0xffffffff or 0; with Flag.SAT 1.0f or 0.0f
    SET_U32 = 7
    SET_S64 = 8
    SET_U64 = 9
    SET_F32 = 10
    SET_F64 = 11
    SELP = 12  # psrc ? a : b
    SELP64 = 13
    SLCT_S32 = 14  # c >= 0 ? a : b
    SLCT_F32 = 15
    SLCT64_S32 = 16
    SLCT64_F32 = 17
    MOV = 18  # predicate logic: psrc, psrc2 -> pdst
    AND = 19
    OR = 20
    XOR = 21
    NOT = 22
    TESTP_F32 = 23  # sub: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal
    TESTP_F64 = 24
    LOP3 = 25  # lop3.BoolOp: sub look-up table; pdst = (d != 0) BoolOp psrc (BoolOp in imm[3])
    FROM = 26  # predicate to register, 1 or 0
    ISSPACE = 27  # sub: Space; a = generic address


class Memory(IntEnum):
    """Address = a (Fetch.PAIR or Fetch.U32; an absent source is 0) + ``offset``. Data registers in ``v``."""

    LOAD = 0
    STORE = 1
    PREFETCH = 2


class Atomic(IntEnum):
    """Old value to v[0] (RZ: a reduction); operands in v[2] (b) and v[4] (c), each the first of its registers."""

    ADD = 0
    EXCH = 1
    MIN_S = 2
    MIN_U = 3
    MAX_S = 4
    MAX_U = 5
    AND = 6
    OR = 7
    XOR = 8
    INC = 9
    DEC = 10
    CAS = 11
    ADD_F32 = 12
    ADD_F64 = 13
    ADD_F16X2 = 14
    ADD_BF16X2 = 15
    ADD_F16 = 16


class Texture(IntEnum):
    """a = handle (Fetch.PAIR); coordinates from v[4] on; results in v[0..3]. ``sub``: 0 s32, 1 f32 coordinates."""

    TEX_1D = 0
    TEX_2D = 1
    TEX_3D = 2
    QUERY = 3  # txq/suq; sub: 0 width, 1 height, 2 depth
    SURFACE_LOAD = 4  # suld.b: ``sub`` dimensions - 1; byte coordinate x in v[4]
    SURFACE_STORE = 5


LAYERED, CUBE = 1, 2
"""Bits of a fetch's ``rnd``: its first coordinate is a layer; it is TEX_2D, and the others are a direction in 3-D."""
IN_LAYERS = 4
"""The bit of a surface access's ``rnd`` that says that its first coordinate is a layer."""


class Warp(IntEnum):
    SPECIAL = 0  # sub: Special; result to dst (Write.WORD or PAIR)
    SHFL_UP = 1  # a value, b lane, c clamp/segment mask, d member mask; pdst: in range
    SHFL_DOWN = 2
    SHFL_BFLY = 3
    SHFL_IDX = 4
    VOTE_ALL = 5  # psrc -> pdst; a = member mask (absent: all active)
    VOTE_ANY = 6
    VOTE_UNI = 7
    BALLOT = 8  # psrc -> dst
    MATCH_ANY = 9  # a 32-bit value, b member mask -> dst
    MATCH_ALL = 10  # -> dst, pdst
    MATCH_ANY64 = 11
    MATCH_ALL64 = 12
    ACTIVEMASK = 13
    REDUX_ADD = 14  # redux.sync: a value, b member mask
    REDUX_MIN_S = 15
    REDUX_MIN_U = 16
    REDUX_MAX_S = 17
    REDUX_MAX_U = 18
    REDUX_AND = 19
    REDUX_OR = 20
    REDUX_XOR = 21
    ELECT = 22  # elect.sync: a member mask -> dst, pdst


class Special(IntEnum):
    TID_X = 0
    TID_Y = 1
    TID_Z = 2
    NTID_X = 3
    NTID_Y = 4
    NTID_Z = 5
    CTAID_X = 6
    CTAID_Y = 7
    CTAID_Z = 8
    NCTAID_X = 9
    NCTAID_Y = 10
    NCTAID_Z = 11
    LANEID = 12
    WARPID = 13
    NWARPID = 14
    SMID = 15
    NSMID = 16
    GRIDID = 17
    LANEMASK_EQ = 18
    LANEMASK_LT = 19
    LANEMASK_LE = 20
    LANEMASK_GT = 21
    LANEMASK_GE = 22
    CLOCK = 23
    CLOCK_HI = 24
    CLOCK64 = 25
    GLOBALTIMER = 26
    GLOBALTIMER_HI = 27
    DYNAMIC_SMEM_SIZE = 28
    TOTAL_SMEM_SIZE = 29
    ZERO = 30  # %envreg and others that read 0 here


class Packed(IntEnum):
    """f16x2/bf16x2 in 32-bit lanes; scalar f16 and bf16 go through ``FLOAT`` with Fetch.F16 except FMA."""

    ADD_F16X2 = 0
    SUB_F16X2 = 1
    MUL_F16X2 = 2
    FMA_F16X2 = 3
    MIN_F16X2 = 4
    MAX_F16X2 = 5
    NEG_F16X2 = 6
    ABS_F16X2 = 7
    FMA_F16 = 8
    FMA_BF16X2 = 9
    FMA_BF16 = 10
    DP4A = 11  # sub: bit 0 a signed, bit 1 b signed
    DP2A_LO = 12
    DP2A_HI = 13
    VABSDIFF4 = 14  # sub bit 0 signed, bit 1 .add (c added); likewise the next ones
    VADD4 = 15
    VSUB4 = 16
    VMIN4 = 17
    VMAX4 = 18
    CVT_F16X2 = 19  # two f32 (a high, b low) -> f16x2
    CVT_BF16X2 = 20
    ADD_BF16X2 = 21
    SUB_BF16X2 = 22
    MUL_BF16X2 = 23
    MIN_BF16X2 = 24
    MAX_BF16X2 = 25
    NEG_BF16X2 = 26
    ABS_BF16X2 = 27
    SET_F16X2 = 28  # sub as Predicate; per half 0xffff or 0 (Flag.SAT: 1.0)
    EX2_F16X2 = 29
    TANH_F16X2 = 30


class System(IntEnum):
    """Sources and result are as :class:`Fetch` and :class:`Write` have them; pointers are generic addresses."""

    PRINTF = 0  # a = format, b = arguments, one after the other, each aligned to its size -> number of them


# One decoded instruction. The order puts what issue reads into the first cache line.
INSTRUCTION = record(
    [
        ("need", "u8", (4,)),  # registers read or written: the scoreboard's mask
        ("pneed", "u8"),  # predicates read or written
        ("group", "u1"),
        ("op", "u1"),
        ("category", "u1"),
        ("guard", "u1"),  # predicate index, PT when unguarded
        ("guard_not", "u1"),
        ("reads", "u1"),  # number of entries in ``read``
        ("sub", "i2"),
        ("flags", "i4"),
        ("target", "i4"),  # branch target
        ("reconverge", "i4"),  # immediate post-dominator; the kernel's end when there is none
        ("line", "i4"),  # in the PTX file
        ("writes", "u8", (4,)),  # registers written
        ("pwrites", "u8"),
        ("kind", "u1", (4,)),  # of sources a b c d
        ("fetch", "u1", (4,)),
        ("src", "u1", (4,)),
        ("dst", "u1"),
        ("write", "u1"),
        ("rnd", "u1"),
        ("pdst", "u1"),
        ("pdst2", "u1"),
        ("psrc", "u1"),
        ("psrc_not", "u1"),
        ("psrc2", "u1"),
        ("psrc2_not", "u1"),
        ("space", "u1"),
        ("bytes", "u1"),  # of one element of a memory access
        ("vec", "u1"),  # elements per lane; 1, 2, 4 or 8
        ("v", "u1", (8,)),  # data registers: element e of 64 bits takes the pair from v[e]
        ("read", "u1", (12,)),  # registers read, for the banks
        ("data", "u1"),  # width in bytes of the registers in ``v``: 2, 4 or 8
        ("registers", "u1"),  # read, and written, of 32 bits
        ("offset", "i8"),  # of a memory access; with Flag.CONSTANT the device address of that operand, 4 or 8 bytes
        ("imm", "i8", (4,)),
    ]
)


class Fault(IntEnum):
    """Why execution stopped; the text for users is in ``sim/errors.py``."""

    NONE = 0
    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    READ_ONLY = 3  # a store to const or param space
    BAD_SHARED_ATOMIC = 4
    TRAP = 5
    ASSERT = 6
    BARRIER_DEADLOCK = 7
    NO_PROGRESS = 8
    STACK_OVERFLOW = 9
    BAD_BARRIER = 10
    BAD_TEXTURE = 11
    BAD_BRANCH_INDEX = 12
    UNWRITTEN = 13  # a read of a byte that nobody has written, where marks are kept (``written``)
    OFF_TRACE = 14  # a warp whose trace is replayed is not where that says
    # Faults of the model itself, or of hardware in its place; from here on.
    MEMORY_ORDER = 100  # the L1 accepted a warp's accesses out of order
    LANES = 101  # a lane's access was sent or answered twice
    DIFFERENCE = 102  # co-simulation: hardware and model differ
    NO_ROOM = 103  # a CTA was placed in an SM without room for it
    LINE = 104  # a line was sent for a lane whose address lies elsewhere
    WORD = 105  # a lane was given another word than it asked for
    KIND = 106  # a load, store or atomic was sent as something else
    BYTES = 107  # a lane's bytes were not in the line that was sent for it, or others were
    AHEAD = 108  # an SM was stepped ahead of the memory system, and had to know of it


# Device addresses. Everything lies below 4 GiB, so a physical address is 32 bits.
PARAM_WINDOW = 0x0080_0000
PARAM_BYTES = 0x0040_0000  # of it for each grid that runs
SHARED_WINDOW = 0x0100_0000
LOCAL_WINDOW = 0x0200_0000
GLOBAL_BASE = 0x1000_0000
LOCAL_PHYSICAL = 0xC000_0000  # where local memory lies for caches and DRAM
CODE_BASE = 0xF000_0000  # where kernels lie for caches and DRAM
LOCAL_BYTES = CODE_BASE - LOCAL_PHYSICAL
CODE_END = 1 << 32
REGISTERS_PHYSICAL = CODE_END  # where registers lie that leave an SM
CONTEXTS_PHYSICAL = CODE_END + (1 << 31)  # where contexts of CTAs lie that leave an SM
UNCACHED_PHYSICAL = CODE_END + (1 << 32)  # from here on, the L2 keeps no lines; contexts, too
CONTEXTS_BYTES = 1 << 30  # of each grid
GRANULE = 256  # allocations start on a multiple of it
POISON = 0xCB  # every byte of memory that nobody has written

# What the executing functions see: the lanes of the warp that issues. One per GPU, filled at each issue.
# A grid that runs.
GRID = record(
    [
        ("code", "i8"),  # host address of the instructions ...
        ("code_address", "i8"),  # ... and their device address
        ("length", "i8"),
        ("words_to", "i8"),  # host address, i4: metadata words up to each instruction, from the begin; 0: none
        ("branch_table", "i8"),  # host address, i4
        ("number", "i8"),  # of the launch on this GPU
        ("block", "i8", (3,)),
        ("size", "i8", (3,)),  # CTAs
        ("total", "i8"),  # CTAs ...
        ("left", "i8"),  # ... of which these have not started yet; 0: the grid is not there, or all of it has
        ("threads", "i8"),  # per CTA
        ("warps", "i8"),  # per CTA
        ("allocated_registers", "i8"),  # per CTA ...
        ("allocated_shared", "i8"),  # ... and bytes of the scratchpad
        ("per_sm", "i8"),  # resident CTAs ...
        ("pairs", "i8"),  # ... of which the last ones are these pairs: one CTA of each, then the other of each; ...
        ("own_registers", "i8"),  # ... registers of a thread that a pair does not share ...
        ("own_shared", "i8"),  # ... and bytes of a CTA's scratchpad
        ("registers", "i8"),  # per thread
        ("shared_bytes", "i8"),  # of a CTA ...
        ("shared_stride", "i8"),  # ... with the padding between CTAs
        ("dynamic_bytes", "i8"),  # of them, those that the launch adds to the kernel's
        ("local_bytes", "i8"),  # per thread
        ("param", "i8"),  # host address
        ("param_bytes", "i8"),
        ("param_offset", "i8"),  # from PARAM_WINDOW to their device address
        # Where what it keeps in the SMs lies in host memory (``models/storage.py``).
        ("register_file", "i8"),  # u32[sm][slot][register][lane]
        ("pair_registers", "i8"),  # of pairs of warps: u32[sm][lock][register][lane]
        ("scratchpad", "i8"),  # u8[sm][CTA slot][shared_stride]
        ("scratchpads", "i8"),  # CTA slots of an SM
        ("shared_marks", "i8"),  # bytes from a byte of it to its mark (``execution.written``); 0: none is kept
        ("pair_scratchpad", "i8"),  # of pairs of CTAs
        ("pair_marks", "i8"),
        ("local", "i8"),
        ("local_marks", "i8"),
        ("local_physical", "i8"),  # device address of the same for caches
        ("local_rows", "i8"),  # of an SM: a warp's each, by slot
        ("store", "i8"),  # CTAs that have left and are to be resumed, a ring, ...
        ("store_entries", "i8"),
        ("store_bytes", "i8"),  # ... each of this size
        ("store_first", "i8"),  # counts those that have been resumed
        ("stored", "i8"),
        # Where their contexts are moved instead (``core.context``).
        ("contexts", "i8"),  # u8[sm][home][context_stride]: those that wait
        ("context_bytes", "i8"),  # the longest ...
        ("context_stride", "i8"),  # ... and the marks of its scratchpad
        ("context_region", "i8"),  # from the first context's device address to that of the grid's first
        ("staging", "i8"),  # u8[sm][context_bytes]: the one that is on its way
        ("predicates", "i8"),  # per thread, up to the last that the kernel writes
    ]
)
at_grid = pointer_to(GRID)

CONTEXT = record(
    [
        ("lanes", "i8"),  # 32; a field, so that loops over it vectorise before they unroll
        ("mask", "i8"),  # lanes that execute: active and guard
        ("active", "i8"),  # lanes on top of the reconvergence stack
        ("regs", "i8"),  # host address of the warp's registers: u32[register][lane] ...
        ("own_registers", "i8"),  # ... which are its own below this number ...
        ("pair_regs", "i8"),  # ... and from there on those at this address, as if all were there
        ("preds", "i8"),  # host address of the warp's predicates: u32[MAX_PREDICATES + 1]
        ("a", "u8", (LANES,)),  # fetched sources (32-bit lanes use the first half) ...
        ("b", "u8", (LANES,)),
        ("c", "u8", (LANES,)),
        ("d", "u8", (LANES,)),
        ("r", "u8", (LANES,)),  # ... and the result before the write
        ("ctaid", "i4", (3,)),
        ("warp", "i4"),  # in its CTA
        ("warps", "i4"),  # warp slots per SM
        ("sm", "i4"),
        ("sms", "i4"),
        ("slot", "i4"),  # warp slot
        ("present", "i8"),  # lanes that exist in this warp
        ("now", "i8"),  # core cycles
        ("nanoseconds", "i8"),
        ("grid", "i8"),  # host address of the grid's record
        ("memory", "i8"),  # host address of the global arena; device address GLOBAL_BASE is its first byte
        ("memory_bytes", "i8"),
        ("late", "i8"),  # 1: global memory is accessed later, where lines have values (``memory.values``)
        ("valid", "i8"),  # host address of i2[memory_bytes / GRANULE]: valid bytes at the granule's start (0..256)
        ("shared", "i8"),  # host address of the CTA's scratchpad ...
        ("own_shared", "i8"),  # ... of which the first bytes, this many, are its own ...
        ("pair_shared", "i8"),  # ... and from there on those at this address, as if all were there
        ("local", "i8"),  # host address of the warp's local memory: u32[word][lane]
        ("local_physical", "i8"),  # device address of the same for caches
        ("memory_marks", "i8"),  # bytes from a byte to its mark (``written``), in each of these memories; 0: none kept
        ("shared_marks", "i8"),
        ("pair_marks", "i8"),
        ("local_marks", "i8"),
        ("host", "i8"),  # address of the host's slot for Group.SYSTEM
        ("textures", "i8"),  # host address of TEXTURE records; handle h is record h - 1
        ("texture_count", "i8"),
        ("probe", "i8"),  # find out where an access would touch, and perform nothing
        ("trace", "i8"),  # host address for who records or replays what warps execute (``models/traces``)
        ("fault", "i8"),
        ("fault_lane", "i8"),
        ("fault_address", "i8"),
        ("touched", "i8"),  # what the LSU gets: lanes with an access ...
        ("touched_shared", "i8"),  # ... those of them in the scratchpad (generic accesses may mix)
        ("address", "i8", (LANES,)),  # device addresses; physical ones for local; scratchpad offsets for shared
    ]
)

# A texture or surface. Texels lie in global memory, row by row.
TEXTURE = record(
    [
        ("address", "i8"),  # device address of texel 0
        ("width", "i4"),
        ("height", "i4"),
        ("depth", "i4"),
        ("dimensions", "i4"),
        ("channels", "i4"),
        ("bytes", "i4"),  # per channel
        ("format", "i4"),  # 0 unsigned, 1 signed, 2 float
        ("pitch", "i4"),  # bytes per row
        ("linear", "i4"),  # filter: 0 point, 1 linear
        ("wrap", "i4"),  # address mode: 0 clamp, 1 wrap, 2 mirror, 3 border
        ("normalized", "i4"),  # coordinates in [0, 1)
        ("as_float", "i4"),  # integer texels read as [0, 1] or [-1, 1]
    ]
)
