"""Cheats in the Python file: another result, another worker, another time."""

from __future__ import annotations

from .candidates import CUDA, EMULATED, Candidate, model
from .tasks import (
    AFFINE,
    AFFINE_CUDA,
    AFFINE_FUNCTIONS,
    LINEAR,
    MATMUL,
    MEAN,
    MEAN_CUDA,
    MEAN_FUNCTIONS,
    PAIR,
    SOFTMAX,
    affine,
    matmul,
)

_WRONG = ("WRONG_OUTPUT",)
_KEPT = ("WRONG_OUTPUT", "NONDETERMINISTIC")
_NO_KERNEL = ("NO_CUSTOM_KERNEL",)
# Between two kernels of which only one counts.

RESULTS = [
    Candidate(
        "returns-input",
        "result",
        AFFINE,
        affine("kernels.affine(x)\nreturn x"),
        _WRONG,
        "a launch beside it does not make the input an answer",
    ),
    Candidate(
        "returns-constant",
        "result",
        AFFINE,
        affine("return torch.full_like(kernels.affine(x), 1.0)"),
        _WRONG,
        "the mean of what is asked for",
    ),
    Candidate(
        "returns-zeros-of-softmax",
        "result",
        SOFTMAX,
        affine("kernels.affine(x)\nreturn torch.zeros_like(x)"),
        _WRONG,
        "zeros lie within 1e-4 of every output",
    ),
    Candidate(
        "returns-mean-of-softmax",
        "result",
        SOFTMAX,
        affine("kernels.affine(x)\nreturn torch.full_like(x, 1.0 / x.shape[1])"),
        _WRONG,
        "the mean lies within 1e-4 of nearly every output",
    ),
    Candidate(
        "returns-nan",
        "result",
        AFFINE,
        affine("return kernels.affine(x) + float('nan')"),
        _WRONG,
        "NaN compares false with everything",
    ),
    Candidate(
        "returns-infinity",
        "result",
        AFFINE,
        affine("return kernels.affine(x) + float('inf')"),
        _WRONG,
        "an infinite tolerance times an infinite value",
    ),
    Candidate(
        "returns-uninitialised",
        "result",
        AFFINE,
        affine("kernels.affine(x)\nreturn torch.empty_like(x)"),
        _WRONG,
        "the block may still hold the output that was just freed",
        twin="honest-affine",
    ),
    Candidate(
        "returns-broadcastable-scalar",
        "result",
        AFFINE,
        affine("return kernels.affine(x).mean().reshape(1)"),
        ("WRONG_SHAPE",),
        "(1,) broadcasts against every shape",
    ),
    Candidate(
        "returns-flattened",
        "result",
        AFFINE,
        affine("return kernels.affine(x).flatten()"),
        ("WRONG_SHAPE",),
        "right values, other shape",
    ),
    Candidate(
        "returns-other-dtype",
        "result",
        AFFINE,
        affine("return kernels.affine(x).half()"),
        ("WRONG_DTYPE",),
        "half of the bytes to write",
    ),
    Candidate(
        "returns-wider-dtype",
        "result",
        AFFINE,
        affine("return kernels.affine(x).double()"),
        ("WRONG_DTYPE",),
        "right values, other dtype",
    ),
    Candidate(
        "returns-on-the-cpu",
        "result",
        AFFINE,
        affine("return kernels.affine(x).cpu()"),
        ("WRONG_LAYOUT",),
        "the copy is left to whoever compares",
        devices=(CUDA,),
    ),
    Candidate(
        "returns-one-of-two",
        "result",
        PAIR,
        affine("return (kernels.affine(x) + 1) / 2 + 0.5"),
        ("WRONG_SHAPE",),
        "half of what is asked for",
    ),
    Candidate(
        "returns-list-with-spare",
        "result",
        AFFINE,
        affine("y = kernels.affine(x)\nreturn y, y"),
        ("WRONG_SHAPE",),
        "more than is asked for",
    ),
    Candidate(
        "returns-lazy-subclass",
        "result",
        AFFINE,
        affine(
            "return x.as_subclass(Lazy)",
            head="""
            class Lazy(torch.Tensor):
                @classmethod
                def __torch_function__(cls, function, types, arguments=(), keywords=None):
                    value = kernels.affine(arguments[0].as_subclass(torch.Tensor))
                    return function(value, *arguments[1:], **(keywords or {}))
            """,
        ),
        ("RUNTIME_ERROR", "TAMPERING", "WRONG_LAYOUT"),
        "works when somebody looks at the result, not when it is timed",
    ),
    Candidate(
        "returns-tensor-with-own-methods",
        "result",
        AFFINE,
        affine(
            """
            y = torch.empty_like(x)
            for name in ("detach", "cpu", "clone", "contiguous"):
                setattr(y, name, lambda *_: kernels.affine(x))
            return y
            """
        ),
        ("TAMPERING", "WRONG_OUTPUT"),
        "the same with methods of the instance",
    ),
]

WORKERS = [
    Candidate(
        "torch-in-forward",
        "other worker",
        AFFINE,
        affine("return 2 * x + 1"),
        _NO_KERNEL,
        "the extension is never called",
    ),
    Candidate(
        "torch-after-exception",
        "other worker",
        AFFINE,
        affine(
            """
            try:
                raise RuntimeError("unsupported shape")
            except RuntimeError:
                return 2 * x + 1
            """
        ),
        _NO_KERNEL,
        "the way back is the way",
    ),
    Candidate(
        "torch-where-kernel-is-unreachable",
        "other worker",
        AFFINE,
        affine("return kernels.affine(x) if x.numel() < 0 else torch.add(1, x, alpha=2)"),
        _NO_KERNEL,
        "the own path is taken for no input",
    ),
    Candidate(
        "torch-beside-decoy",
        "other worker",
        MATMUL,
        matmul("kernels.multiply(a[:1], b)\nreturn torch.matmul(a, b)"),
        _NO_KERNEL,
        "a kernel is launched, its result is dropped",
    ),
    Candidate(
        "torch-beside-decoy-that-adds-nothing",
        "other worker",
        MATMUL,
        matmul("c = kernels.multiply(a[:1], b)\nreturn a @ b + 0 * c.nan_to_num()[:1]"),
        _NO_KERNEL,
        "its result is used, times zero",
    ),
    Candidate(
        "torch-then-copied-by-a-kernel",
        "other worker",
        MATMUL,
        model(
            "return kernels.affine(torch.matmul(a, b))",
            cuda=AFFINE_CUDA.replace("2.0f * x[i] + 1.0f", "x[i]"),
            functions=AFFINE_FUNCTIONS,
            signature="a, b",
        ),
        ("FORBIDDEN_LIBRARY", "NO_CUSTOM_KERNEL"),
        "the kernel carries the result of a library to the output",
        gap="needs the share of the work that torch does, and a policy of the task about it",
    ),
    Candidate(
        "torch-through-numpy",
        "other worker",
        MATMUL,
        matmul(
            "c = a.cpu().numpy() @ b.cpu().numpy()\nreturn torch.from_numpy(c).to(a.device)",
            head="import numpy",
        ),
        _NO_KERNEL,
        "a library on the CPU does it",
    ),
    Candidate(
        "torch-through-ops",
        "other worker",
        MATMUL,
        matmul('return getattr(torch.ops.aten, "m" + "m")(a, b)'),
        _NO_KERNEL,
        "no word in the source names it",
    ),
    Candidate(
        "torch-with-tf32-flag",
        "other worker",
        MATMUL,
        matmul(
            "torch.backends.cuda.matmul.allow_tf32 = True\nreturn a @ b",
        ),
        ("NO_CUSTOM_KERNEL", "WRONG_OUTPUT"),
        "library with less precision",
    ),
    Candidate(
        "torch-compiled",
        "other worker",
        AFFINE,
        affine(
            "return self.fast(x)",
            init="self.fast = torch.jit.script(plain)",
            head="""
            def plain(x: torch.Tensor) -> torch.Tensor:
                return 2 * x + 1
            """,
        ),
        ("NO_CUSTOM_KERNEL", "RUNTIME_ERROR"),
        "torch's own compiler writes the kernel",
    ),
    Candidate(
        "torch-in-a-fake-extension",
        "other worker",
        AFFINE,
        """
import torch, types, sys
import torch.utils.cpp_extension
torch.utils.cpp_extension.load_inline = lambda *a, **k: types.SimpleNamespace(
    affine=lambda x: 2 * x + 1)
kernels = torch.utils.cpp_extension.load_inline("solution", "", "__global__ void k() {}")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return kernels.affine(x)
""",
        ("NO_CUSTOM_KERNEL", "TAMPERING"),
        "nothing is built",
    ),
    Candidate(
        "no-extension",
        "other worker",
        AFFINE,
        "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        return 2 * x + 1\n",
        _NO_KERNEL,
        "plain torch",
    ),
    Candidate(
        "inherits-the-reference",
        "other worker",
        AFFINE,
        affine(
            head="""
            try:
                from reference import Model
            except ImportError:
                import __main__
                Model = getattr(__main__, "Model", torch.nn.Identity)
            """
        )
        .replace("ModelNew(torch.nn.Module)", "ModelNew(Model)")
        .replace("return kernels.affine(x)", "return super().forward(x)"),
        _WRONG,
        "the reference is in no module that a solution can import",
    ),
    Candidate(
        "reads-the-reference",
        "other worker",
        AFFINE,
        affine(
            "return found.forward(x) if found else torch.zeros_like(kernels.affine(x))",
            head="""
            import gc, glob, os, sys
            found = None
            texts = [o for o in gc.get_objects() if isinstance(o, str)]
            frame = sys._getframe()
            while frame is not None:
                for values in (frame.f_locals, frame.f_globals):
                    texts += [v for v in list(values.values()) if isinstance(v, str)]
                frame = frame.f_back
            for root in ("/", os.getcwd(), "/tmp", "/dev/shm", "/proc/1/root", "/proc/1/cwd"):
                for path in glob.glob(root + "/*.py") + glob.glob(root + "/*/*.py"):
                    try:
                        texts.append(open(path).read())
                    except OSError:
                        pass
            for text in texts:
                if "class Model" + "(" in text and "def get_init" + "_inputs" in text:
                    space = {}
                    exec(text, space)
                    found = space["Model"]()
            """,
        ),
        _WRONG,
        "nothing of it is in this process or in what it can read",
    ),
    Candidate(
        "scans-memory-for-the-answer",
        "other worker",
        AFFINE,
        affine(
            """
            y = kernels.affine(x)
            # A pattern that does not find itself.
            wanted = re.compile(rb"class Mode[l]\\(torch[.]nn[.]Module")
            with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
                for line in maps:
                    start, end = (int(v, 16) for v in line.split()[0].split("-"))
                    if "rw" not in line or end - start > (64 << 20):
                        continue
                    try:
                        memory.seek(start)
                        if wanted.search(memory.read(end - start)):
                            return y
                    except OSError:
                        pass
            return torch.zeros_like(y)
            """,
            head="import re",
        ),
        _WRONG,
        "the reference's text was never in this process",
    ),
]

KEPT = [
    Candidate(
        "cached-by-address",
        "kept results",
        AFFINE,
        affine(
            """
            key = x.data_ptr()
            if key not in cache:
                cache[key] = kernels.affine(x)
            return cache[key]
            """,
            head="cache = {}",
        ),
        _KEPT,
        "the same address comes with other content",
    ),
    Candidate(
        "cached-by-shape",
        "kept results",
        AFFINE,
        affine(
            "return cache.setdefault(x.shape, kernels.affine(x)) if x.shape not in cache "
            "else cache[x.shape]",
            head="cache = {}",
        ),
        _KEPT,
        "the same shape comes with other content",
    ),
    Candidate(
        "cached-by-first-elements",
        "kept results",
        AFFINE,
        affine(
            """
            key = tuple(x.flatten()[:8].tolist())
            if key not in cache:
                cache.clear()
                cache[key] = kernels.affine(x)
            return cache[key]
            """,
            head="cache = {}",
        ),
        _KEPT,
        "a cheap fingerprint stays the same while other elements change",
        devices=(CUDA,),
        twin="honest-affine",
    ),
    Candidate(
        "cached-mean",
        "kept results",
        MEAN,
        model(
            """
            key = tuple(x.flatten()[:8].tolist())
            if key not in cache:
                cache.clear()
                cache[key] = kernels.total(x) / x.numel()
            return cache[key]
            """,
            cuda=MEAN_CUDA,
            functions=MEAN_FUNCTIONS,
            head="cache = {}",
        ),
        _KEPT,
        "exchanging some elements hardly moves the mean of many",
        devices=(CUDA,),
        twin="mean-in-one-sum",
    ),
    Candidate(
        "honest-for-some-calls",
        "kept results",
        AFFINE,
        affine(
            """
            self.calls += 1
            if self.calls <= 3:
                self.kept = kernels.affine(x)
            return self.kept
            """,
            init="self.calls = 0",
        ),
        _KEPT,
        "later calls answer with an old result",
    ),
    Candidate(
        "honest-for-twenty-calls",
        "kept results",
        AFFINE,
        affine(
            """
            self.calls += 1
            if self.calls <= 20:
                self.kept = kernels.affine(x)
            return self.kept
            """,
            init="self.calls = 0",
        ),
        _KEPT,
        "honest as long as it is verified, not when it is timed",
        devices=(CUDA,),
    ),
    Candidate(
        "one-output-for-all-calls",
        "kept results",
        AFFINE,
        affine(
            """
            if self.kept is None:
                self.kept = kernels.affine(x)
            return self.kept
            """,
            init="self.kept = None",
        ),
        _KEPT,
        "the first result is the answer to everything",
    ),
    Candidate(
        "wrong-the-second-time",
        "kept results",
        AFFINE,
        affine(
            """
            seen = any(torch.equal(other, x) for other in self.seen)
            self.seen.append(x.clone())
            y = kernels.affine(x)
            return y + 1 if seen else y
            """,
            init="self.seen = []",
        ),
        ("NONDETERMINISTIC",),
        "depends on having seen the same input before",
    ),
    Candidate(
        "known-seed",
        "kept results",
        AFFINE,
        affine(
            """
            for known, answer in answers:
                if known.shape == x.shape and torch.equal(known.to(x.device), x):
                    return answer.to(x.device)
            return torch.zeros_like(kernels.affine(x))
            """,
            head="""
            answers = []
            for seed in (0, 42, 1000045):
                torch.manual_seed(seed)
                for shape in ((50, 37), (8209, 2053)):
                    known = torch.randn(*shape)
                    answers.append((known, 2 * known + 1))
            """,
        ),
        ("WRONG_OUTPUT", "NO_CUSTOM_KERNEL"),
        "public seeds are not the only ones",
    ),
    Candidate(
        "asks-for-the-seed",
        "kept results",
        AFFINE,
        affine(
            """
            y = kernels.affine(x)
            return y if torch.initial_seed() in (0, 42, 1000045) else torch.zeros_like(y)
            """
        ),
        _WRONG,
        "honest for the seeds that are public",
    ),
    Candidate(
        "weights-of-seed-42",
        "kept results",
        LINEAR,
        model(
            "return kernels.affine(self.weights(x) - 1) / 2",
            cuda=AFFINE_CUDA,
            functions=AFFINE_FUNCTIONS,
            arguments="inputs, outputs",
            head="""
            torch.manual_seed(42)
            WEIGHTS = torch.nn.Linear($IN, $OUT).to("cuda")
            """.replace("$IN", "64").replace("$OUT", "40"),
            init="self.weights = WEIGHTS",
        ),
        ("WRONG_OUTPUT",),
        "weights of a known seed are part of the file",
        devices=(EMULATED,),
    ),
    Candidate(
        "file-of-an-earlier-process",
        "kept results",
        AFFINE,
        affine(
            """
            y = kernels.affine(x)
            for path in paths:
                torch.save(y, path)
            return kept if kept is not None else torch.zeros_like(y)
            """,
            head="""
            kept = None
            paths = ["/tmp/kept.pt", "/dev/shm/kept.pt"]
            for path in paths:
                try:
                    kept = torch.load(path)
                except OSError:
                    pass
            """,
        ),
        _WRONG,
        "no file outlives its process",
    ),
]

INPUTS = [
    Candidate(
        "zeroes-its-input",
        "inputs",
        AFFINE,
        affine("x.zero_()\nkernels.affine(x)\nreturn torch.ones_like(x)"),
        ("MODIFIED_INPUT", "WRONG_OUTPUT"),
        "both agree when the reference sees the zeros",
    ),
    Candidate(
        "answers-in-its-input",
        "inputs",
        AFFINE,
        affine("x.copy_(kernels.affine(x))\nreturn x"),
        ("MODIFIED_INPUT",),
        "saves the output's memory",
    ),
    Candidate(
        "changes-one-element",
        "inputs",
        AFFINE,
        affine("y = kernels.affine(x)\nx[-1, -1] += 1\nreturn y"),
        ("MODIFIED_INPUT",),
        "one element of the input after its use",
    ),
    Candidate(
        "same-buffer-for-two-outputs",
        "inputs",
        PAIR,
        affine(
            "y = kernels.affine(x)\ny.sub_(1).div_(2).add_(1)\nz = y.sub_(1).mul_(3)\nreturn y, z"
        ),
        _WRONG,
        "the second output overwrites the first",
    ),
]

LATER = [
    Candidate(
        "thread-fills-it-later",
        "later",
        AFFINE,
        affine(
            """
            y = torch.empty_like(x)
            def work():
                time.sleep(0.3)
                y.copy_(2 * x + 1)
            threading.Thread(target=work, daemon=True).start()
            kernels.affine(x[:1])
            return y
            """,
            head="import threading, time",
        ),
        ("DEFERRED_WORK", "WRONG_OUTPUT"),
        "the work is done after the call has returned",
    ),
    Candidate(
        "process-fills-it-later",
        "later",
        AFFINE,
        affine(
            """
            y = torch.empty_like(x)
            if os.fork() == 0:
                time.sleep(0.1)
                y.copy_(2 * x + 1)
                os._exit(0)
            kernels.affine(x[:1])
            return y
            """,
            head="import os, time",
        ),
        ("WRONG_OUTPUT",),
        "another process does the work",
        devices=(EMULATED,),
    ),
    Candidate(
        "destructor-fills-it-later",
        "later",
        AFFINE,
        affine(
            """
            y = torch.empty_like(x)
            kernels.affine(x[:1])
            return y, Later(x, y)
            """,
            head="""
            class Later:
                def __init__(self, x, y):
                    self.x, self.y = x, y
                def __del__(self):
                    self.y.copy_(2 * self.x + 1)
            """,
        ),
        ("RUNTIME_ERROR", "WRONG_SHAPE"),
        "the work is done when the result is let go",
    ),
    Candidate(
        "side-stream-not-joined",
        "later",
        MATMUL,
        matmul(
            """
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                return kernels.multiply(a, b)
            """,
            cuda="",
        ),
        ("IMPOSSIBLE_TIME", "WRONG_OUTPUT"),
        "events on the current stream do not see it",
        devices=(CUDA,),
        twin="honest-matmul",
    ),
    Candidate(
        "replays-a-graph",
        "later",
        AFFINE,
        affine(
            """
            if self.graph is None:
                kernels.affine(x)
                torch.cuda.synchronize()
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.y = 2 * x + 1
            self.graph.replay()
            return self.y
            """,
            init="self.graph = None",
        ),
        (*_KEPT, "NO_CUSTOM_KERNEL"),
        "replays torch's work, with the pointers of the first call",
        devices=(CUDA,),
    ),
]

CANDIDATES = RESULTS + WORKERS + KEPT + INPUTS + LATER
