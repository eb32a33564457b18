"""An HTTP connection that answers its client whatever it sends: malformed requests, slow ones, refused ones.

uvicorn would wait for ever for the end of a request's headers. And it would close a connection with data that it has
not read: the client's system then throws away the answer that the client has not read yet.
"""

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER = 2.0  # seconds in which a client may go on sending what is not read


class Connection(H11Protocol):
    """A connection whose client must send its headers in time."""

    def __init__(self, header_seconds: float, **given: Any) -> None:
        super().__init__(**given)
        self._header_seconds = header_seconds
        self._given_up: asyncio.TimerHandle | None = None
        self._leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Lingering(transport, self))  # type: ignore[arg-type]
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        if not self._leaving:
            super().data_received(data)
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Called when the service stops: a client that has its answer is not waited for."""
        if self.cycle is None or self.cycle.response_complete:
            self.leave()
            self.transport.abort()
        else:
            super().shutdown()

    def leave(self) -> None:
        """Answers nothing more on this connection, and stops the work for its client."""
        self._leaving = True
        self._stop_waiting()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, f"Invalid request: {msg[:1].lower()}{msg[1:]}")

    def _refuse(self, status: int, error: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # else an answer has begun
            body = json.dumps({"error": error}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            response = h11.Response(status_code=status, headers=headers)
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_headers(self) -> None:
        if self.conn.their_state is not h11.IDLE or self._leaving:
            self._stop_waiting()
        elif self._given_up is None:
            self._given_up = self.loop.call_later(self._header_seconds, self._give_up)

    def _give_up(self) -> None:
        if self.conn.trailing_data[0]:  # a request has begun
            self._refuse(408, f"The headers took longer than {self._header_seconds:g} s to arrive; send them faster")
        else:
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._given_up is not None:
            self._given_up.cancel()
            self._given_up = None


class _Lingering:
    """A transport that is closed in two steps: first it sends nothing more; then, when the client has closed its side
    or some seconds have passed, it receives nothing more."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport, self._connection = transport, connection
        self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        self._closing = True
        self._connection.leave()
        try:
            self._transport.write_eof()
        except OSError:  # the client has gone
            self._transport.close()
            return
        self._transport.resume_reading()
        self._connection.loop.call_later(LINGER, self._transport.close)
