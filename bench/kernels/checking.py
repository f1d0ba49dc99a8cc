"""Configurations of a kernel of the caller's choice: compiled ahead, called, and checked, without a
daemon."""

import os
import pathlib
import random
import threading
import time

import torch
from compiling import Compiler
from device import device_constants
from driver import bind_plan
from operations import TYPE_NAMES, excess
from products import GUARD
from spec import Spec

ROOT = pathlib.Path(__file__).resolve().parents[2]


def short(configuration):
    return ",".join(str(value) for value in configuration.values())


def bits(output):
    """A NaN is no different from itself."""
    return output.view(torch.uint8)


class Watchdog:
    """Ends the process with exit code 3, and says in which case, where one takes longer than `seconds`: a
    kernel that never ends cannot be interrupted."""

    def __init__(self, seconds):
        self.seconds, self.case, self.end = seconds, "", None
        threading.Thread(target=self._watch, daemon=True).start()

    def watch(self, case):
        self.case, self.end = case, time.monotonic() + self.seconds

    def rest(self):
        self.end = None

    def _watch(self):
        while True:
            time.sleep(0.2)
            end = self.end
            if end is not None and time.monotonic() > end:
                print(f"HUNG {self.case}: no end after {self.seconds} s", flush=True)
                os._exit(3)


class Checker:
    """Of one kernel spec."""

    def __init__(self, kernel):
        self.spec = Spec.read(next(ROOT.glob(f"variants/*/{kernel}.json")))
        self.device = device_constants()
        suffix = "a" if self.device["cc"] >= 90 and self.spec.fields.get("arch_features") else ""
        self.compiler = Compiler(f"sm_{self.device['cc']}{suffix}")
        self.faults = []
        self.watchdog = Watchdog(30)

    def fault(self, p, operands, truth):
        """What is wrong with the outputs of a call, or nothing. The truth may be of an output's last elements
        alone."""
        for name, output in operands.outputs.items():
            count = output.numel() - GUARD
            if not torch.isnan(output[count:]).all():
                return f"wrote beyond {name}"
            begin = count - truth[name].numel()
            if torch.isnan(output[:begin]).any():
                return f"left elements of {name} as they were"
            bounds = self.spec.tolerance(TYPE_NAMES[output.dtype], name, p)
            worst = excess(output[begin:count].view(truth[name].shape), truth[name], bounds)
            if worst > 1:
                return f"{name} departs from float64 by {worst:.3g} of the tolerance"
        return ""

    def label(self, p):
        return " ".join(f"{name}={value}" for name, value in p.items())

    def configurations(self, p):
        return self.spec.configurations(p, self.device)

    def default(self, p):
        return self.spec.default(p, self.device)

    def launches(self, p, configuration):
        return self.spec.launches(p, configuration, self.device)

    def order(self, p, configuration):
        entries = [launch["entry"] for launch in self.launches(p, configuration)]
        return self.compiler.start(self.spec, entries)

    def order_valid(self, p, limit):
        """The default and the other valid configurations, at most `limit` of them (0: all), whose compiles
        begin at once."""
        valid, default = self.configurations(p), self.default(p)
        if limit:
            valid = random.Random(0).sample(valid, min(limit, len(valid)))
        chosen = [default, *(c for c in valid if c != default)]
        for configuration in chosen:
            self.order(p, configuration)
        return chosen

    def call(self, p, configuration, operands):
        """A call of the configuration on the operands, or None where it does not compile."""
        cubin, symbols, error = self.order(p, configuration).result()
        if error:
            self.note(p, configuration, "does not compile: " + error.strip()[-300:])
            return None
        launches = self.launches(p, configuration)
        for launch in launches:
            launch["entry_symbol"] = symbols[launch["entry"]]
        return bind_plan(cubin, {"launches": launches}, operands.buffers, operands.scalars)

    def count_right(self, cases):
        """{name: [right, wrong]} of (name, problem, configuration, operands, truth), which is printed too."""
        counts = {}
        for name, *case in cases:
            counts.setdefault(name, [0, 0])[0 if self.is_right(*case) else 1] += 1
        for name, (right, wrong) in sorted(counts.items()):
            print(f"{name}: {right} right, {wrong} wrong", flush=True)
        return counts

    def note(self, p, configuration, fault):
        self.faults.append({"problem": p, "configuration": configuration, "fault": fault})
        print(f"WRONG {self.label(p)} [{short(configuration)}]: {fault}", flush=True)

    def is_right(self, p, configuration, operands, truth):
        """Whether two calls leave the same bits, without a fault."""
        call = self.call(p, configuration, operands)
        if call is None:
            return False
        self.watchdog.watch(f"{self.label(p)} [{short(configuration)}]")
        runs = []
        for _ in range(2):
            for output in operands.outputs.values():
                output.fill_(float("nan"))
            call()
            torch.cuda.synchronize()
            runs.append([output.clone() for output in operands.outputs.values()])
        self.watchdog.rest()
        call.unload()
        fault = self.fault(p, operands, truth)
        if not fault and not all(
            torch.equal(bits(first[:-GUARD]), bits(second[:-GUARD]))
            for first, second in zip(*runs, strict=True)
        ):
            fault = "other bits the second time"
        if fault:
            self.note(p, configuration, fault)
        return not fault
