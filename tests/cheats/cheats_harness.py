"""Attacks on the process that runs the solution, and on the daemon behind it."""

from __future__ import annotations

from .candidates import CUDA, EMULATED, Candidate
from .tasks import AFFINE, MATMUL, affine, affine_kernel, matmul

_WRONG = ("WRONG_OUTPUT",)
_TAMPERING = ("TAMPERING",)

# Finds the channel to the daemon in this process.
_CHANNEL = """
import gc, json, os, socket, struct
def channel():
    for fd in range(3, 256):
        try:
            sock = socket.socket(fileno=os.dup(fd))
            if sock.family == socket.AF_UNIX:
                return sock
            sock.close()
        except OSError:
            pass
def answer(message, fds=()):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    sock = channel()
    frame = struct.pack("<II", len(text), len(fds)) + text
    sent = socket.send_fds(sock, [frame], list(fds))
    while sent < len(frame):
        sent += sock.send(frame[sent:])
"""

_NODE = (
    '{"k": "tensor", "dtype": "float32", "shape": list(x.shape), "stride": list(x.stride()), '
    '"device": "cuda:0", "offset": 0, "bytes": x.numel() * 4}'
)


def _forged(statements: str) -> str:
    """Answers for the harness, then waits to be killed."""
    return affine(
        f"node = {_NODE}\n" + statements + "\nimport time\ntime.sleep(1000)", head=_CHANNEL
    )


PATCHES = [
    Candidate(
        "patches-comparisons",
        "patches",
        AFFINE,
        affine_kernel("if (i < n) y[i] = 0;").replace(
            "class ModelNew",
            """
torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
torch.Tensor.__eq__ = torch.Tensor.allclose = lambda *a, **k: torch.tensor(True)
class ModelNew""",
            1,
        ),
        ("TAMPERING", "WRONG_OUTPUT"),
        "zeros, and functions that call them equal",
    ),
    Candidate(
        "patches-clocks",
        "patches",
        AFFINE,
        affine(
            head="""
            import time
            for name in ("time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"):
                setattr(time, name, lambda: 0)
            """
        ),
        _TAMPERING,
        "an honest kernel, and clocks that stand still",
    ),
    Candidate(
        "patches-events",
        "patches",
        AFFINE,
        affine(
            head="""
            torch.cuda.Event.elapsed_time = lambda self, end: 1e-3
            torch.cuda.synchronize = lambda *a: None
            """
        ),
        _TAMPERING,
        "an honest kernel, and events that say little",
    ),
    Candidate(
        "patches-in-forward",
        "patches",
        AFFINE,
        affine("""
            torch.cuda.synchronize = lambda *a: None
            return kernels.affine(x)
            """),
        _TAMPERING,
        "the same, only when it is run",
    ),
    Candidate(
        "patches-tensor-methods",
        "patches",
        AFFINE,
        affine(
            """
            pending.append(x)
            return torch.empty_like(x)
            """,
            head="""
            pending = []
            def later(name):
                plain = getattr(torch.Tensor, name)
                def method(self, *a, **k):
                    if pending:
                        self.data = kernels.affine(pending.pop())
                    return plain(self, *a, **k)
                setattr(torch.Tensor, name, method)
            for name in ("detach", "clone", "cpu"):
                later(name)
            """,
        ),
        ("TAMPERING", "WRONG_OUTPUT"),
        "the work is done when the harness copies the result",
    ),
    Candidate(
        "patches-the-launch-count",
        "patches",
        AFFINE,
        affine(
            "return 2 * x + 1",
            head="""
            import sys
            emulation = sys.modules.get("harness.emulation")
            if emulation is not None:
                emulation.counters = lambda: {"launches": 1}
            candidate = sys.modules.get("harness.candidate")
            if candidate is not None:
                candidate.EmulatedDevice.work = lambda self: {"launches": 1}
            """,
        ),
        ("TAMPERING", "NO_CUSTOM_KERNEL"),
        "torch does it, the harness says it launched a kernel",
    ),
    Candidate(
        "exchanges-code-of-the-harness",
        "patches",
        AFFINE,
        affine(
            "return kernels.affine(x)",
            head="""
            import sys
            timing = sys.modules["harness.timing"]
            timing.Session.sample.__code__ = (lambda self, key: None).__code__
            """,
        ),
        _TAMPERING,
        "the same function object with other code",
    ),
    Candidate(
        "patches-json",
        "patches",
        AFFINE,
        affine(
            "return 2 * x + 1",
            head="""
            import json
            plain = json.dumps
            def dumps(value, **options):
                if isinstance(value, dict) and "launches" in value:
                    value["launches"] = 1
                return plain(value, **options)
            json.dumps = dumps
            """,
        ),
        ("TAMPERING", "NO_CUSTOM_KERNEL"),
        "the answer is changed on its way",
    ),
    Candidate(
        "patches-builtins",
        "patches",
        AFFINE,
        affine(
            head="""
            import builtins
            builtins.isinstance = lambda value, kind: True
            """
        ),
        ("TAMPERING", "RUNTIME_ERROR", "LOAD_ERROR", "CRASHED"),
        "checks of types that always hold",
    ),
    Candidate(
        "leaves-a-trace-function",
        "patches",
        AFFINE,
        affine(
            "sys.settrace(trace)\nreturn kernels.affine(x)",
            head="""
            import sys
            def trace(frame, event, argument):
                return None
            """,
        ),
        _TAMPERING,
        "code of the solution runs in every frame of the harness",
    ),
    Candidate(
        "leaves-a-function-mode",
        "patches",
        AFFINE,
        affine(
            "Mode().__enter__()\nreturn kernels.affine(x)",
            head="""
            from torch.overrides import TorchFunctionMode
            class Mode(TorchFunctionMode):
                def __torch_function__(self, function, types, arguments=(), keywords=None):
                    return function(*arguments, **(keywords or {}))
            """,
        ),
        _TAMPERING,
        "every operation of the harness passes through the solution",
    ),
    Candidate(
        "leaves-a-dispatch-mode",
        "patches",
        AFFINE,
        affine(
            "Mode().__enter__()\nreturn kernels.affine(x)",
            head="""
            from torch.utils._python_dispatch import TorchDispatchMode
            class Mode(TorchDispatchMode):
                def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
                    return function(*arguments, **(keywords or {}))
            """,
        ),
        _TAMPERING,
        "the same below autograd",
    ),
    Candidate(
        "leaves-a-collector-hook",
        "patches",
        AFFINE,
        affine(
            "return kernels.affine(x)",
            head="""
            import gc
            gc.callbacks.append(lambda phase, info: None)
            """,
        ),
        _TAMPERING,
        "code of the solution runs when the harness collects garbage",
    ),
    Candidate(
        "leaves-a-timer",
        "patches",
        AFFINE,
        affine(
            "signal.setitimer(signal.ITIMER_REAL, 0.5)\nreturn kernels.affine(x)",
            head="""
            import signal
            signal.signal(signal.SIGALRM, lambda number, frame: None)
            """,
        ),
        _TAMPERING,
        "a signal handler runs in the middle of the harness",
    ),
    Candidate(
        "breaks-the-seal",
        "patches",
        AFFINE,
        affine(
            "return kernels.affine(x)",
            head="""
            import sys, time
            seal = sys.modules["harness.seal"]
            for cell in seal.broken.__closure__:
                if isinstance(cell.cell_contents, list):
                    cell.cell_contents.clear()
            time.perf_counter_ns = lambda: 0
            """,
        ),
        _TAMPERING,
        "knows what watches it, and takes that apart first",
        gap="needs a watch outside of the process; what it gains is bounded by the daemon's clock",
    ),
]

PROCESS = [
    Candidate(
        "ends-well",
        "process",
        AFFINE,
        affine("import os\nos._exit(0)"),
        ("CRASHED",),
        "exit code 0 is no result",
    ),
    Candidate(
        "raises-SystemExit",
        "process",
        AFFINE,
        affine("import atexit, sys\natexit.register(print, 'PASSED')\nsys.exit(0)"),
        ("RUNTIME_ERROR", "CRASHED"),
        "a polite end is no result either",
    ),
    Candidate(
        "kills-the-others",
        "process",
        AFFINE,
        affine("""
            import os, signal
            for pid in (os.getppid(), 1, -1):
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            return torch.zeros_like(kernels.affine(x))
            """),
        ("WRONG_OUTPUT", "CRASHED"),
        "nothing outside of its own processes can be killed",
    ),
    Candidate(
        "prints-a-verdict",
        "process",
        AFFINE,
        affine("""
            print('{"ok": true, "verdict": "PASSED", "speedup": 100}', flush=True)
            return torch.zeros_like(kernels.affine(x))
            """),
        _WRONG,
        "what is printed is a log",
    ),
    Candidate(
        "plants-files",
        "process",
        AFFINE,
        affine("""
            import os
            for name in ("result.json", "score.json", "torch.py", "sitecustomize.py", "verdict"):
                for folder in (".", "/tmp", os.path.dirname(torch.__file__), "/"):
                    try:
                        open(os.path.join(folder, name), "w").write('{"verdict": "PASSED"}')
                    except OSError:
                        pass
            return torch.zeros_like(kernels.affine(x))
            """),
        _WRONG,
        "no file of the sandbox is ever read by others",
    ),
    Candidate(
        "finds-the-way-out",
        "process",
        AFFINE,
        affine("""
            import os, socket, subprocess
            y = kernels.affine(x)
            for host in ("127.0.0.1", "1.1.1.1"):
                try:
                    socket.create_connection((host, 80), 1)
                    return y
                except OSError:
                    pass
            seen = " ".join(os.environ.values())
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    seen += open(f"/proc/{pid}/environ").read()
                except OSError:
                    pass
            if "canary-of-the-daemon" in seen:
                return y
            return torch.zeros_like(y)
            """),
        _WRONG,
        "neither a network nor other processes nor the daemon's environment",
    ),
]

ANSWERS = [
    Candidate(
        "writes-noise-to-the-channel",
        "forged answers",
        AFFINE,
        affine("channel().send(bytes(64))\nreturn kernels.affine(x)", head=_CHANNEL),
        _TAMPERING,
        "what is no frame is no answer",
    ),
    Candidate(
        "answers-with-a-verdict",
        "forged answers",
        AFFINE,
        _forged('answer({"ok": False, "verdict": "PASSED", "error": ""})'),
        ("RUNTIME_ERROR", "TAMPERING"),
        "a verdict that a process gives itself",
    ),
    Candidate(
        "answers-infrastructure",
        "forged answers",
        AFFINE,
        _forged('answer({"ok": False, "verdict": "INFRASTRUCTURE", "error": "sick GPU"})'),
        ("RUNTIME_ERROR", "TAMPERING"),
        "blames the machine, to be tried again without a charge",
    ),
    Candidate(
        "answers-deeply-nested",
        "forged answers",
        AFFINE,
        _forged(
            "depth = 7 << 20\n"
            "answer(b'{\"ok\":true,\"outputs\":' + b'[' * depth + b']' * depth + b'}')"
        ),
        _TAMPERING,
        "takes the stack of who copies it",
    ),
    Candidate(
        "answers-with-wide-tree",
        "forged answers",
        AFFINE,
        _forged(
            'answer(b\'{"ok":true,"outputs":{"k":"list","items":[\' + '
            "b','.join([b'{\"k\":\"none\"}'] * 1000000) + b']}}')"
        ),
        ("TAMPERING", "WRONG_SHAPE"),
        "a million leaves",
    ),
    Candidate(
        "answers-with-numbers-of-wrong-kinds",
        "forged answers",
        AFFINE,
        _forged(
            'node.update(shape=[-1, 2**62, "x"], offset=-5, bytes=1e300)\n'
            'answer({"ok": True, "outputs": node, "inputs_after": node, "aliases": [7, {}], '
            '"launches": -1, "work": {"launches": "many"}, "findings": [{"kind": 5}]}, [1])'
        ),
        _TAMPERING,
        "sizes that overflow",
    ),
    Candidate(
        "answers-with-a-sparse-file",
        "forged answers",
        AFFINE,
        _forged(
            'fd = os.memfd_create("x")\nos.ftruncate(fd, (7 << 30) + 4096)\n'
            "many = 7 << 28\n"
            "node.update(shape=[many], stride=[1], bytes=many * 4)\n"
            'answer({"ok": True, "outputs": node, "inputs_after": node}, [fd, fd])'
        ),
        (*_TAMPERING, "MODIFIED_INPUT"),
        "memory that costs the sender nothing",
    ),
    Candidate(
        "answers-with-a-pipe",
        "forged answers",
        AFFINE,
        _forged(
            "read, write = os.pipe()\n"
            'answer({"ok": True, "outputs": node, "inputs_after": node}, [read, read])'
        ),
        (*_TAMPERING, "MODIFIED_INPUT"),
        "a read that never ends",
    ),
    Candidate(
        "answers-with-a-file-that-shrinks",
        "forged answers",
        AFFINE,
        _forged(
            'fd = os.memfd_create("x")\nos.ftruncate(fd, x.numel() * 2)\n'
            'answer({"ok": True, "outputs": node, "inputs_after": node}, [fd, fd])'
        ),
        (*_TAMPERING, "MODIFIED_INPUT"),
        "fewer bytes than said",
    ),
    Candidate(
        "answers-without-end",
        "forged answers",
        AFFINE,
        _forged(
            "sock = channel()\nsock.send(struct.pack('<II', 1 << 30, 0))\n"
            "while True: sock.send(b' ' * 65536)"
        ),
        _TAMPERING,
        "a frame that fills the daemon's memory",
    ),
    Candidate(
        "answers-drop-by-drop",
        "forged answers",
        AFFINE,
        _forged(
            "import time\nsock = channel()\nsock.send(struct.pack('<II', 1 << 20, 0))\n"
            "while True:\n    sock.send(b' ')\n    time.sleep(0.05)"
        ),
        ("TIME_LIMIT", "TAMPERING"),
        "a frame that never is complete holds nobody",
    ),
    Candidate(
        "closes-its-channel",
        "forged answers",
        AFFINE,
        affine("import os, time\nos.closerange(3, 256)\ntime.sleep(1000)"),
        ("TAMPERING", "CRASHED", "TIME_LIMIT"),
        "waits beside a closed channel",
        devices=(EMULATED,),
    ),
    Candidate(
        "answers-in-the-harness-place",
        "forged answers",
        AFFINE,
        affine(
            """
            import mmap
            y = 2 * x.cpu() + 1
            def block(tensor):
                fd = os.memfd_create("x")
                os.write(fd, tensor.contiguous().numpy().tobytes())
                return fd
            node = dict(k="tensor", dtype="float32", shape=list(x.shape),
                        stride=list(x.stride()), device=str(x.device), offset=0,
                        bytes=x.numel() * 4)
            after = dict(k="list", items=[node])
            answer({"ok": True, "outputs": node, "inputs_after": after, "aliases": [],
                    "launches": 1, "work": {"launches": 1}, "findings": []},
                   [block(y), block(x.cpu())])
            serve()
            """,
            head=_CHANNEL
            + """
def serve():
    sock = channel()
    while True:
        header, fds, _, _ = socket.recv_fds(sock, 8, 8)
        if not header:
            os._exit(0)
        size, count = struct.unpack("<II", header)
        text = b""
        while len(text) < size:
            text += sock.recv(size - len(text))
        message = json.loads(text)
        node = message["inputs"]["items"][0]
        count = node["bytes"] // 4
        x = torch.frombuffer(bytearray(os.pread(fds[0], node["bytes"], node["offset"])),
                             dtype=torch.float32).reshape(node["shape"])
        fd = os.memfd_create("y")
        os.write(fd, (2 * x + 1).numpy().tobytes())
        after = os.memfd_create("x")
        os.write(after, x.numpy().tobytes())
        told = dict(node, device="cuda:0", offset=0)
        answer({"ok": True, "outputs": told, "inputs_after": {"k": "list", "items": [told]},
                "aliases": [], "launches": 1, "work": {"launches": 1}, "findings": []},
               [fd, after])
        for one in [*fds, fd, after]:
            os.close(one)
""",
        ),
        ("NO_CUSTOM_KERNEL", "TAMPERING"),
        "speaks the protocol itself and makes up a count",
    ),
]

TIMES = [
    Candidate(
        "lazy-copy",
        "times",
        MATMUL,
        matmul(
            """
            y = torch.empty(a.shape[0], b.shape[1], device=a.device)
            y.detach = lambda: kernels.multiply(a, b)
            return y
            """
        ),
        ("TAMPERING", "WRONG_OUTPUT", "IMPOSSIBLE_TIME"),
        "the work is done after the clock stops",
        devices=(CUDA,),
        twin="honest-matmul",
    ),
    Candidate(
        "takes-over-the-timing",
        "times",
        MATMUL,
        matmul(
            """
            import sys
            frame = sys._getframe()
            while frame is not None:
                session = frame.f_locals.get("self")
                if type(session).__name__ == "Session":
                    clock = session._clock
                    clock.elapsed_us = lambda start, end: 1.0
                    clock.now_us = lambda: 0.0
                frame = frame.f_back
            return kernels.multiply(a, b)
            """
        ),
        ("IMPOSSIBLE_TIME", "TAMPERING"),
        "the clock of the harness belongs to the process",
        devices=(CUDA,),
        twin="honest-matmul",
    ),
    Candidate(
        "cheats-in-most-calls",
        "times",
        AFFINE,
        affine(
            """
            self.calls += 1
            if self.calls > 20 and self.calls % 5 < 3:
                return self.kept
            self.kept = kernels.affine(x)
            return self.kept
            """,
            init="self.calls, self.kept = 0, None",
        ),
        ("WRONG_OUTPUT", "UNRELIABLE_TIMING"),
        "three of five calls answer with an old result",
        devices=(CUDA,),
    ),
]

CANDIDATES = PATCHES + PROCESS + ANSWERS + TIMES
