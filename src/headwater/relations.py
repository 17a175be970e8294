"""The catalogue as queries and new views see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from headwater.algebra.scalars import TRUE
from headwater.engine.definitions import first_epoch_seen
from headwater.engine.engine import Engine
from headwater.engine.past import Past, epoch_at, find_past
from headwater.errors import UserError
from headwater.sql.as_of import AsOf
from headwater.sql.names import fold
from headwater.sql.scope import RelationInfo
from headwater.store.catalog import (
    CLOCK_STREAM,
    RETAIN_ALL,
    Catalog,
    Relation,
    clock_stream,
    follower,
    no_changes,
    on_stream,
)
from headwater.store.policies import Policy, synchronised


class CatalogRelations:
    """The catalogue in the form the binder asks for.

    Attributes:
        made: relations that are read and will have to be made: synchronised ones, and the clock stream.
        past: relations that are read as they were, by the names that they go by.
        timeless: whether what is seen of the relations that were found does not depend on the moment.
        plain: whether all were read by their names, as Spark SQL has it.
        read: those that were found by their names.
    """

    def __init__(
        self,
        engine: Engine,
        since: Callable[[Relation], int],
        catalog: Catalog | None = None,
        policy: Policy | None = None,
        adds: bool = True,
    ) -> None:
        """Look at a catalogue.

        Args:
            engine: whose.
            since: after which epoch the rows of a relation are seen.
            catalog: the present one by default.
            policy: by which relations are synchronised unless something else is said of them.
            adds: whether relations may be made; else only those that are there can be read.
        """
        self._engine = engine
        self._catalog = catalog or engine.catalog
        self._since = since
        self._policy = policy
        self._adds = adds
        self.made: dict[str, Relation] = {}
        self.past: dict[str, Past] = {}
        self.timeless = True
        self.plain = True
        self.read: set[str] = set()

    def find(self, name: str) -> RelationInfo | None:
        relation = self._find(name)
        if relation is None:
            return None
        self.read.add(relation.name)
        self.plain = self.plain and relation.length is None
        return self._info(relation if self._policy is None else self._follower(relation, self._policy))

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
        self.plain = False
        relation, stream = self._find(name), self._find(policy)
        if relation is None or stream is None:
            return None
        return self._info(self._follower(relation, on_stream(stream)))

    def names(self) -> Iterable[str]:
        return [one.name for one in self._catalog if one.policy is None]

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """What tells the rows of relations apart, of those that will be made, too."""
        return Catalog((*self._catalog, *self.made.values())).keys

    def _find(self, name: str) -> Relation | None:
        found = self._catalog.find(name) or self.made.get(name)
        if found is not None and found.policy is not None:  # it is read as R(s, p), or through a policy
            return None
        if found is None and self._adds and name == fold(CLOCK_STREAM):
            found = self.made[name] = clock_stream(self._engine.epoch, self._engine.present())
        return found

    def _follower(self, relation: Relation, policy: Policy) -> Relation:
        """The relation that stands for one as synchronised; what never changes stands for itself."""
        if relation.static or relation.policy == policy:
            return relation
        if relation.lazy:
            raise no_changes(relation)
        name = fold(synchronised(relation.name, policy))
        found = self._catalog.find(name) or self.made.get(name)
        if found is None and not self._adds:
            raise UserError(
                "HW182",
                f"nothing is kept of {relation.name} as synchronised by {policy}",
                hint=f"query {relation.name}, or a view that reads it so",
            )
        if found is None:
            self._find(fold(policy.name))  # the clock stream, perhaps
            found = self.made[name] = follower(relation, policy, self._engine.epoch)
        return found

    def follower_of(self, name: str, policy: Policy) -> str:
        """The name of the relation that stands for one as synchronised by a policy; it will be made if need be."""
        relation = self._find(fold(name))
        assert relation is not None
        return self._follower(relation, policy).name

    def as_it_was(self, info: RelationInfo, as_of: AsOf) -> RelationInfo:
        """A relation that was found, as of a point in the past."""
        relation = self._catalog.find(info.name)
        assert relation is not None
        epoch = as_of.epoch
        if epoch is None:
            assert as_of.moment is not None
            epoch, self.timeless = epoch_at(self._engine, as_of.moment), False
        past = find_past(self._engine, relation, epoch)
        self.past[past.name] = past
        return replace(info, name=past.name, since=0)

    def _info(self, relation: Relation) -> RelationInfo:
        since = self._since(relation)
        if relation.flows and relation.retain not in (None, RETAIN_ALL):
            self.timeless = False
        return RelationInfo(relation.name, relation.fields, since, relation.flows, relation.stamp, relation.length)


def relations_for_queries(engine: Engine, catalog: Catalog | None = None) -> CatalogRelations:
    """A catalogue as an ad hoc query sees it: a stream that keeps nothing cannot be read."""

    def since(relation: Relation) -> int:
        if relation.is_keyed_stream:
            kept = (catalog or engine.catalog).kept_rows(relation)
            if kept == TRUE and relation.partial is not None:
                raise UserError(
                    "HW107",
                    f"stream {relation.name} has left out rows that no view could use then",
                    hint="query a view over it, or create the stream with RETAIN ALL",
                )
            if kept != TRUE:
                raise UserError(
                    "HW107",
                    f"stream {relation.name} keeps only rows where {kept}",
                    hint="query a view over it, or create the stream with RETAIN ALL",
                )
        elif relation.length is not None and (catalog or engine.catalog).keeps(relation):
            return 0  # the parts that are kept
        elif relation.flows and relation.retain is None:
            raise UserError(
                "HW107",
                f"stream {relation.name} keeps no rows to query",
                hint="query a view over it, or create the stream with RETAIN",
            )
        return first_epoch_seen(engine, relation)

    return CatalogRelations(engine, since, catalog, adds=False)
