"""What a server answers: one function for each route."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.engine.engine import Epoch
from headwater.engine.ingest import rows_to_arrow
from headwater.errors import UserError
from headwater.http import bodies, points
from headwater.http.answers import Pieces
from headwater.http.backend import Backend, Shape, Warehouse, shape_of, target_of
from headwater.http.events import Followers
from headwater.http.failures import as_error, error_response, no_method, no_route
from headwater.http.formats import TYPES, form_of_answer, written
from headwater.http.limits import Limits
from headwater.http.work import GoneError, Work
from headwater.results import Result
from headwater.sql import statements as s
from headwater.sql.names import fold
from headwater.sql.parse import parse
from headwater.version import VERSION

Answer = Response | ASGIApp
Handler = Callable[[Request], Awaitable[Answer]]

_READING = (s.Query, s.Show, s.Describe, s.Explain)


class Routes:
    """The application: everything below `/v1`, and `/healthz`.

    Attributes:
        work: its threads.
        followers: its subscriptions.
    """

    def __init__(self, backend: Backend, limits: Limits, *, read_only: bool = False, allow_files: bool = False) -> None:
        """Answer for a warehouse.

        Args:
            backend: the warehouse.
            limits: what clients may have.
            read_only: whether nothing may be changed.
            allow_files: whether statements may name files of this machine.
        """
        self.work = Work(limits)
        self.followers = Followers(backend, limits)
        self._backend = backend
        self._limits = limits
        self._read_only = read_only
        self._allow_files = allow_files
        one = "/v1/relations/{name}"
        self._router = Router(
            [
                _route("/healthz", GET=self.health),
                _route("/v1/status", GET=self.status),
                _route("/v1/query", POST=self.query),
                _route("/v1/sql", POST=self.sql),
                _route("/v1/relations", GET=self.relations),
                _route(one, GET=self.relation),
                _route(f"{one}/rows", GET=self.get, PUT=self.put, DELETE=self.delete, POST=self.insert),
                _route(f"{one}/rows/{{key:path}}", GET=self.get, PUT=self.put, DELETE=self.delete),
                _route(f"{one}/changes", GET=self.changes),
            ],
            redirect_slashes=False,
            default=_nowhere,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._router(scope, receive, send)

    # -- looking -----------------------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Answer:
        return _json({"ok": True, "version": VERSION})

    async def status(self, request: Request) -> Answer:
        _no_parameters(request)
        async with self.work.admitted():
            found = await self._read(request, lambda warehouse: warehouse.status())
        server = {"version": VERSION, "requests": self.work.waiting, "subscriptions": self.followers.count}
        return _json(found | {"server": server | {"read_only": self._read_only}})

    async def relations(self, request: Request) -> Answer:
        _no_parameters(request)
        async with self.work.admitted():
            return _json(await self._read(request, lambda warehouse: warehouse.relations()))

    async def relation(self, request: Request) -> Answer:
        _no_parameters(request)
        name = request.path_params["name"]

        def look(warehouse: Warehouse) -> dict[str, Any]:
            shape = shape_of(warehouse, name)
            facts: list[dict[str, Any]] = warehouse.status()["relations"]  # type: ignore[assignment]
            own = next((one for one in facts if fold(one["name"]) == fold(shape.name)), {})
            columns = [{"name": field.name, "type": str(field.type)} for field in shape.fields]
            return own | {"columns": columns, "key": [field.name for field in shape.key]}

        async with self.work.admitted():
            return _json(await self._read(request, look))

    # -- statements --------------------------------------------------------------------------------------------------

    async def query(self, request: Request) -> Answer:
        """One statement that reads, answered in the form that the client asks for."""
        _no_parameters(request, "format")
        form = form_of_answer(request)
        async with self.work.admitted():
            text = bodies.statement_text(await self._body(request), bodies.content_type(request))

            def answer(warehouse: Warehouse) -> tuple[bytes, int]:
                _one_that_reads(parse(text))
                [result] = warehouse.execute(text)
                table = _table(result)
                return written(table, form, self._limits), table.num_rows

            data, rows = await self._read(request, answer)
        return Pieces(data, headers={"Headwater-Rows": str(rows)}, media_type=TYPES[form])

    async def sql(self, request: Request) -> Answer:
        """Any statements, each with what it did."""
        _no_parameters(request)
        async with self.work.admitted():
            text = bodies.statement_text(await self._body(request), bodies.content_type(request))
            statements = await self.work.read(request, lambda: parse(text))
            self._check_allowed(statements)

            def run(warehouse: Warehouse) -> bytes:
                return _results(warehouse.execute(text), self._limits)

            if all(isinstance(one, _READING) for one in statements):
                data = await self._read(request, run)
            else:
                data = await self.work.write(lambda: self._backend.call(run))
        return Pieces(data, media_type="application/json")

    def _check_allowed(self, statements: Sequence[s.Statement]) -> None:
        for one in statements:
            if self._read_only and not isinstance(one, _READING):
                raise UserError(
                    "HW489", "this server only reads", span=one.span, source=one.source, hint="SELECT, SHOW, EXPLAIN"
                )
            if not self._allow_files and _names_files(one):
                raise UserError(
                    "HW489",
                    "this server does not read files of its machine for its clients",
                    span=one.span,
                    source=one.source,
                    hint="send rows to /v1/relations/NAME/rows, or start the server with --allow-files",
                )

    # -- rows --------------------------------------------------------------------------------------------------------

    async def get(self, request: Request) -> Answer:
        """One row by its key, as an object."""
        name = request.path_params["name"]

        def look(warehouse: Warehouse) -> bytes:
            shape = shape_of(warehouse, name)
            key = _key(request, shape)
            table = points.get_rows(warehouse, shape, key)
            if not table.num_rows:
                raise _no_row(shape.name, key)
            return written(table.slice(0, 1), "jsonl", self._limits)

        async with self.work.admitted():
            return Response(await self._read(request, look), media_type="application/json")

    async def put(self, request: Request) -> Answer:
        """A row in place of the one with the same key, if there is one."""
        self._check_writes()
        name = request.path_params["name"]
        async with self.work.admitted():
            body = await self._body(request)
            kind = bodies.content_type(request)
            if kind != "application/json":
                raise UserError("HW492", f"a row does not come as {kind[:100]}", hint="send application/json")

            def change(warehouse: Warehouse) -> Epoch:
                target = target_of(warehouse, name, "upsert", needs_key=True)
                key = rows_to_arrow([_typed_key(request, warehouse, name)], target.key, relation=target.name)
                row = bodies.row_of(body, key, target.arriving, target.name, self._limits)
                return warehouse.upsert(target.name, row)

            return await self._changed(change, name)

    async def delete(self, request: Request) -> Answer:
        """The row with a key goes."""
        self._check_writes()
        name = request.path_params["name"]

        def change(warehouse: Warehouse) -> Epoch:
            target = target_of(warehouse, name, "delete by key", needs_key=True)
            return warehouse.delete_keys(target.name, [_typed_key(request, warehouse, name)])

        async with self.work.admitted():
            return await self._changed(change, name)

    async def insert(self, request: Request) -> Answer:
        """Rows for a table or a stream, all in one epoch."""
        self._check_writes()
        _no_parameters(request, "format")
        name = request.path_params["name"]
        form = bodies.form_of_rows(bodies.content_type(request), request.query_params.get("format"))
        async with self.work.admitted():
            body = await self._body(request)

            def change(warehouse: Warehouse) -> Epoch:
                target = target_of(warehouse, name, "insert")
                return warehouse.insert(
                    target.name, bodies.rows_of(body, form, target.arriving, target.name, self._limits)
                )

            return await self._changed(change, name)

    async def _changed(self, change: Callable[[Warehouse], Epoch], name: str) -> Answer:
        epoch = await self.work.write(lambda: self._backend.call(change))
        changes = {fold(relation): number for relation, number in epoch.changes.items()}
        return _json({"epoch": epoch.number, "changes": changes.get(fold(name), 0)})

    def _check_writes(self) -> None:
        if self._read_only:
            raise UserError("HW489", "this server only reads", hint="start it without --read-only to change rows")

    # -- subscriptions -----------------------------------------------------------------------------------------------

    async def changes(self, request: Request) -> Answer:
        """The changes of a view as they are committed."""
        _no_parameters(request, "from_epoch")
        given = request.query_params.get("from_epoch")
        begun = request.headers.get("last-event-id")
        if begun:  # it was told everything up to that epoch
            first: int | None = _number(begun, "Last-Event-ID") + 1
        else:
            first = None if given is None else _number(given, "from_epoch")
        return await self.followers.follow(request.path_params["name"], first)

    # -- all of them -------------------------------------------------------------------------------------------------

    async def _read(self, request: Request, look: Callable[[Warehouse], Any]) -> Any:
        return await self.work.read(request, lambda: self._backend.call(look, again=True))

    async def _body(self, request: Request) -> bytes:
        return await bodies.read_body(request, self._limits)


def _route(path: str, **handlers: Handler) -> Route:
    """A route with a function for each method."""

    class Endpoint:
        """An application, so that starlette leaves methods to it."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            handler = handlers.get(method)
            answer: Answer
            try:
                if handler is None:
                    allowed = ", ".join(handlers)
                    refusal = no_method(scope["method"], scope["path"], allowed)
                    answer = error_response(refusal, {"Allow": allowed}, close=True)
                else:
                    answer = await handler(request)
            except (GoneError, bodies.LeftError):
                return  # nobody is there to be answered
            except Exception as error:
                answer = error_response(as_error(error), close=bodies.is_unread(request))
            await answer(scope, receive, send)

    return Route(path, Endpoint())


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    await error_response(no_route(scope["path"]), close=bodies.is_unread(request))(scope, receive, send)


def _json(value: object) -> Response:
    return Response(json.dumps(value, ensure_ascii=False, default=str) + "\n", media_type="application/json")


def _one_that_reads(statements: Sequence[s.Statement]) -> None:
    if len(statements) != 1:
        raise UserError("HW490", f"there are {len(statements)} statements, and one is answered", hint="POST /v1/sql")
    [one] = statements
    if not isinstance(one, _READING):
        raise UserError(
            "HW489",
            "only SELECT, SHOW, DESCRIBE and EXPLAIN are answered here",
            span=one.span,
            source=one.source,
            hint="POST other statements to /v1/sql",
        )


def _names_files(statement: s.Statement) -> bool:
    if isinstance(statement, s.CreateStream):
        return any(option.name == "FROM" for option in statement.options)
    return isinstance(statement, s.Copy)


def _table(result: Result) -> pa.Table:
    if result.table is not None:
        return result.table
    return pa.table({"text": [result.text or ""]})


def _results(results: Sequence[Result], limits: Limits) -> bytes:
    """What statements did, as an array; rows in the form of `/v1/query`."""
    out = []
    for one in results:
        about: dict[str, object] = {"statement": one.statement, "message": one.message, "epoch": one.epoch}
        text = json.dumps(about | ({} if one.text is None else {"text": one.text}), ensure_ascii=False)
        if one.table is not None:
            rows = written(one.table, "json", limits).decode().strip()
            text = f'{text[:-1]}, "rows": {rows}}}'
        out.append(text)
    return ("[" + ",\n".join(out) + "]\n").encode("utf-8", "replace")


def _key(request: Request, shape: Shape) -> dict[str, str]:
    if "key" in request.path_params:
        _no_parameters(request)
        return points.key_of_path(shape, request.path_params["key"])
    given = request.query_params
    if len(given) != len(given.multi_items()):
        raise UserError("HW490", "a column of the key is given twice", hint="give each once")
    return points.key_of_parameters(shape, dict(given))


def _typed_key(request: Request, warehouse: Warehouse, name: str) -> dict[str, object]:
    shape = shape_of(warehouse, name)
    return points.typed_key(_key(request, shape), shape.key)


def _no_row(relation: str, key: dict[str, str]) -> UserError:
    shown = ", ".join(f"{column} = {value[:50]!r}" for column, value in key.items())
    return UserError("HW491", f"{relation} has no row with {shown}", hint="POST /v1/query shows what there is")


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UserError("HW490", f"{what} is the number of an epoch, not {text[:50]!r}", hint="epochs count from 1")
    return int(text)


def _no_parameters(request: Request, *but: str) -> None:
    for name in request.query_params:
        if name not in but:
            raise UserError("HW490", f"there is no parameter {name[:50]!r} here", hint="leave it out")
