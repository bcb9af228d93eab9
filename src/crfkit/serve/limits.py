"""What a server accepts: sizes, counts and times. Everything beyond is answered with a 4xx."""

from dataclasses import dataclass, fields

from crfkit.errors import ArgumentError


@dataclass(frozen=True)
class Limits:
    """Bounds of a server, each of them on what one request or one client may take.

    >>> Limits(max_tokens=1000).max_tokens
    1000
    """

    max_body: int = 2 * 1024 * 1024  # bytes of the body of a request; above: 413
    max_texts: int = 1_000  # texts, token lists, … of a request; above: 413
    max_tokens: int = 50_000  # tokens of a request, all texts together; above: 413
    max_sentence: int = 2_000  # tokens of one sentence; above: 413
    max_tree: int = 250  # words of a sentence that a parser reads; above: 413
    max_nbest: int = 50  # outputs that a request may ask for
    max_requests: int = 128  # requests that are read, wait or are answered at a time; above: 429
    max_connections: int = 2_000  # connections at a time; above: 429
    header_seconds: float = 10.0  # for the headers of a request to arrive; above: 408
    body_seconds: float = 20.0  # for its body to arrive; above: 408
    wait_seconds: float = 20.0  # for its turn; above: 429
    write_seconds: float = 30.0  # for a client to read its answer; above: the connection is closed
    keep_alive_seconds: int = 5  # an idle connection stays open for so long

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ArgumentError(f"{field.name} is {value!r}, expected a number above 0")
