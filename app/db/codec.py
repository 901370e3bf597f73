"""Frozen values to bytes and back, without running anything that the bytes say.

A value is a tree of dataclasses, tuples, mappings, enums, dates, plain numbers, texts and NumPy arrays.
The tree is JSON in which every object that occurs twice stands once; arrays follow it in raw little-endian
form. Only classes that the codec was given can come back, each through its own constructor and checks.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import numpy as np

from app.domain.errors import InternalError, OperatorError

MAGIC = b"CELOSIA1"
ARRAY_KINDS = "biufU"


def digest_of(body: bytes) -> str:
    """SHA-256 of the bytes, in hex."""
    return hashlib.sha256(body).hexdigest()


class Codec:
    """Encodes and decodes values made of the given classes.

    Parameters
    ----------
    classes : iterable of type
        Dataclasses and enums that may occur, told apart by their names.
    """

    def __init__(self, classes: Iterable[type]) -> None:
        self._classes = {cls.__name__: cls for cls in classes}

    @property
    def shape(self) -> str:
        """A digest of the classes and their fields: bytes of another shape can't be decoded."""
        parts = [
            f"{name}({','.join(field.name for field in fields(cls)) if is_dataclass(cls) else ''})"
            for name, cls in sorted(self._classes.items())
        ]
        return digest_of(";".join(parts).encode())

    def encode(self, value: object) -> bytes:
        """The value as bytes; equal values give equal bytes.

        Raises
        ------
        InternalError
            If a part is of a class that the codec doesn't know.
        """
        writer = _Writer(self._classes)
        root = writer.node(value)
        header = json.dumps({"nodes": writer.nodes, "root": root}, separators=(",", ":")).encode()
        parts = [len(header).to_bytes(8, "little"), header, *writer.arrays]
        return MAGIC + zlib.compress(b"".join(parts), 1)

    def decode(self, body: bytes) -> Any:
        """The value that `encode` wrote.

        Raises
        ------
        OperatorError
            If the bytes are damaged or of another version.
        """
        if not body.startswith(MAGIC):
            raise OperatorError("A stored result is of another version. Run the pipeline again.")
        try:
            raw = zlib.decompress(body[len(MAGIC) :])
            size = int.from_bytes(raw[:8], "little")
            header = json.loads(raw[8 : 8 + size])
            return _Reader(self._classes, header["nodes"], memoryview(raw)[8 + size :]).value(header["root"])
        except (zlib.error, ValueError, KeyError, IndexError, TypeError) as error:
            raise OperatorError("A stored result is damaged. Run the pipeline again.") from error


class _Writer:
    def __init__(self, classes: Mapping[str, type]) -> None:
        self._classes = classes
        self._seen: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._kept: list[object] = []
        self._offset = 0
        self.nodes: list[Any] = []
        self.arrays: list[bytes] = []

    def node(self, value: Any) -> int:
        if isinstance(value, str) and not isinstance(value, Enum):
            if value not in self._texts:
                self._texts[value] = self._add(value)
            return self._texts[value]
        key = id(value)
        if key not in self._seen:
            self._kept.append(value)
            self._seen[key] = self._add(self._written(value))
        return self._seen[key]

    def _add(self, written: Any) -> int:
        self.nodes.append(written)
        return len(self.nodes) - 1

    def _written(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, tuple):
            if all(type(item) is int for item in value):
                return ["I", list(value)]
            return ["T", [self.node(item) for item in value]]
        if isinstance(value, Mapping):
            return ["M", [[self.node(name), self.node(item)] for name, item in value.items()]]
        if isinstance(value, datetime):
            return ["D", value.isoformat()]
        name = type(value).__name__
        if self._classes.get(name) is not type(value):
            raise InternalError(f"a value of class {name} can't be stored")
        if isinstance(value, Enum):
            return ["E", name, value.value]
        if not is_dataclass(value):
            raise InternalError(f"class {name} is no dataclass")
        return ["C", name, [self.node(getattr(value, field.name)) for field in fields(value) if field.init]]

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.kind not in ARRAY_KINDS:
            raise InternalError(f"an array of {array.dtype} can't be stored")
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        body = plain.tobytes()
        written = ["A", plain.dtype.str, list(array.shape), self._offset, len(body)]
        self.arrays.append(body)
        self._offset += len(body)
        return written


class _Reader:
    def __init__(self, classes: Mapping[str, type], nodes: list[Any], arrays: memoryview) -> None:
        self._classes = classes
        self._nodes = nodes
        self._arrays = arrays
        self._done: dict[int, Any] = {}

    def value(self, number: int) -> Any:
        if number not in self._done:
            self._done[number] = self._read(self._nodes[number])
        return self._done[number]

    def _read(self, node: Any) -> Any:
        if not isinstance(node, list):
            return node
        match node[0]:
            case "I":
                return tuple(node[1])
            case "T":
                return tuple([self.value(item) for item in node[1]])
            case "M":
                return {self.value(name): self.value(item) for name, item in node[1]}
            case "D":
                return datetime.fromisoformat(node[1])
            case "E":
                return self._classes[node[1]](node[2])
            case "C":
                cls = self._classes[node[1]]
                names = [field.name for field in fields(cls) if field.init]
                values = [self.value(item) for item in node[2]]
                if len(values) > len(names):
                    raise ValueError(node[1])
                # Fields that were added since, at the end, have their defaults.
                return cls(**dict(zip(names, values, strict=False)))
            case "A":
                _, dtype, shape, offset, size = node
                array = np.frombuffer(self._arrays[offset : offset + size], dtype=np.dtype(dtype))
                return array.reshape(shape)
        raise ValueError(node[0])
