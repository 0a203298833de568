"""Runs Dask's own tests, as its wheel ships them, under a scheduler in place of Dask's.

There are two modes. `baseline` is `dask.multiprocessing.get` over one pool of forked processes; tests that fail there are not
Mobula's fault. `mobula` is Mobula's scheduler, which must not do worse on any test. `plan` has the tests and modes, `__main__` the
command line.

A session is one pytest process for some of the tests (`session`, with `reporter` inside it). A shard is a list of tests for one
session; if a test kills the session, further sessions run the rest (`shard`). The `runner` runs shards in parallel and writes every
outcome to a state file (`state`), from which a stopped run continues. `record` is the baseline's state in a compact form, which is
kept with the code; `compare` compares a run with it.
"""
