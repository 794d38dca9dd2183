"""Places to measure at: several at a time on a machine with many processors, each with two of its own and its own busy processes."""
import concurrent.futures
import contextlib
import os
import queue
import subprocess
import sys
import tempfile
import threading

PLACE = threading.local()  # of a thread that has processors of its own: who measures there waits for nobody else


def most_places():
    return max(1, len(os.sched_getaffinity(0)) // 2)


def at_once(work, items, count):
    """work(item) of all items, in their order, and each as soon as it is there. Each of `count` threads has two processors, and what
    it starts has them too; count None: all processors, one item at a time."""
    if count is None:
        yield from map(work, items)
        return
    processors, pairs = sorted(os.sched_getaffinity(0)), queue.SimpleQueue()
    for i in range(count):
        pairs.put(processors[2 * i:2 * i + 2])

    def take_place():
        os.sched_setaffinity(0, pairs.get())
        PLACE.locks = tempfile.mkdtemp(prefix="hone-locks-", dir=folder)

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(count, initializer=take_place) as pool:
        yield from pool.map(work, items)


def variables():
    """The environment variables that a place adds."""
    return {"HONE_DEVICE_LOCKS": PLACE.locks} if hasattr(PLACE, "locks") else {}


@contextlib.contextmanager
def busy(count):
    """Processes that compute all the while."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
