"""What goes from the tasks of a level to those of the next, each of which prefers the executor where it has its seat.

Spark lets those who make an RDD of a list say where its partitions are best taken, but not those who send rows through
a shuffle. So a shuffle is zipped with a list that says it: a partition of what comes out prefers what that of the list
prefers. Zipping takes as many records on both sides; that is so because every task sends one record to each of the
next, whether it has something to say or not, and the list has as many for each.

(`RDD.partitionBy` and `RDD.zip` of PySpark do the same by the same means, in other numbers of records.)
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.engine.parcels import Parcel

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

#: What a task of a level gets: what each of those before it has sent, beside nothing.
Coming = Iterable[tuple[Sequence[Parcel], None]]
#: What a task gives: each parcel knows the partition that it goes to.
Going = Iterator[Parcel]

_NOTHING = pickle.dumps([None])


class Exchange:
    """Stages of one job, all with as many tasks, and the seats of these."""

    def __init__(self, context: SparkContext, partitions: int, seats: Sequence[str]) -> None:
        """Make it.

        Args:
            context: Spark's.
            partitions: how many tasks a stage has.
            seats: the place that each prefers; none if they prefer none.
        """
        self._context, self.partitions, self.seats = context, partitions, tuple(seats)
        self._first, self._next = self._list(1), self._list(partitions)

    def fits(self, context: SparkContext, partitions: int, seats: Sequence[str]) -> bool:
        """Whether it is as it would be made from these."""
        return (self._context, self.partitions, self.seats) == (context, partitions, tuple(seats))

    def begin(self, stage: Callable[[Any], Going]) -> RDD[Any]:
        """The first stage, to whose tasks nothing comes."""
        from pyspark import RDD

        return RDD(self._first, self._context, _one_by_one()).mapPartitions(stage)

    def then(self, sent: RDD[Any], stage: Callable[[Coming], Going]) -> RDD[Any]:
        """The stage to whose tasks goes what those of another give."""
        from pyspark import RDD
        from pyspark.serializers import PairDeserializer

        jvm: Any = self._context._jvm
        records = sent.mapPartitionsWithIndex(_records(self.partitions), preservesPartitioning=True)
        records._bypass_serializer = True  # type: ignore[attr-defined]
        pairs = jvm.PairwiseRDD(records._jrdd.rdd()).asJavaPairRDD()
        shuffled = jvm.PythonRDD.valueOfPair(pairs.partitionBy(jvm.PythonPartitioner(self.partitions, id(self))))
        both = PairDeserializer(_one_by_one(), _one_by_one())  # type: ignore[no-untyped-call]
        return RDD(shuffled.zip(self._next), self._context, both).mapPartitions(stage)

    def _list(self, records: int) -> Any:
        """So many records for each partition, with the seats."""
        jvm: Any = self._context._jvm
        prefer = jvm.java.util.HashMap()
        for partition, seat in enumerate(self.seats):
            prefer.put(partition, jvm.PythonUtils.toSeq(jvm.java.util.Collections.nCopies(1, seat)))
        nothing = jvm.java.util.Collections.nCopies(records * self.partitions, _NOTHING)
        kind = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").AnyRef()
        inner: Any = self._context._jsc.sc()
        made = jvm.org.apache.spark.rdd.ParallelCollectionRDD(
            inner, jvm.PythonUtils.toSeq(nothing), self.partitions, jvm.PythonUtils.toScalaMap(prefer), kind
        )
        return made.toJavaRDD()


def _one_by_one() -> Any:
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    return BatchedSerializer(CPickleSerializer(), 1)  # type: ignore[no-untyped-call]


def _records(partitions: int) -> Callable[[int, Iterable[Parcel]], Iterator[bytes]]:
    """Makes one record for each partition of what a task gives."""

    def records(_: int, given: Iterable[Parcel]) -> Iterator[bytes]:
        from pyspark.serializers import pack_long

        going: list[list[Parcel]] = [[] for _ in range(partitions)]
        for parcel in given:
            going[parcel.partition].append(parcel)
        for partition, parcels in enumerate(going):
            yield pack_long(partition)  # type: ignore[no-untyped-call]
            yield pickle.dumps([parcels], pickle.HIGHEST_PROTOCOL)
            parcels.clear()

    return records
