"""What is wrong with a request, and the status that says so."""


class RequestError(Exception):
    """A request that is not answered; `status` is a 4xx."""

    def __init__(self, status: int, message: str, *, close: bool = False, retry_after: int | None = None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.close = close  # the rest of the body is not read
        self.retry_after = retry_after  # seconds


def too_large(message: str) -> RequestError:
    """More than a limit allows."""
    return RequestError(413, message)


def bad_value(message: str) -> RequestError:
    """JSON that is none, or that does not have the form of the request."""
    return RequestError(400, message)


def unanswerable(message: str) -> RequestError:
    """A question that this model cannot answer, or not for this input."""
    return RequestError(422, message)
