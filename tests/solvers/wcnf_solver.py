"""A MaxSAT solver that needs nothing of ours, and its faults: python wcnf_solver.py MODE FILE."""

import signal
import subprocess
import sys
import time
from pathlib import Path


def parse(path):
    hard, soft, variables, top = [], [], 0, None
    with Path(path).open() as file:
        for line in file:
            words = line.split()
            if not words or words[0] == "c":
                continue
            if words[0] == "p":
                variables, top = int(words[2]), int(words[4])
                continue
            literals = [int(word) for word in words[1:-1]]
            assert words[-1] == "0"
            variables = max([variables, *map(abs, literals)])
            if words[0] == "h" or (top is not None and int(words[0]) >= top):
                hard.append(literals)
            else:
                soft.append((int(words[0]), literals))
    return variables, hard, soft


def solve(variables, hard, soft, improved=lambda cost, bits: None):
    best, best_bits = None, None
    # Few of the assignments satisfy the hard clauses: extend partial ones, checking as they grow.
    by_last = {}
    for clause in hard:
        by_last.setdefault(max(map(abs, clause)), []).append(clause)
    stack = [()]
    while stack:
        bits = stack.pop()
        known = len(bits)
        holds = all(
            any(bits[abs(x) - 1] == (x > 0) for x in clause) for clause in by_last.get(known, [])
        )
        if not holds:
            continue
        if known < variables:
            stack += [(*bits, False), (*bits, True)]
            continue
        cost = sum(
            weight
            for weight, clause in soft
            if not any(bits[abs(x) - 1] == (x > 0) for x in clause)
        )
        if best is None or cost < best:
            best, best_bits = cost, bits
            improved(cost, bits)
    return best, best_bits


def literals(bits):
    return "v " + " ".join(str(n if bit else -n) for n, bit in enumerate(bits, 1)) + " 0"


def string(bits):
    return "v " + "".join("01"[bit] for bit in bits)


def say(*lines):
    for line in lines:
        print(line, flush=True)


def main(mode, path):
    if mode == "hang":
        time.sleep(600)
    if mode == "crash":
        print("c about to fail", flush=True)
        sys.exit("segments are at fault")
    cost, bits = solve(*parse(path))
    if mode == "literals":
        say("c some remark", f"o {cost}", "s OPTIMUM FOUND", literals(bits))
        sys.exit(30)
    if mode == "string":
        say(f"o {cost}", "s OPTIMUM FOUND", string(bits))
    if mode == "lines":  # an assignment over several lines
        say(f"o {cost}", "s OPTIMUM FOUND", *(f"v {word}" for word in literals(bits).split()[1:]))
    if mode == "hang-with-incumbent":
        say(f"o {cost}", string(bits))
        time.sleep(600)
    if mode == "hang-deaf":  # ends only when it is killed, and so does its child
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        say(f"c child {child.pid}", f"o {cost}", string(bits))
        Path(path + ".child").write_text(str(child.pid))
        time.sleep(600)
    if mode == "polite":  # prints its incumbent when it is asked to stop

        def stop(*_):
            say(f"o {cost}", "s SATISFIABLE", string(bits))
            sys.exit(10)

        signal.signal(signal.SIGTERM, stop)
        time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
