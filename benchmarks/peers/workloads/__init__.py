"""A file each: the same work on each system."""
