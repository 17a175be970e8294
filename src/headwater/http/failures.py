"""Errors as answers: the JSON of the command line, and the status that says whose turn it is."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from starlette.responses import Response

from headwater.errors import HeadwaterError, InternalError, NotSupported, UserError
from headwater.serve.wire import unexpected
from headwater.store.budget import TOO_LARGE, TOO_LONG

logger = logging.getLogger("headwater.http")

NO_ROUTE = "HW480"
NO_METHOD = "HW481"
NO_TOKEN = "HW482"
FOREIGN = "HW483"
BODY_TOO_LARGE = "HW484"
BAD_BODY = "HW485"
BUSY = "HW488"
FORBIDDEN = "HW489"
BAD_REQUEST = "HW490"
NO_ROW = "HW491"
NO_FORMAT = "HW492"
NO_ANSWER_FORMAT = "HW493"
SLOW_BODY = "HW494"

#: The status of each code; those that are not here have the one of their kind.
STATUS = {
    NO_ROUTE: 404,
    NO_METHOD: 405,
    NO_TOKEN: 401,
    FOREIGN: 403,
    BODY_TOO_LARGE: 413,
    BAD_BODY: 400,
    TOO_LARGE: 413,
    TOO_LONG: 504,
    BUSY: 503,
    FORBIDDEN: 403,
    BAD_REQUEST: 400,
    NO_ROW: 404,
    NO_FORMAT: 415,
    NO_ANSWER_FORMAT: 406,
    SLOW_BODY: 408,
    # The warehouse is closed, cannot be reached, or has no room.
    "HW406": 503,
    "HW407": 503,
    "HW408": 503,
    "HW450": 503,
    "HW451": 503,
    "HW453": 503,
    "HW452": 413,
    # What the request takes for granted of a relation or its rows is not so.
    "HW301": 409,
    "HW302": 409,
    "HW303": 409,
    "HW304": 409,
    "HW305": 409,
    "HW306": 404,
    "HW308": 409,
    # What a subscription asks for is not kept any longer, or the view is gone.
    "HW520": 410,
    "HW521": 410,
    "HW522": 410,
    "HW523": 410,
}
_NO_RELATION = "HW102"


def status_of(error: HeadwaterError) -> int:
    """The HTTP status of an error."""
    if error.code == _NO_RELATION and error.span is None:  # the address names it, not a statement
        return 404
    if error.code in STATUS:
        return STATUS[error.code]
    if isinstance(error, InternalError):
        return 500
    return 422 if isinstance(error, NotSupported) or error.code.startswith("HW3") else 400


def as_error(error: BaseException) -> HeadwaterError:
    """Any exception as an error of ours; one that nobody planned is our bug, and its traceback goes to the log."""
    if isinstance(error, HeadwaterError):
        if isinstance(error, InternalError):
            logger.error("%s", "\n".join([str(error), *getattr(error, "__notes__", [])]))
        return error
    bug = unexpected(error)
    logger.error("%s", "\n".join([str(bug), *bug.__notes__]))
    return bug


def error_json(error: HeadwaterError) -> str:
    """What a client reads of an error: never a traceback."""
    out = error.to_dict()
    if error.span and error.source:
        out["excerpt"] = error.source.locate(error.span.start)[2][:1000]
    return json.dumps(out, ensure_ascii=False)


def error_response(error: HeadwaterError, headers: Mapping[str, str] | None = None, *, close: bool = False) -> Response:
    """The answer that is an error; `close` ends the connection, where the rest of a request is not read."""
    status = status_of(error)
    extra = dict(headers or {})
    if status == 401:
        extra["WWW-Authenticate"] = 'Bearer realm="headwater"'
    if status == 503:
        extra["Retry-After"] = "1"
    if close:
        extra["Connection"] = "close"
    return Response(error_json(error) + "\n", status, extra, "application/json")


def no_route(path: str) -> UserError:
    """The error about an address that leads nowhere."""
    return UserError(NO_ROUTE, f"there is nothing at {path[:200]}", hint="docs/http.md lists what there is")


def no_method(method: str, path: str, allowed: str) -> UserError:
    """The error about a method that an address does not have."""
    return UserError(NO_METHOD, f"{method} is not possible at {path[:200]}", hint=f"it takes {allowed}")
