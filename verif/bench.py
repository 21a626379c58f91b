"""What the tests of the blocks' golden models share: a model with its ports, shaped random masks, interpreted runs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from lockstep.models import blocks
from lockstep.models.jit import argument, called
from lockstep.spec import registry
from lockstep.spec.mechanism import arguments_of


class Bench:
    """One instance of a golden model. ``i``, ``o`` and ``c`` are its ports, as records to read and write.

    The model may join others, as instances in its state: golden models too, with the parameters that the mechanism
    gives them (``Mechanism.parts``), each of several perhaps its own.
    """

    def __init__(self, model: ModuleType, **parameters: int) -> None:
        self.model = model
        self.parameters = parameters
        self.state = np.zeros((), model.STATE)
        for name in set(parameters) & set(self.state.dtype.names or ()):
            self.state[name] = parameters[name]
        self.io = np.zeros((), model.PORTS)
        self.i, self.o, self.c = (self._side(side) for side in "ioc")
        self._addresses = self.state.ctypes.data, self.io.ctypes.data
        self._instances = list(_parts(self.state))
        bindings = [part["binding"] for *_, part in self._instances]
        self._bindings = [(binding.ctypes.data - self._addresses[0], binding.nbytes) for binding in bindings]
        # Compiled functions called with records find out the types of these first, which takes most of the time.
        self._slots = {name: called(function) for name, function in model.SLOTS.items()}
        self._bind()
        self.reset()

    def _side(self, side: str) -> np.ndarray:
        """The ports of a side, as a record; one without fields where the model has none."""
        return self.io[side] if side in (self.io.dtype.names or ()) else np.zeros((), [])

    def _bind(self) -> None:
        """Let golden models play the parts that the model joins."""
        if self._instances:
            from lockstep.models.tenants import Instance

            mechanism = registry.of_area(self.model.__name__.split(".")[-2])
            arguments = mechanism.parts(**self.parameters)
            for block, index, part in self._instances:
                given = arguments_of(arguments, block, index)
                Instance(block, given, -1, index, mechanism.unit, part).bind_model()

    def preset(self, name: str, value: int) -> None:
        """Give a field of the state, of the model or of a part, a value; or an element of it, as in ``table[3]``.

        Of several parts that are one block, that with number 3 is called ``block_3``, as in hardware.
        """
        *parts, field = name.split(".")
        state = self.state
        for part in parts:
            block, _, number = part.rpartition("_")
            state = (state[part] if part in (state.dtype.names or ()) else state[block][int(number)])["state"]
        field, _, element = field.partition("[")
        if element:
            state[field][int(element.rstrip("]"))] = value
        else:
            state[field] = value

    def reset(self) -> None:
        self.model.reset(argument(self.state), argument(self.io))

    def comb(self) -> None:
        if "comb" in self._slots:
            self._slots["comb"](*self._addresses)

    def step(self) -> None:
        self._slots["step"](*self._addresses)

    def cycle(self) -> None:
        self.comb()
        self.step()

    def idle(self) -> int:
        return self._slots["idle"](*self._addresses)

    def skip(self, steps: int) -> None:
        if "skip" in self._slots:
            self._slots["skip"](self._addresses[0], steps)

    def bytes(self) -> bytes:
        """State and ports, without addresses."""
        state = bytearray(self.state.tobytes())
        for where, size in self._bindings:
            state[where : where + size] = bytes(size)
        return bytes(state) + self.io.tobytes()

    def copy(self) -> Bench:
        other = Bench(self.model, **self.parameters)
        other.assign(self)
        return other

    def assign(self, other: Bench) -> None:
        """Take over the state and the ports of another instance with the same parameters."""
        self.state[()], self.io[()] = other.state, other.io
        self._bind()


def _parts(state: np.ndarray) -> Iterator[tuple[str, int, np.ndarray]]:
    """The block, the number and the record of every instance in a state."""
    for place in blocks.instances(state.dtype):
        records = state.reshape(1)
        for name in place.path:
            records = records[name]
        for index in np.ndindex(records.shape):
            yield place.block, index[-1], records[tuple(slice(i, i + 1) for i in index)].reshape(())


def seeded() -> random.Random:
    """A random generator whose seed is printed; ``LOCKSTEP_SEED`` repeats a run."""
    seed = int(os.environ.get("LOCKSTEP_SEED", random.randrange(1 << 32)))
    print(f"LOCKSTEP_SEED={seed}")
    return random.Random(seed)


def mask(rng: random.Random, bits: int) -> int:
    """A mask that is empty, full, one-hot, sparse, even or dense, each as often."""
    full = (1 << bits) - 1
    words = [rng.getrandbits(bits) for _ in range(3)]
    sparse, dense = words[0] & words[1] & words[2], words[0] | words[1] | words[2]
    return rng.choice([0, full, 1 << rng.randrange(bits), sparse, words[0], dense])


def elsewhere(function: Callable[..., Any], *arguments: Any, **environment: str) -> Any:
    """What a module-level function of a test file returns, through JSON, in a process with other variables.

    Nothing may be written to standard error: an exception in a compiled slot is printed there, and not raised.
    """
    call = f"runpy.run_path({function.__code__.co_filename!r})[{function.__name__!r}](*{arguments!r})"
    command = [sys.executable, "-c", f"import json, runpy; print(json.dumps({call}))"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def interpreted(function: Callable[[int], Any], seed: int) -> str:
    """What a module-level function of a test file returns, as text, when the models run interpreted."""
    return str(elsewhere(function, seed, NUMBA_DISABLE_JIT="1"))
