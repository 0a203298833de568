"""The same work on Mobula, Ray and Dask, run in turn, in one table.

`make bench-peers`, or `python -m peers --help` in the directory above this one. README.md says what is compared and how.

    cli            arguments, and what is printed when
    environment    a virtual environment for each project
    bench          which run comes after which, and what they gave
    run, guard     one run: a child process, its deadline, and the end of all it started
    memory         what a run's processes hold
    table          the figures as a table, or as JSON
    workload       what a file in workloads/ declares
    child          what runs in the child: one workload on one system
    sessions       how each system is started there

All but child, sessions and the bodies of workloads needs nothing but the standard library.
"""
