"""An OpenAI-compatible endpoint that answers from recordings and counts what it is asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def load_recordings(path: Path) -> dict[tuple[str, int], str]:
    """(task id, turn) -> reply."""
    replies: dict[tuple[str, int], str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "task" in entry:
            replies[(entry["task"], entry["turn"])] = entry["content"]
    return replies


class RecordedEndpoint:
    """Serves while it lives. Thread-safe.

    `asked` counts requests by their exact messages; `answered` those whose whole reply
    the client took. `gate`, when set, is called before each reply (tests hold calls with it).
    """

    def __init__(self, reply_of: Callable[[list[dict[str, str]]], str]) -> None:
        self.reply_of = reply_of
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.gate: Callable[[], None] | None = None
        self.lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                messages = body["messages"]
                key = hashlib.sha256(json.dumps(messages).encode()).hexdigest()
                with endpoint.lock:
                    endpoint.asked[key] += 1
                if endpoint.gate is not None:
                    endpoint.gate()
                reply = endpoint.reply_of(messages)
                usage = {
                    "prompt_tokens": sum(len(m["content"]) for m in messages) // 4,
                    "completion_tokens": len(reply) // 4,
                }
                try:
                    self.send(reply, usage, stream=bool(body.get("stream")))
                except OSError:
                    return
                with endpoint.lock:
                    endpoint.answered[key] += 1

            def send(self, reply: str, usage: dict[str, int], stream: bool) -> None:
                self.send_response(200)
                if not stream:
                    message = {"role": "assistant", "content": reply}
                    choice = {"index": 0, "message": message, "finish_reason": "stop"}
                    body = json.dumps({"choices": [choice], "usage": usage}).encode()
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                for start in range(0, len(reply), 200):
                    self.event({"choices": [{"delta": {"content": reply[start : start + 200]}}]})
                self.event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
                self.event({"choices": [], "usage": usage})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, chunk: dict[str, Any]) -> None:
                self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def reply_by_task(
    recordings: dict[tuple[str, int], str], task_of: Callable[[str], str]
) -> Callable[[list[dict[str, str]]], str]:
    """Answers the n-th turn of a task's conversation with its n-th recorded reply.

    `task_of` finds the task from the conversation's first user message. A conversation that goes
    on past its recording gets the last reply again.
    """

    def reply(messages: list[dict[str, str]]) -> str:
        first = next(m["content"] for m in messages if m["role"] == "user")
        task = task_of(first)
        turn = sum(m["role"] == "assistant" for m in messages)
        while turn > 0 and (task, turn) not in recordings:
            turn -= 1
        return recordings[(task, turn)]

    return reply
