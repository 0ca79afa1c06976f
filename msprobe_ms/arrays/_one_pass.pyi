def figures(
    address: int,
    kind: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    first: int,
    tables: bytes | None,
    values: bytes | None,
    /,
) -> tuple[float, float, float, float, bytes | None]: ...
