def take(
    text: str,
    place: int,
    forms: dict[bytes, int | None],
    names: list[str],
    codes: list[int],
    texts: list[str],
    /,
) -> tuple[int, bytes, bytes | None, int]: ...
