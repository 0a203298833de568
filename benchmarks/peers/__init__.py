"""Runs the same workloads on Mobula, Ray and Dask in turn, and prints one table.

`make bench-peers`, or `python -m peers --help` in the directory above this one. README.md says what is compared and how.

    cli            parses arguments and prints progress and results
    environment    makes a virtual environment for each project
    bench          orders the runs and collects their results
    run, guard     one run: a child process, its deadline, and the end of all processes that it started
    memory         measures the memory of a run's processes
    table          prints the figures as a table or as JSON
    page           writes the figures into a Markdown page
    workload       what a file in workloads/ declares
    child          runs one workload on one system, in the child process
    sessions       starts and ends each system there

Only child, sessions and the bodies of workloads need more than the standard library.
"""
