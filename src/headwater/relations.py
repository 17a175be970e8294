"""The catalogue as queries and new views see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from headwater.engine.engine import Engine
from headwater.errors import UserError
from headwater.sql.names import fold
from headwater.sql.scope import RelationInfo
from headwater.store.catalog import CLOCK_STREAM, Catalog, Relation, clock_stream, follower, on_stream
from headwater.store.policies import Policy, synchronised

if TYPE_CHECKING:
    pass


class CatalogRelations:
    """The catalogue in the form the binder asks for.

    Attributes:
        made: relations that are read and will have to be made: synchronised ones, and the clock stream.
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

    def find(self, name: str) -> RelationInfo | None:
        relation = self._find(name)
        if relation is None:
            return None
        return self._info(relation if self._policy is None else self._follower(relation, self._policy))

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
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

    def _info(self, relation: Relation) -> RelationInfo:
        since = self._since(relation)
        return RelationInfo(relation.name, relation.fields, since, relation.flows, relation.stamp, relation.length)
