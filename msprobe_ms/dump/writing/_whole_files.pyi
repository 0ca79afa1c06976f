def replace(
    folder: int,
    temporary: bytes,
    name: bytes,
    mode: int,
    exact: bool,
    head: bytes,
    address: int,
    size: int,
    tail: bytes,
    /,
) -> None: ...
def holds(folder: int, name: bytes, before: int, address: int, size: int, after: int, /) -> bool: ...
