"""Texture fetches, surface accesses and queries (:class:`isa.Texture`), after the texture appendix of the CUDA guide.

A coordinate ``x`` (times the size when normalized) selects texel ``floor(x)`` with the point filter. The linear filter
takes texels ``i = floor(x - 0.5)`` and ``i + 1`` with weights ``1 - w`` and ``w``, where ``w`` is the fraction of
``x - 0.5`` in fixed point with 8 fractional bits (rounded to nearest, so that 1 can occur), in each dimension. The
weighted sum is exact enough in f64 to be rounded once, to f32. Only texels that read as f32 are filtered.

Address modes act on texel indices: clamp to the edge, wrap around, mirror at the edges, or zero outside (border).
Wrap and mirror need normalized coordinates, and clamp otherwise. Integer coordinates are texel indices, not filtered.
A layered fetch has the layer, clamped, before its coordinates; the layers of a 1-D texture are the rows of a 2-D one,
those of a 2-D texture the planes of a 3-D one. A cube's six faces are planes, too, six for each of its layers: the
longest component of a direction chooses the face (of equal ones x, then y), and the other two, divided by it, the place
in that face, beyond whose edges no other one is read. Channels that a texture lacks read as zero. A texel of integers
that reads as float is in [0, 1] or [-1, 1]. Surfaces have layers like textures.
"""

from __future__ import annotations

from lockstep.models.execution.access import load_elements, store_elements
from lockstep.models.execution.isa import (
    CONTEXT,
    CUBE,
    GLOBAL_BASE,
    IN_LAYERS,
    INSTRUCTION,
    LANES,
    LAYERED,
    RZ,
    TEXTURE,
    Fault,
    Texture,
)
from lockstep.models.execution.numerics import NAN_F32, half_to_single
from lockstep.models.execution.operands import fetch, register_address, scratch_address
from lockstep.models.execution.space import GLOBAL
from lockstep.models.jit import (
    bits_f32,
    f32,
    f32_bits,
    f64,
    i64,
    inline,
    jit,
    pointer_to,
    slot,
    u32,
    words_f64,
    words_i64,
    words_u32,
)

COORDINATE, RESULTS = 4, 4  # first index of the coordinates in ``v``; number of results
CLAMP, WRAP, MIRROR, BORDER = range(4)
UNSIGNED, SIGNED, FLOAT = range(3)
TRAP, TO_EDGE, ZERO = range(3)  # what a surface access outside does: ``rnd``, without IN_LAYERS
FACES = 6  # of a cube

TEX_3D, QUERY, SURFACE_LOAD = int(Texture.TEX_3D), int(Texture.QUERY), int(Texture.SURFACE_LOAD)
at_context, at_instruction, at_texture = pointer_to(CONTEXT), pointer_to(INSTRUCTION), pointer_to(TEXTURE)
_TEXTURE_BYTES = TEXTURE.itemsize
_FAR = 2.0**30  # beyond any texture; keeps conversions to integers in range


@inline
def _fault(x, lane, address, fault):
    x.fault = fault
    x.fault_lane = lane
    x.fault_address = address
    return i64(fault)


@inline
def _texture(x, handle):
    """The texture of a handle; one that was freed has texels of 0 bytes."""
    return at_texture(x.textures + (handle - 1) * _TEXTURE_BYTES)


@inline
def _register_word(x, register, lane):
    return i64(words_u32(register_address(x, register), LANES)[lane]) if register != RZ else i64(0)


@inline
def _coordinate(x, instruction, which, lane):
    """Bits of a coordinate."""
    return _register_word(x, i64(instruction.v[COORDINATE + which]), lane)


@inline
def _signed(word):
    return (word ^ (1 << 31)) - (1 << 31)


@inline
def _size(texture, dimension):
    return i64(texture.width if dimension == 0 else (texture.height if dimension == 1 else texture.depth))


@jit
def _position(word, as_float, normalized, linear, size):
    """A coordinate as texel index and, for the linear filter, weight of the next texel in 1/256."""
    if not as_float:
        return i64(_signed(word)), i64(0)
    value = bits_f32(u32(word))
    if normalized:
        value = f32(value * f32(size))
    if linear:
        value = f32(value - f32(0.5))
    if not (value >= f32(-_FAR)):  # NaN counts as zero
        value = f32(-_FAR) if value < f32(0) else f32(0)
    value = f32(min(value, f32(_FAR)))
    index = i64(value)
    if f32(index) > value:
        index -= 1
    weight = i64(f32(f32(f32(value - f32(index)) * f32(256)) + f32(0.5))) if linear else i64(0)
    return index, weight


@inline
def _inside(index, size, mode):
    """The texel that an index stands for, or -1 outside a border."""
    if mode == WRAP:
        return index % size
    if mode == MIRROR:
        place = index % (2 * size)
        return min(place, 2 * size - 1 - place)
    if mode == BORDER and (index < 0 or index >= size):
        return -1
    return min(max(index, 0), size - 1)


@inline
def _texel_offset(texture, i, j, k):
    """Bytes from texel 0."""
    row = k * i64(texture.height) + j
    return row * i64(texture.pitch) + i * i64(texture.channels) * i64(texture.bytes)


@jit
def _channel(x, texture, offset, channel):
    """A channel of the texel at a device address offset, as the bits of a 32-bit register."""
    bytes_ = i64(texture.bytes)
    place = i64(texture.address) - GLOBAL_BASE + offset + channel * bytes_
    word = i64(words_u32(x.memory, x.memory_bytes >> 2)[place >> 2])
    bits = 8 * bytes_
    raw = (word >> ((place & 3) << 3)) & ((1 << bits) - 1)
    if texture.format == FLOAT:
        return raw if bytes_ == 4 else half_to_single(raw)
    top = (1 << bits) - 1
    if texture.format == SIGNED:
        sign = 1 << (bits - 1)
        raw = (raw ^ sign) - sign
        top >>= 1
    if texture.as_float:
        return i64(f32_bits(f32(max(f64(raw) / f64(top), f64(-1.0)))))
    return raw & 0xFFFF_FFFF


@jit
def _on_cube(a, b, c):
    """The face that a direction, bits of f32, points at, and the bits of the coordinates there, from 0 to 1."""
    x, y, z = bits_f32(u32(a)), bits_f32(u32(b)), bits_f32(u32(c))
    size_x, size_y, size_z = abs(x), abs(y), abs(z)
    if size_x >= size_y and size_x >= size_z:
        face, longest, s, t = (i64(0), size_x, -z, -y) if x >= f32(0) else (i64(1), size_x, z, -y)
    elif size_y >= size_z:
        face, longest, s, t = (i64(2), size_y, x, z) if y >= f32(0) else (i64(3), size_y, x, -z)
    else:
        face, longest, s, t = (i64(4), size_z, x, -y) if z >= f32(0) else (i64(5), size_z, -x, -y)
    half = f32(0.5)
    if longest == f32(0):
        return face, i64(f32_bits(half)), i64(f32_bits(half))
    first, second = f32(f32(f32(s / longest) + f32(1)) * half), f32(f32(f32(t / longest) + f32(1)) * half)
    return face, i64(f32_bits(first)), i64(f32_bits(second))


@jit
def _fetch_lane(x, instruction, texture, dimensions, lane):
    """Fetch for one lane; returns the address of its (base) texel. ``rnd``: :data:`LAYERED`, :data:`CUBE`."""
    scale = f64(1.0 / (1 << 8 * dimensions))  # of the weights
    as_float = instruction.sub == 1
    normalized = as_float and texture.normalized != 0
    linear = as_float and texture.linear != 0 and (texture.as_float != 0 or texture.format == FLOAT)
    mode = i64(texture.wrap)
    if not normalized and (mode == WRAP or mode == MIRROR):
        mode = i64(CLAMP)
    size_x, size_y, size_z = _size(texture, 0), _size(texture, 1), _size(texture, 2)
    first = i64(instruction.rnd) & LAYERED
    cube = i64(instruction.rnd) & CUBE != 0
    planes = i64(FACES) if cube else i64(1)  # of a layer
    layer_y, layer_z = i64(0), i64(0)
    if first != 0:
        layer = min(_coordinate(x, instruction, 0, lane), _size(texture, dimensions) // planes - 1)
        layer_y, layer_z = (layer, i64(0)) if dimensions == 1 else (i64(0), layer * planes)
    column = _coordinate(x, instruction, first, lane)
    row = _coordinate(x, instruction, first + 1, lane) if dimensions > 1 else i64(0)
    if cube:
        face, column, row = _on_cube(column, row, _coordinate(x, instruction, first + 2, lane))
        layer_z += face
        normalized, mode = True, i64(CLAMP)
    i, weight_x = _position(column, as_float, normalized, linear, size_x)
    j, weight_y = i64(0), i64(0)
    k, weight_z = i64(0), i64(0)
    if dimensions > 1:
        j, weight_y = _position(row, as_float, normalized, linear, size_y)
    if dimensions > 2:
        k, weight_z = _position(_coordinate(x, instruction, 2, lane), as_float, normalized, linear, size_z)
    texels = words_i64(scratch_address(x, 1), RESULTS)
    totals = words_f64(scratch_address(x, 2), RESULTS)
    for channel in range(RESULTS):
        texels[channel] = 0
        totals[channel] = 0.0
    for corner in range(1 << dimensions if linear else 1):
        a, b, c = corner & 1, (corner >> 1) & 1, corner >> 2
        at_x = _inside(i + a, size_x, mode)
        at_y = _inside(j + b, size_y, mode) if dimensions > 1 else layer_y
        at_z = _inside(k + c, size_z, mode) if dimensions > 2 else layer_z
        weight = weight_x if a else 256 - weight_x
        if dimensions > 1:
            weight *= weight_y if b else 256 - weight_y
        if dimensions > 2:
            weight *= weight_z if c else 256 - weight_z
        if at_x < 0 or at_y < 0 or at_z < 0 or weight == 0:
            continue
        offset = _texel_offset(texture, at_x, at_y, at_z)
        for channel in range(texture.channels):
            texels[channel] = _channel(x, texture, offset, channel)
            if linear:
                totals[channel] += f64(weight) * f64(bits_f32(u32(texels[channel])))
    for channel in range(RESULTS):
        register = i64(instruction.v[channel])
        if register != RZ:
            bits = texels[channel]
            if linear:
                filtered = f32(totals[channel] * scale)
                bits = i64(f32_bits(filtered)) if filtered == filtered else i64(NAN_F32)
            words_u32(register_address(x, register), LANES)[lane] = u32(bits)
    edge = i64(CLAMP) if mode == BORDER else mode
    base_y = _inside(j, size_y, edge) if dimensions > 1 else layer_y
    base_z = _inside(k, size_z, edge) if dimensions > 2 else layer_z
    return i64(texture.address) + _texel_offset(texture, _inside(i, size_x, edge), base_y, base_z)


@jit
def _place_surface(x, instruction, texture, lane):
    """Put the address of a surface access into the context. Returns 1 if it is inside, 0 if not, or minus the fault."""
    size = i64(instruction.bytes) * i64(instruction.vec)
    limits = i64(texture.width) * i64(texture.channels) * i64(texture.bytes)
    first = i64(instruction.rnd) // IN_LAYERS
    column = _signed(_coordinate(x, instruction, first, lane))
    if column & (size - 1) != 0:
        return -_fault(x, lane, column, Fault.MISALIGNED)
    inside = column >= 0 and column <= limits - size
    column = min(max(column, 0), limits - size)
    row, plane = i64(0), i64(0)
    if instruction.sub > 0:
        row = _signed(_coordinate(x, instruction, first + 1, lane))
    if instruction.sub > 1:
        plane = _signed(_coordinate(x, instruction, 2, lane))
    if first != 0 and instruction.sub == 0:
        row = _signed(_coordinate(x, instruction, 0, lane))
    elif first != 0:
        plane = _signed(_coordinate(x, instruction, 0, lane))
    near_row, near_plane = _inside(row, _size(texture, 1), CLAMP), _inside(plane, _size(texture, 2), CLAMP)
    inside = inside and row == near_row and plane == near_plane
    x.address[lane] = i64(texture.address) + (near_plane * i64(texture.height) + near_row) * i64(texture.pitch) + column
    outside_means = i64(instruction.rnd) % IN_LAYERS
    if not inside and outside_means == TRAP:
        return -_fault(x, lane, i64(x.address[lane]), Fault.OUT_OF_BOUNDS)
    return i64(inside or outside_means == TO_EDGE)


@jit
def _surface(x, instruction, handles):
    """Formatless loads and stores. Outside, ``rnd`` TO_EDGE clamps, ZERO loads zero and drops stores."""
    lanes = i64(0)
    for lane in range(x.lanes):
        if (x.mask >> lane) & 1:
            inside = _place_surface(x, instruction, _texture(x, i64(handles[lane])), lane)
            if inside < 0:
                return -inside
            lanes |= inside << lane
    x.touched = lanes
    if x.probe != 0:
        return i64(Fault.NONE)
    if instruction.op != SURFACE_LOAD:
        if lanes != 0:
            store_elements(x, instruction, i64(GLOBAL), lanes, i64(0))
    else:
        if lanes != 0:
            load_elements(x, instruction, i64(GLOBAL), lanes, i64(0))
        outside = x.mask & ~lanes
        for element in range(instruction.vec if outside != 0 else 0):
            register = i64(instruction.v[element])
            for half in range(0 if register == RZ else (2 if instruction.data == 8 else 1)):
                words = words_u32(register_address(x, register + half), LANES)
                for lane in range(x.lanes):
                    words[lane] = u32(0) if (outside >> lane) & 1 else words[lane]
    return i64(Fault.NONE)


@slot
def execute_texture(context, address):
    """Execute a texture fetch, a surface access or a query; returns the fault, with nothing performed, or 0."""
    x = at_context(context)
    instruction = at_instruction(address)
    op = i64(instruction.op)
    handles = words_i64(fetch(x, instruction, 0), LANES)
    x.touched = 0
    x.touched_shared = 0
    for lane in range(x.lanes):
        handle = i64(handles[lane])
        if (x.mask >> lane) & 1 and (handle < 1 or handle > x.texture_count or _texture(x, handle).bytes == 0):
            return _fault(x, lane, handle, Fault.BAD_TEXTURE)
    if op >= SURFACE_LOAD:
        return _surface(x, instruction, handles)
    if op <= TEX_3D:
        x.touched = x.mask
    if x.probe != 0:
        return i64(Fault.NONE)
    for lane in range(x.lanes):
        if (x.mask >> lane) & 1:
            texture = _texture(x, i64(handles[lane]))
            if op <= TEX_3D:
                x.address[lane] = _fetch_lane(x, instruction, texture, op + 1, lane)
            elif instruction.v[0] != RZ:
                words_u32(register_address(x, i64(instruction.v[0])), LANES)[lane] = _size(texture, instruction.sub)
    return i64(Fault.NONE)
