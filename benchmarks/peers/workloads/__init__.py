"""The workloads, one per file: the same work on each system."""
