def figures(
    address: int,
    kind: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    tables: bytes | None,
    values: bytes | None,
    first: int,
    /,
) -> tuple[float, float, float, float, bytes | None]: ...
def leaf(
    address: int,
    kind: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    tables: bytes | None,
    values: bytes | None,
    frame: tuple[bytes, ...],
    /,
) -> bytes: ...
def memory(address: int, size: int, /) -> memoryview: ...
