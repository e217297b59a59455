"""A client for loops and notebooks: submit, watch, score.

It speaks to the system through the command line's JSON, which is a stable contract
(docs/cli.md), so it needs nothing but Python and `kmosaic`.

    from kernelmosaic.client import Client
    client = Client()                                  # a running `kmosaic up` of this user
    reports = client.score([Candidate(reference, solution), ...])
    rewards = client.rewards(references, replies)
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kernelmosaic.rewards import Reward, Weights, code_of, reward_of

Report = dict[str, Any]

# `kmosaic` ends with 1 where the answer is no: a candidate that failed is an answer.
_ANSWERS = (0, 1)


class KmosaicError(Exception):
    """What `kmosaic` said on standard error. `code`: 2 bad input, 3 service not reached."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message.strip() or f"kmosaic ended with {code}")
        self.code = code


@dataclass(frozen=True)
class Candidate:
    reference: str
    solution: str
    scaled_shapes: dict[str, int] | None = None

    def row(self, number: int) -> str:
        row: dict[str, Any] = {
            "id": str(number),
            "reference": self.reference,
            "solution": self.solution,
        }
        if self.scaled_shapes:
            row["scaled_shapes"] = self.scaled_shapes
        return json.dumps(row) + "\n"


class Client:
    """Thread-safe: each call is a process of its own.

    `options` of scoring are the command line's (`device="cuda"`, `stages="compile,verify"`,
    `scale=0.25`, `seeds=3`).
    """

    def __init__(
        self, coordinator: str = "", kmosaic: str = "kmosaic", weights: Weights | None = None
    ) -> None:
        path = shutil.which(kmosaic)
        if path is None:
            raise FileNotFoundError(f"there is no program {kmosaic}; name its path")
        self._command = [path, *(["--coordinator", coordinator] if coordinator else [])]
        self.weights = weights or Weights()

    def submit(self, job_file: str | os.PathLike[str], **settings: object) -> str:
        """Submits a job file, with keys overridden (`endpoint__url="..."`); the job's id."""
        sets = [
            part
            for name, value in settings.items()
            for part in ("--set", f"{name.replace('__', '.')}={value}")
        ]
        answer = self._run(["submit", os.fspath(job_file), *sets, "-o", "json"])
        return str(json.loads(answer)["job"]["id"])

    def job(self, job: str) -> dict[str, Any]:
        """The job as it is now: state and counts."""
        found: dict[str, Any] = json.loads(self._run(["job", "show", job, "-o", "json"]))
        return found

    def watch(self, job: str) -> Iterator[dict[str, Any]]:
        """Events of a job until it ends. Closing the iterator stops the watching alone."""
        command = [*self._command, "job", "watch", job, "-o", "jsonl"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
            finally:
                process.terminate()

    def score(
        self,
        candidates: Sequence[Candidate],
        progress: Callable[[int, int], None] = lambda done, total: None,
        **options: Any,
    ) -> list[Report]:
        """Reports in the order of the candidates, all judged at once. `progress(done, total)`."""
        return asyncio.run(self.score_async(candidates, progress, **options))

    async def score_async(
        self,
        candidates: Sequence[Candidate],
        progress: Callable[[int, int], None] = lambda done, total: None,
        **options: Any,
    ) -> list[Report]:
        """As `score`. Cancelling the task calls the evaluations off."""
        if not candidates:
            return []
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *["score", "-", "-o", "jsonl", *flags],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 26,
        )
        try:
            return await self._collect(process, candidates, progress)
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()

    async def _collect(
        self,
        process: asyncio.subprocess.Process,
        candidates: Sequence[Candidate],
        progress: Callable[[int, int], None],
    ) -> list[Report]:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        errors = asyncio.ensure_future(process.stderr.read())
        writing = asyncio.ensure_future(self._write(process.stdin, candidates))
        found: dict[str, Report] = {}
        try:
            async for line in process.stdout:
                report = json.loads(line)
                found[report["id"]] = report
                progress(len(found), len(candidates))
            code = await process.wait()
            said = (await errors).decode(errors="replace")
        finally:
            errors.cancel()
            writing.cancel()
        if code not in _ANSWERS or len(found) != len(candidates):
            raise KmosaicError(code, said)
        return [found[str(number)] for number in range(len(candidates))]

    async def _write(self, stdin: asyncio.StreamWriter, candidates: Sequence[Candidate]) -> None:
        try:
            for number, candidate in enumerate(candidates):
                stdin.write(candidate.row(number).encode())
                await stdin.drain()
            stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it ended early; its exit code and words say why

    def rewards(
        self, references: Sequence[str], replies: Sequence[str], **options: Any
    ) -> list[Reward]:
        """Rewards of whole replies, each to the task of the reference in its place."""
        return asyncio.run(self.rewards_async(references, replies, **options))

    async def rewards_async(
        self, references: Sequence[str], replies: Sequence[str], **options: Any
    ) -> list[Reward]:
        if len(references) != len(replies):
            raise ValueError(f"{len(references)} references for {len(replies)} replies")
        codes = [code_of(reply) for reply in replies]
        places = [number for number, code in enumerate(codes) if code is not None]
        judged = await self.score_async(
            [Candidate(references[n], codes[n] or "") for n in places], **options
        )
        reports: list[Report | None] = [None] * len(replies)
        for number, report in zip(places, judged):
            reports[number] = report
        return [reward_of(report) for report in reports]

    def _run(self, arguments: list[str]) -> str:
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise KmosaicError(done.returncode, done.stderr)
        return done.stdout


def _text(completion: Any) -> str:
    """A completion as TRL gives it: text, or messages of which the last one counts."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


def trl_reward(client: Client, **options: Any) -> Callable[..., list[float | None]]:
    """A reward function for TRL's trainers. The dataset has a column `reference`.

    None, which TRL leaves out, where the machine failed.
    """

    def kernel_reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        replies = [_text(completion) for completion in completions]
        rewards = client.rewards(columns["reference"], replies, **options)
        return [client.weights.total(reward) for reward in rewards]

    return kernel_reward


def verl_score(client: Client, **options: Any) -> Callable[..., list[dict[str, float]]]:
    """A batched score function for verl: `ground_truths` are references.

    Each result has `score` and the parts; the machine's failure scores 0 with `known` 0.
    """

    def compute_score(
        data_sources: Sequence[str],
        solution_strs: Sequence[str],
        ground_truths: Sequence[str],
        extra_infos: Sequence[Any] | None = None,
        **rest: Any,
    ) -> list[dict[str, float]]:
        names = ("extracted", "compiled", "ran", "correct", "faster")
        return [
            {
                "score": client.weights.total(reward) or 0.0,
                "known": float(reward.known),
                **dict(zip(names, reward.vector)),
            }
            for reward in client.rewards(ground_truths, solution_strs, **options)
        ]

    return compute_score
