"""A server of a few files on this machine, as a package index is one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, str, bytes]  # status, content type, or where to go on a redirection, and content


@contextmanager
def served(
    answers: dict[str, Answer], seen: list[tuple[str, dict[str, str]]] | None = None, broken_off: str = ""
) -> Iterator[str]:
    """Answers each path, and 404 for all others; the connection breaks off in the middle of the path `broken_off`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if seen is not None:
                seen.append((self.path, dict(self.headers)))
            status, kind, content = answers.get(self.path, (404, "text/plain", b"no"))
            self.send_response(status)
            self.send_header("Location" if status == 302 else "Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if self.path == broken_off else content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(timeout=30)
