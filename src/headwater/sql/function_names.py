"""Names of Spark's functions that are not scalar functions here, by the reason why."""

from __future__ import annotations

from headwater import types as t


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Aggregates, by the names they are called by.
AGGREGATES = {
    "any": "bool_or",
    "any_value": "any_value",
    "approx_count_distinct": "approx_count_distinct",
    "array_agg": "collect_list",
    "avg": "avg",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "collect_list": "collect_list",
    "collect_set": "collect_set",
    "count": "count",
    "count_if": "count_if",
    "every": "bool_and",
    "first": "first",
    "first_value": "first",
    "grouping": "grouping",
    "grouping_id": "grouping_id",
    "last": "last",
    "last_value": "last",
    "max": "max",
    "max_by": "max_by",
    "mean": "avg",
    "median": "median",
    "min": "min",
    "min_by": "min_by",
    "percentile": "percentile",
    "percentile_cont": "percentile_cont",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "sum": "sum",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
}

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

#: Functions that say which windows of time a row is in, and so may make several rows of it.
TIME_WINDOWS = frozenset({"window", "session_window"})

GENERATORS = _words("explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack")

#: Their value depends on when, where or by whom they are asked, so no stored result could stay right.
NOT_DETERMINISTIC = _words(
    """
    current_catalog current_database current_datetime current_role current_schema current_time current_timezone
    current_user input_file_block_length input_file_block_start input_file_name localtimestamp
    monotonically_increasing_id rand randn random randstr session_user shuffle spark_partition_id uniform user uuid
    version
    """
)

#: Functions of no arguments that read the clock, and what is made of its reading.
CLOCK_FUNCTIONS = {
    "curdate": "date",
    "current_date": "date",
    "current_timestamp": "timestamp",
    "current_week": "week",
    "now": "timestamp",
    "unix_timestamp": "seconds",
}

#: Functions of the algebra that have syntax of their own and cannot be called by name.
NOT_CALLABLE = frozenset({"and", "case", "element", "field", "in", "negate", "not", "or"})

#: Other names of functions that have an operator; one name each, so that equal expressions are equal.
OPERATORS = {
    "equal_null": "<=>",
    "iff": "if",
    "isnotnull": "is not null",
    "isnull": "is null",
    "mod": "%",
    "negative": "negate",
}

#: `int(x)` is CAST(x AS INT).
TYPE_NAMES = _words("bigint binary boolean date decimal double float int smallint string timestamp tinyint")

#: Functions whose first argument, when there are three, is the bare name of a unit: `dateadd(DAY, 3, d)`.
UNIT_FIRST = {
    **dict.fromkeys(("date_add", "dateadd", "timestampadd"), "timestampadd"),
    **dict.fromkeys(("date_diff", "datediff", "timestampdiff"), "timestampdiff"),
}

#: Without a format these are TRY_CAST.
TRIED_CASTS = {"try_to_date": t.DATE, "try_to_timestamp": t.TIMESTAMP}

#: Spark's other scalar functions, which Headwater does not have.
OTHER_FUNCTIONS = _words(
    """
    aes_decrypt aes_encrypt approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate
    array_insert arrays_zip assert_true bitmap_and_agg bitmap_bit_position bitmap_bucket_number bitmap_count collate
    collation collations collect_union conv convert_timezone counter_diff crc32 current_path
    format_string from_avro from_base32 from_csv from_json from_protobuf from_utc_timestamp from_xml get_json_object
    hash hll_sketch_estimate hll_union hmac is_valid_utf8 is_valid_variant is_variant_null jaro_winkler_similarity
    java_method json_array_length json_object_keys kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double
    kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
    kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float localtime make_dt_interval make_interval make_time make_timestamp_ntz make_valid_utf8
    make_ym_interval map_concat map_filter map_from_entries map_zip_with measure parse_json parse_url printf
    python_worker_logs quote raise_error reflect schema_of_avro schema_of_csv schema_of_json schema_of_variant
    schema_of_variant_agg schema_of_xml sentences sequence sql_keywords st_asbinary st_geogfromwkb
    st_geomfromwkb st_setsrid st_srid str_to_map theta_difference theta_intersection theta_intersection_agg
    theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time time_bucket time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp_nanos to_avro
    to_base32 to_binary to_char to_csv to_json to_number to_protobuf to_time to_timestamp_ntz to_utc_timestamp
    to_varchar to_variant_object to_xml transform_keys transform_values try_aes_decrypt try_make_interval
    try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_parse_json try_parse_url try_reflect
    try_to_binary try_to_number try_to_time try_url_decode try_validate_utf8 try_variant_array_append try_variant_get
    try_variant_insert try_variant_set tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
    tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
    tuple_sketch_theta_integer tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer unix_nanos validate_utf8 variant_array_append variant_delete
    variant_explode variant_explode_outer variant_get variant_insert variant_set variant_strip_nulls vector_avg
    vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum
    xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
    xxhash64 zip_with
    """
)
