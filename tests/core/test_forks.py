"""Children that fork() makes while other threads are inside the package, and daemon threads at the end of a process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKS = """
import os, signal, sys, threading, time, warnings
import numpy as np
from crfkit import CRF, LBFGS, Chain, Patterns, SpanningTree
from crfkit.inference import TreeBatch
warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X = [[[f"w{int(random.integers(50))}"] for _ in range(5)] for _ in range(40)]
y = [["ABCDE"[int(random.integers(5))] for _ in x] for x in X]
models = [
    CRF(structure, optimizer=LBFGS(max_iterations=2), n_threads=2).fit(X, y)
    for structure in (Chain(), Chain(bigrams="observed"), Patterns(["A B", "C .* D"]))
]
allowed = [[["A", "B"]] * len(x) for x in X]

def ask(model):
    return model.predict(X), model.predict(X, allowed=allowed)

def fresh():  # whose parts are made at their first questions
    data = [pickle.dumps(model) for model in models]
    return [pickle.loads(one) for one in data]

import pickle
expected = [ask(model) for model in models]
shared = fresh()
stopped = False

def work():
    while not stopped:
        for model in shared:
            ask(model)

def renew():
    global shared
    while not stopped:
        shared = fresh()

threads = [threading.Thread(target=target) for target in (work, work, renew)]
for thread in threads:
    thread.start()
n_hung = n_wrong = 0
begin = time.time()
while time.time() - begin < float(sys.argv[1]) and not n_hung:
    child = os.fork()
    if child == 0:
        os._exit([ask(model) for model in shared] != expected)
    limit = time.time() + 20
    status = None
    while time.time() < limit:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            n_wrong += status != 0
            break
        time.sleep(0.001)
    else:
        n_hung += 1
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
stopped = True
for thread in threads:
    thread.join()
print(n_hung, n_wrong)
"""

HELD = """
import os, threading, time
import numpy as np
from tests.core.test_interruption import data
from crfkit.objective import Objective

dataset, annotation, features = data(200, 400, 60)
objective = Objective(features.loss(dataset, annotation, n_threads=2))
w = np.zeros(features.n_weights)
stopped = False
def work():
    while not stopped:
        objective.value_and_gradient(w)

thread = threading.Thread(target=work)
thread.start()
statuses = []
while 0 not in statuses and len(statuses) < 20:  # now and then, nobody has the objective
    time.sleep(0.2)
    child = os.fork()
    if child == 0:
        try:
            objective.value_and_gradient(w)
        except RuntimeError as error:
            os._exit(0 if "when the process was forked" in str(error) else 2)
        os._exit(3)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stopped = True
thread.join()
print(statuses[-1])
"""

DAEMON = """
import threading, time
from crfkit import CRF
X, y = [[["a"], ["b"]]] * 200, [["A", "B"]] * 200
model = CRF().fit(X, y)
def go():
    while True:
        model.predict(X)
threading.Thread(target=go, daemon=True).start()
time.sleep(0.3)
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
def test_children_of_a_process_with_threads_can_predict() -> None:
    ended = run(FORKS, "4")
    assert (ended.stdout.strip(), ended.stderr) == ("0 0", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
def test_an_objective_that_another_thread_was_using_is_refused_in_the_child() -> None:
    ended = run(HELD)
    assert (ended.stdout.strip(), ended.stderr) == ("0", "")


def test_a_daemon_thread_at_the_end_of_the_process_says_nothing() -> None:
    ended = run(DAEMON)
    assert (ended.returncode, ended.stderr) == (0, "")
