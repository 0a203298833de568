"""joblib on Mobula: what joblib.Parallel calls runs as tasks of the node.

    from joblib import Parallel, delayed, parallel_config
    from mobula.util.joblib import register_mobula

    register_mobula()
    with parallel_config("mobula", n_jobs=-1):
        Parallel()(delayed(f)(x) for x in data)

n_jobs is how many batches run at once; by default, and with -1, as many as the node has CPUs. Further options of the backend
are those of mobula.Executor: initializer, initargs, and a task's, such as memory. Arguments are read in place from the node's
store, without copies and read-only; joblib's own memory-mapping (max_nbytes, temp_folder, mmap_mode) has nothing to do.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Callable, Optional

from joblib.parallel import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend, register_parallel_backend

from .._api import cluster_resources
from .._executor import Executor

# What Parallel hands to every backend, and is of no use to this one.
_NOT_OURS = ("context", "max_nbytes", "mmap_mode", "temp_folder", "verbose")


class MobulaBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """The backend that register_mobula registers."""

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, nesting_level: Optional[int] = None, inner_max_num_threads: Optional[int] = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads, **options)
        self._workers: Optional[Executor] = None
        self._configured: dict[str, Any] = {}

    def effective_n_jobs(self, n_jobs: Optional[int]) -> int:
        """How many batches run at once."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            n_jobs = self.default_n_jobs
        if n_jobs < 0:
            n_jobs = max(int(cluster_resources().get("CPU", 0)) + 1 + n_jobs, 1)
        return n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, prefer: Any = None, require: Any = None, **options: Any) -> int:
        """Gets an executor; with one job, the calls are made here and now instead."""
        n_jobs = self.effective_n_jobs(n_jobs)
        if n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self._configured = {k: v for k, v in options.items() if k not in _NOT_OURS}
        self._workers = Executor(n_jobs, **{**self.backend_kwargs, **self._configured})
        self.parallel = parallel
        return n_jobs

    def submit(self, func: Callable[[], Any], callback: Optional[Callable[[Any], Any]] = None) -> Future[Any]:
        """Has a batch run."""
        assert self._workers is not None
        future = self._workers.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The results of a batch that is done."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Kills what runs; with ensure_ready, batches may be submitted again."""
        if self._workers is not None:
            self._workers.kill_workers()
            self._workers = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel, **self._configured)

    def terminate(self) -> None:
        """Lets the executor go."""
        if self._workers is not None:
            self._workers.shutdown(wait=False)
            self._workers = None
        self.reset_batch_stats()


def register_mobula() -> None:
    """Makes "mobula" a backend of joblib: Parallel(backend="mobula"), parallel_config("mobula"), parallel_backend("mobula")."""
    register_parallel_backend("mobula", MobulaBackend)


__all__ = ["MobulaBackend", "register_mobula"]
