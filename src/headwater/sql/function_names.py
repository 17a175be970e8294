"""Names of Spark's functions that are not scalar functions here, by the reason why."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Aggregates that a map's counts and sums can answer.
AGGREGATES = {"sum": "sum", "count": "count", "avg": "avg", "mean": "avg"}

OTHER_AGGREGATES = _words(
    """
    any any_value approx_count_distinct approx_percentile array_agg bit_and bit_or bit_xor bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kurtosis last last_value
    listagg max max_by median min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
    stddev_pop stddev_samp string_agg try_avg try_sum var_pop var_samp variance
    """
)

WINDOW_FUNCTIONS = _words("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")

GENERATORS = _words("explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack")

#: Their value depends on when, where or by whom they are asked, so no stored result could stay right.
NOT_DETERMINISTIC = _words(
    """
    curdate current_catalog current_database current_date current_datetime current_role current_schema current_time
    current_timestamp current_timezone current_user input_file_block_length input_file_block_start input_file_name
    localtimestamp monotonically_increasing_id now rand randn random randstr session_user shuffle spark_partition_id
    uniform user uuid version
    """
)

#: Functions of the algebra that have syntax of their own and cannot be called by name.
NOT_CALLABLE = frozenset({"and", "case", "in", "negate", "not", "or"})

#: Other names of functions that have an operator; one name each, so that equal expressions are equal.
OPERATORS = {"isnull": "is null", "isnotnull": "is not null", "mod": "%", "negative": "negate", "iff": "if"}

#: `int(x)` is CAST(x AS INT).
TYPE_NAMES = _words("bigint binary boolean date decimal double float int smallint string timestamp tinyint")

#: Functions whose first argument, when there are three, is the bare name of a unit: `dateadd(DAY, 3, d)`.
UNIT_FIRST = _words("date_add date_diff dateadd datediff timestampadd timestampdiff")
