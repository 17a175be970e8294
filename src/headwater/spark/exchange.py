"""What goes from the tasks of a level to those of the next, each of which prefers the executor where it has its seat.

Spark lets those who make an RDD of a list say where its partitions are best taken, but not those who send rows through
a shuffle. So a shuffle is zipped with a list that says it: a partition of what comes out prefers what that of the list
prefers. Zipping takes as many records on both sides; that is so because every task sends one record to each of the
next, whether it has something to say or not, and the list has as many for each.

(`RDD.partitionBy` and `RDD.zip` of PySpark do the same by the same means, in other numbers of records.)

A record is held whole in memory, by who sends it, by Spark and by who takes it. So where a task sends much, its records
only say in which files the rest is.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.engine.parcels import Parcel
from headwater.store.storage import storage_of

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

#: What a task of a level gets: what each of those before it has sent, beside nothing.
Coming = Iterable[tuple[Sequence[Parcel], None]]
#: What a task gives: each parcel knows the partition that it goes to.
Going = Iterator[Parcel]

_NOTHING = pickle.dumps([None])
#: What a task sends beyond so many bytes goes through files.
MOST_BYTES = 32 << 20
#: The level of a parcel that is none, but names a file with some.
_FILE = -1


class Exchange:
    """Stages of one job, all with as many tasks, and the seats of these."""

    def __init__(
        self, context: SparkContext, partitions: int, seats: Sequence[str], most_bytes: int = MOST_BYTES
    ) -> None:
        """Make it.

        Args:
            context: Spark's.
            partitions: how many tasks a stage has.
            seats: the place that each prefers; none if they prefer none.
            most_bytes: what a task sends beyond that goes through files.
        """
        self._context, self.partitions, self.seats, self._most = context, partitions, tuple(seats), most_bytes
        self._first, self._next = self._list(1), self._list(partitions)

    def fits(self, context: SparkContext, partitions: int, seats: Sequence[str]) -> bool:
        """Whether it is as it would be made from these."""
        return (self._context, self.partitions, self.seats) == (context, partitions, tuple(seats))

    def begin(self, stage: Callable[[Any], Going]) -> RDD[Any]:
        """The first stage, to whose tasks nothing comes."""
        from pyspark import RDD

        return RDD(self._first, self._context, _one_by_one()).mapPartitions(stage)

    def then(self, sent: RDD[Any], stage: Callable[[Coming], Going], folder: str) -> RDD[Any]:
        """The stage to whose tasks goes what those of another give.

        Args:
            sent: the other.
            stage: what its tasks do.
            folder: for files with what is much; it is there until the job is done.
        """
        from pyspark import RDD
        from pyspark.serializers import PairDeserializer

        jvm: Any = self._context._jvm
        records = sent.mapPartitionsWithIndex(_records(self.partitions, folder, self._most), preservesPartitioning=True)
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


def _records(partitions: int, folder: str, most: int) -> Callable[[int, Iterable[Parcel]], Iterator[bytes]]:
    """Makes one record for each partition of what a task gives."""

    def records(_: int, given: Iterable[Parcel]) -> Iterator[bytes]:
        from pyspark.serializers import pack_long

        going: list[list[Parcel]] = [[] for _ in range(partitions)]
        held = 0
        for parcel in given:
            going[parcel.partition].append(parcel)
            held += len(parcel.data)
            if held > most:
                going = [_in_a_file(one, folder) for one in going]
                held = 0
        for partition, parcels in enumerate(going):
            yield pack_long(partition)  # type: ignore[no-untyped-call]
            yield pickle.dumps([parcels], pickle.HIGHEST_PROTOCOL)
            parcels.clear()

    return records


def _in_a_file(parcels: list[Parcel], folder: str) -> list[Parcel]:
    """What is in memory of some parcels goes to a file."""
    files = [one for one in parcels if one.level == _FILE]
    if len(files) < len(parcels):
        path = f"{folder}/{uuid.uuid4().hex}.parcels"
        rest = [one for one in parcels if one.level != _FILE]
        storage_of(path).write(path, pickle.dumps(rest, pickle.HIGHEST_PROTOCOL))
        files.append(Parcel(_FILE, rest[0].partition, 0, "", path.encode(), ""))
    return files


def unpacked(came: Coming) -> Iterator[Parcel]:
    """The parcels that have come to a task, those in files as well."""
    for parcels, _ in came:
        for parcel in parcels:
            if parcel.level == _FILE:
                path = parcel.data.decode()
                yield from pickle.loads(storage_of(path).read(path))
            else:
                yield parcel
