"""Dask's own tests, as its wheel ships them, under a scheduler put in the place of Dask's.

They run in two modes. `baseline` is `dask.multiprocessing.get` over one pool of forked processes; what fails there is Dask's
affair. `mobula` is ours, and must not do worse on any test. `plan` says what is run, `__main__` how it is asked for.

A session is one pytest process over some of the tests (`session`, and `reporter` inside it). A shard is tests that are run by
one session if nothing goes wrong, and by as many as it takes if one of them kills it (`shard`). The `runner` runs shards side by
side and puts every outcome into a state file (`state`), from which a run that was stopped goes on. `record` is the baseline's
state made small, which is kept with the code; `compare` holds a run against it.
"""
