"""The teacher as an OpenAI-compatible server: chat completions, streamed or not."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kernelmosaic.generate.task import Key, Task, generate
from kernelmosaic.teacher import MODEL
from kernelmosaic.teacher.prompts import TaskIndex, first_user_message
from kernelmosaic.teacher.script import Habits, Script

Message = dict[str, str]

# Characters of a streamed piece.
_PIECE = 400
# Conversations on one prompt that are told apart.
_MOST_SAMPLES = 1000


@lru_cache(maxsize=1024)
def _task(key: Key) -> Task:
    return generate(key)


class Teacher:
    """Answers conversations. Thread-safe.

    A first message that comes again opens another conversation (another sample). Later
    messages say by the first reply which one they belong to, so nothing has to be kept; what
    is remembered only saves time.
    """

    def __init__(self, index: TaskIndex, seed: int = 0, habits: Habits | None = None) -> None:
        self._index = index
        self._seed = seed
        self._habits = habits or Habits()
        self._lock = threading.Lock()
        self._opened: dict[str, int] = {}

    def reply(self, messages: Sequence[Message]) -> str | None:
        """The next reply; None where no task of the index has the views shown."""
        prompt = first_user_message(messages)
        key = self._index.find(prompt)
        if key is None:
            return None
        system = next((m["content"] for m in messages if m["role"] == "system"), "")
        emulated = "emulates CUDA" in system
        replies = [m["content"] for m in messages if m["role"] == "assistant"]
        feedback = [m["content"] for m in messages if m["role"] == "user"][1 : len(replies) + 1]
        sample = self._sample(prompt, key, emulated, replies)
        return self._script(key, sample, emulated).reply(feedback)

    def _script(self, key: Key, sample: int, emulated: bool) -> Script:
        return Script(_task(key), self._seed, sample, emulated, self._habits)

    def _sample(self, prompt: str, key: Key, emulated: bool, replies: list[str]) -> int:
        mark = hashlib.sha256(prompt.encode()).hexdigest()
        with self._lock:
            opened = self._opened.get(mark, 0)
            if not replies:
                self._opened[mark] = opened + 1
                return opened
        for sample in range(_MOST_SAMPLES if opened == 0 else opened):
            if self._script(key, sample, emulated).reply([]) == replies[0]:
                return sample
            if opened == 0 and sample >= 16:
                break
        return 0


def _usage(messages: Sequence[Message], reply: str) -> dict[str, int]:
    """Estimated tokens: four bytes each."""
    return {
        "prompt_tokens": sum(len(m["content"].encode()) for m in messages) // 4,
        "completion_tokens": len(reply.encode()) // 4,
    }


class TeacherServer:
    """Serves on `address` until `close`. Port 0 takes a free one; `url` says which."""

    def __init__(self, teacher: Teacher, address: tuple[str, int]) -> None:
        class Handler(_Handler):
            pass

        Handler.teacher = teacher
        self._server = ThreadingHTTPServer(address, Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def serve(self) -> None:
        self._server.serve_forever()

    def start(self) -> None:
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    teacher: Teacher
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self._error(404, "there is only /v1/models and /v1/chat/completions")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            request = json.loads(body)
            messages = [
                {"role": str(m["role"]), "content": str(m["content"])} for m in request["messages"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            self._error(400, f"the request is no chat completion: {error!r}")
            return
        reply = self.teacher.reply(messages)
        if reply is None:
            self._error(
                404,
                "no task of this teacher has the views shown; start it with the folder of the "
                "generated tasks",
            )
            return
        usage = _usage(messages, reply)
        try:
            if request.get("stream"):
                self._stream(reply, usage)
            else:
                choice = {
                    "index": 0,
                    "message": {"role": "assistant", "content": reply},
                    "finish_reason": "stop",
                }
                self._json(200, {"model": MODEL, "choices": [choice], "usage": usage})
        except OSError:
            self.close_connection = True

    def _error(self, status: int, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _json(self, status: int, value: dict[str, object]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: str, usage: dict[str, int]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for start in range(0, len(reply), _PIECE):
            self._event({"choices": [{"delta": {"content": reply[start : start + _PIECE]}}]})
        self._event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        self._event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()

    def _event(self, chunk: dict[str, object]) -> None:
        text = json.dumps({"model": MODEL, **chunk})
        self.wfile.write(f"data: {text}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        pass
