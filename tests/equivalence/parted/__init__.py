"""Views of parts against their unfolding: after every step, every part holds what its query says over the rows so far.

`generate` makes a case of a seed, `unfold` says what must be there, `judges` evaluate the queries of parts one by one,
`machine` runs patterns row by row, `check` runs a case on Headwater and compares, `shrink` makes a failing one small.
"""
