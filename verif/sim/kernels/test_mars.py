"""References of the kernels after Mars against plain loops over the same inputs."""

from __future__ import annotations

import math

import numpy as np

from lockstep.sim.kernels import Outputs
from lockstep.verif.sim.kernels.test_kernels import same, tiny


def test_pvc() -> None:
    log = tiny("pvc")["log"].tobytes()
    keys, hashes = bytearray(), []
    views: dict[int, int] = {}
    for line in log.decode().split("\n")[:-1]:
        hashed = 5381
        for letter in line[: line.index("\t")].encode():
            keys.append(letter)
            hashed = (hashed * 33 ^ letter) & 0xFFFFFFFF
        hashes.append(hashed)
        views[hashed] = views.get(hashed, 0) + 1
    assert len(set(views.values())) > 3
    outputs: Outputs = {
        "keys": np.frombuffer(keys, np.uint8),
        "hashes": np.array(hashes, np.uint32),
        "counts": np.array([views[hashed] for hashed in sorted(views)], np.int32),
    }
    same("pvc", outputs)


def test_iix() -> None:
    data = tiny("iix")
    text, keys, ends, documents = data["text"].tobytes(), bytearray(), [], []
    for line, document in enumerate(data["documents"]):
        at, end = data["begins"][line : line + 2]
        while at < end:
            if text[at : at + 8] == b"<a href=":
                at += 8
                while text[at] != ord(">"):
                    keys.append(text[at])
                    at += 1
                ends.append(len(keys))
                documents.append(document)
            at += 1
    assert len(ends) > 50 and b"<a hre<a href" in text
    outputs: Outputs = {
        "keys": np.frombuffer(keys, np.uint8),
        "key_ends": np.array(ends, np.int32),
        "documents": np.array(documents, np.int32),
    }
    same("iix", outputs)


def test_ssc() -> None:
    vectors = [[int(value) for value in vector] for vector in tiny("ssc")["vectors"]]
    norms = [np.float32(math.sqrt(sum(value * value for value in vector))) for vector in vectors]
    scores = []
    for i, first in enumerate(vectors):
        for j in range(i + 1, len(vectors)):
            product = sum(a * b for a, b in zip(first, vectors[j], strict=True))
            scores.append(np.float32(product) / (norms[i] * norms[j]))
    same("ssc", {"norms": np.array(norms, np.float32), "scores": np.array(scores, np.float32)})


def test_pvr() -> None:
    lines = tiny("pvr")["text"].tobytes().decode().split("\n")[:-1]
    views = [int(line[line.index("\t") + 1 :]) for line in lines]
    records = sorted(range(len(lines)), key=lambda record: (-views[record], record))
    assert len(set(views)) < len(views)  # some are equal
    outputs = {"views": np.array(sorted(views, reverse=True), np.uint32), "records": np.array(records, np.uint32)}
    same("pvr", outputs)
