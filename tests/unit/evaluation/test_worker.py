import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.worker import client
from llmkernel.evaluation.worker.client import Worker, WorkerLostError, WorkerPool, worker_environment


@pytest.fixture(scope="module")
def pool():
    pool = WorkerPool()
    yield pool
    pool.close()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def test_a_worker_says_what_its_device_is(pool):
    limits = pool.get("cpu").limits()
    assert limits.device == "cpu"
    assert limits.max_threads_per_block >= 1024


def test_the_same_worker_is_handed_out_while_it_lives(pool):
    assert pool.get("cpu") is pool.get("cpu")


def test_a_killed_worker_is_replaced_by_the_spare(pool):
    worker = pool.get("cpu")
    pool.warm("cpu")
    os.killpg(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError) as lost:
        worker.request({"op": "time_sample", "count": 1}, timeout=30)
    assert lost.value.fault.kind == "killed"
    assert "not for want of memory" in lost.value.fault.message
    assert not worker.is_alive
    assert pool.get("cpu").is_alive


def test_a_request_that_takes_too_long_ends_the_worker(pool):
    worker = pool.get("cpu")
    worker.wait_until_ready()
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(WorkerLostError) as lost:
        worker.request({"op": "time_close"}, timeout=0.2)
    assert lost.value.fault.kind == "timeout"
    assert not is_running(worker.pid)


def test_an_interrupt_ends_the_worker_and_passes_through(pool):
    worker = pool.get("cpu")
    os.kill(worker.pid, signal.SIGSTOP)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        worker.request({"op": "time_close"}, timeout=60)
    assert not is_running(worker.pid)


def test_an_unknown_request_is_answered_with_an_error_and_loses_nothing_else(pool):
    with pytest.raises(WorkerLostError, match="AttributeError"):
        pool.get("cpu").request({"op": "nonsense"}, timeout=30)
    assert pool.get("cpu").limits().device == "cpu"


def test_closing_leaves_no_process():
    worker = Worker("cpu").start()
    worker.hello()
    worker.close()
    assert not is_running(worker.pid)


def test_a_worker_ends_when_its_standard_input_closes():
    command = [sys.executable, "-m", "llmkernel.evaluation.worker", "cpu"]
    subprocess.run(
        command, input=b"", capture_output=True, env=worker_environment("cpu", None), timeout=60, check=True
    )


@pytest.mark.parametrize("scratch", [None, Path("/scratch")])
def test_workers_get_no_secrets(monkeypatch, scratch):
    for name in ("ANTHROPIC_API_KEY", "MY_SECRET", "HF_TOKEN", "DB_PASSWORD", "SESSION_COOKIE"):
        monkeypatch.setenv(name, "planted-value")
    assert "planted-value" not in worker_environment("cuda", scratch).values()


def test_a_worker_that_runs_candidates_gets_what_it_needs_and_no_more(monkeypatch):
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.setenv("DATABASE_URL", "postgres://me:pass@host/db")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    made = worker_environment("cuda", Path("/scratch"))
    assert not {"SSH_AUTH_SOCK", "DATABASE_URL"} & set(made)
    assert made["CUDA_VISIBLE_DEVICES"] == "1"
    assert made["LLMKERNEL_CACHE_DIR"].startswith("/scratch")
    # The user's own code in a baseline may need either.
    assert worker_environment("cuda", None)["DATABASE_URL"]


def test_large_arrays_cross_in_both_directions(pool):
    from llmkernel.devices.plan import Buffer, LaunchPlan

    worker = pool.get("cpu")
    source = "//! f(inout x: uint8[N])\n__global__ void f() {}\n"
    module, _ = worker.request(
        {"op": "compile", "source": source, "kernels": ["f"], "arch": None}, timeout=60
    )
    plan = LaunchPlan((Buffer("x", "uint8", (5_000_000,), "inout"),), (), ("x",))
    x = np.random.default_rng(0).integers(0, 256, 5_000_000, dtype=np.uint8)
    options = {
        "timeout_seconds": 20.0,
        "thread_order": "forward",
        "seed": 1,
        "is_fresh_module": False,
        "dirties_shared": True,
    }
    answer, blobs = worker.request(
        {
            "op": "draw",
            "module": module["module"],
            "plan": plan.to_dict(),
            "inputs": ["x"],
            "repeats": 2,
            "seed": 3,
            "options": options,
        },
        [x],
        timeout=60,
    )
    assert answer["fault"] is None
    np.testing.assert_array_equal(blobs[0], x)


def test_a_worker_that_has_ended_is_not_waited_for(pool):
    worker = pool.get("cpu")
    worker.close()
    for _ in range(2):
        with pytest.raises(WorkerLostError):
            worker.request({"op": "time_close"}, timeout=600)


def test_a_fork_of_the_process_has_workers_of_its_own(pool):
    worker = pool.get("cpu")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert pool.get("cpu").pid != worker.pid
            worker.close()
            pool.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.get("cpu") is worker
    assert worker.limits().device == "cpu"


def test_garbage_from_a_worker_is_asked_for_again(pool):
    worker = pool.get("cpu")
    worker.wait_until_ready()
    ours = Path(f"/proc/self/fd/{worker._process._process.stdout.fileno()}").readlink()
    theirs = [f for f in Path(f"/proc/{worker.pid}/fd").iterdir() if f.readlink() == ours]
    theirs[0].write_bytes(b"not a frame, but long enough for its first words")
    with pytest.raises(WorkerLostError) as lost:
        worker.request({"op": "time_close"}, timeout=60)
    assert lost.value.is_interference


def test_a_worker_that_talks_without_end_is_no_matter(pool):
    worker = pool.get("cpu")
    worker.wait_until_ready()
    with Path(f"/proc/{worker.pid}/fd/2").open("wb") as stream:
        stream.write(b"noise " * 500_000)
    worker.request({"op": "time_close"}, timeout=60)
    assert len(worker._process.last_words()) <= 300


def test_a_worker_that_cannot_be_started_is_not_tried_with_less_of_its_sandbox(monkeypatch):
    monkeypatch.setattr(client, "_SETTLED", {})
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    started = []
    monkeypatch.setattr(Worker, "start", lambda self: (started.append(self), self._process.start(), self)[2])
    worker = Worker("cpu").start()
    with pytest.raises(LLMKernelError, match="did not start"):
        worker.hello()
    assert len(started) == 1
