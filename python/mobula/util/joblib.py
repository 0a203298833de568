"""A joblib backend: joblib.Parallel runs its calls as tasks on the node.

    from joblib import Parallel, delayed, parallel_config
    from mobula.util.joblib import register_mobula

    register_mobula()
    with parallel_config("mobula", n_jobs=-1):
        Parallel()(delayed(f)(x) for x in data)

n_jobs: how many batches run at once; by default, and with -1, the node's number of CPUs. Further options of the backend are those of
mobula.Executor: initializer, initargs, and options of a task, such as memory. Array arguments are read-only views of the node's store, without
a copy; a call that writes to one runs again with private copies. joblib's own memory-mapping (max_nbytes, temp_folder, mmap_mode) is not used.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Callable, Optional

from joblib.parallel import AutoBatchingMixin, BatchedCalls, FallbackToBackend, ParallelBackendBase, SequentialBackend, register_parallel_backend

from .._api import cluster_resources
from .._exception_parts import settable
from .._executor import Executor
from .._functions import calls_user_code
from .._worker.second_run import after_a_crash, private_inputs, second_run

# Arguments that Parallel passes to every backend, and that this one ignores.
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
        """Makes an executor. With one job it falls back to running the calls in this thread."""
        n_jobs = self.effective_n_jobs(n_jobs)
        if n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self._configured = {k: v for k, v in options.items() if k not in _NOT_OURS}
        self._workers = Executor(n_jobs, **{**self.backend_kwargs, **self._configured})
        self.parallel = parallel
        return n_jobs

    def submit(self, func: BatchedCalls, callback: Optional[Callable[[Any], Any]] = None) -> Future[Any]:
        """Submits a batch of calls."""
        assert self._workers is not None
        future = self._workers.submit(_Batch(func))
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The results of a finished batch."""
        try:
            return out.result()
        except BaseException as x:
            y = settable(x)  # joblib sets a field of it
            if y is x:
                raise
            raise y from x.__cause__

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Kills running batches. ensure_ready: makes a new executor, so that batches can be submitted again."""
        if self._workers is not None:
            self._workers.kill_workers()
            self._workers = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel, **self._configured)

    def terminate(self) -> None:
        """Shuts the executor down."""
        if self._workers is not None:
            self._workers.shutdown(wait=False)
            self._workers = None
        self.reset_batch_stats()


# ---- in a worker


class _Batch:
    """A batch of calls. One that may have written to an argument runs a second time, with private copies; those that have succeeded do not."""

    def __init__(self, func: BatchedCalls) -> None:
        self.func = func

    def __call__(self) -> list[Any]:
        alone, done = after_a_crash(), list[Any]()
        batch = self.func if alone is None else private_inputs(alone)[0].func
        calls = batch.items
        while True:
            n = len(done)
            batch.items = [(_Kept(f, done), args, kwargs) for f, args, kwargs in calls[n:]]
            try:
                _run(batch)
                return done
            except BaseException as x:
                call = second_run(x) if alone is None else None
                if call is None:
                    raise
            n = len(done)
            again = private_inputs(call)[0].func
            again.items = [(_Kept(f, done), args, kwargs) for f, args, kwargs in again.items[n:n + 1]]
            _run(again)
            del again


class _Kept:
    """Keeps the results of a function."""

    def __init__(self, func: Callable[..., Any], done: list[Any]) -> None:
        self._func = func
        self._done = done

    @calls_user_code
    def __call__(self, /, *args: Any, **kwargs: Any) -> None:  # a call may have an argument called self
        self._done.append(self._func(*args, **kwargs))


@calls_user_code
def _run(batch: BatchedCalls) -> None:
    batch()


# ---- in the program


def register_mobula() -> None:
    """Registers the joblib backend "mobula", for Parallel(backend="mobula"), parallel_config("mobula") and parallel_backend("mobula")."""
    register_parallel_backend("mobula", MobulaBackend)


__all__ = ["MobulaBackend", "register_mobula"]
