"""The transport behind one ``Acp-Connection-Id``: POSTs bring frames in, event streams take them out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from acp_integration import jsonrpc
from acp_integration.endpoint.exchange import Refusal
from acp_integration.endpoint.inbox import Inbox
from acp_integration.endpoint.ledger import MailboxFull
from acp_integration.endpoint.mailbox import Mailbox
from acp_integration.endpoint.routing import Inbound, session_named
from acp_integration.endpoint.streams import Streams
from acp_integration.errors import ConnectionClosed
from acp_integration.options import EndpointOptions
from acp_integration.transports.transport import Flow, Frame, RequestId, TransportKind
from acp_integration.wire import methods

logger = logging.getLogger(__name__)

MAX_OPEN_QUESTIONS: Final = 4096
"""How many requests to the client are remembered: it may leave those that were withdrawn unanswered for ever."""

READERS_LEAVE_WITHIN: Final = 5.0
"""Seconds that the readers of a closed connection have for what was queued."""

_ASKS: Final = b'{"jsonrpc":"2.0","id":'
_MAKE_SESSION: Final = frozenset({methods.SESSION_NEW, methods.SESSION_FORK})
_OPEN_SESSION: Final = frozenset({methods.SESSION_LOAD, methods.SESSION_RESUME})
_END_SESSION: Final = frozenset({methods.SESSION_CLOSE, methods.SESSION_DELETE})


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of the client that waits for its answer, and the stream that the answer goes to."""

    method: str
    session: str | None
    stream: str | None


class HttpConnection:
    """Implements `Transport`: frames wait in the mailbox of their stream until a GET reads it."""

    def __init__(self, options: EndpointOptions, initialize: RequestId) -> None:
        self.streams = Streams(options)
        self.initialize_answer: bytes | None = None
        self.settled = anyio.Event()
        """Set when `initialize` is answered, or never will be."""
        self._initialize: RequestId | None = initialize
        self._inbox = Inbox(options.max_message_size)
        self._asked: dict[RequestId, _Asked] = {}
        self._questions: dict[RequestId, str | None] = {}
        self._opened = False
        self._closed = False
        self._gone = anyio.Event()

    @property
    def kind(self) -> TransportKind:
        """How the peer is reached."""
        return "http"

    async def open(self) -> None:
        """Start; nothing is opened here, the client comes to us."""
        if self._opened:
            raise ConnectionClosed("The transport was opened before")
        self._opened = True

    def offer(self, inbound: Inbound, stream: str | None) -> bool:
        """Give a message its place in receive order if there is one; says whether it has it."""
        self._expect(inbound, stream)
        return self._inbox.offer(inbound.frame)

    async def accept(self, inbound: Inbound, stream: str | None) -> None:
        """Give a message its place in receive order; waits while too many are before it.

        Raises:
            ConnectionClosed: if the connection ends first.
        """
        self._expect(inbound, stream)
        await self._inbox.put(inbound.frame)

    def reject(self, inbound: Inbound, error: bytes) -> None:
        """Answer a request with an error in place of the agent."""
        self._expect(inbound, None)
        self.write(error, None, inbound.request_id)

    def check_answer(self, answer: jsonrpc.Response, header: str | None) -> None:
        """See that an answer of the client comes on the stream its question went out on; it may name none.

        Raises:
            Refusal: with status 400 if it names another one.
        """
        if answer.id not in self._questions:
            logger.warning("An answer arrived that nobody waits for")
            return
        expected = self._questions[answer.id]
        if header is not None and header != expected:
            wanted = expected or "the connection"
            raise Refusal(400, f"Response id {answer.id} arrived on {header} but expected {wanted}")

    async def receive(self) -> Sequence[Frame]:
        """The messages that were posted."""
        return await self._inbox.take()

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:
        """Put one frame into the mailbox of its stream; the answer to `initialize` is kept for its POST."""
        if self._closed:
            return
        if answers is not None and answers == self._initialize:
            self._initialize, self.initialize_answer = None, frame
            self.settled.set()
            return
        asked = self._asked.pop(answers, None) if answers is not None else None
        if asked is None:
            self._remember_question(frame, session)
        if asked is None:
            self._push(frame, session)
            return
        # The answer to a load travels on another stream than the history before it: it must not overtake.
        behind = self.streams.replay_of(asked.session) if asked.method in _OPEN_SESSION else None
        self._push(frame, asked.stream, behind)
        self._learn(asked, frame)

    @property
    def congested(self) -> bool:
        """Whether some stream's reader is behind."""
        return any(mailbox.congested for mailbox in self.streams.all())

    async def drain(self) -> None:
        """Wait until every reader has caught up, or is gone for good."""
        for mailbox in self.streams.all():
            await mailbox.drain()

    def flow(self, session: str) -> Flow:
        """The flow of the stream that the session's updates go to."""
        return _SessionFlow(self.streams, session)

    async def wait_broken(self) -> None:
        """Wait until the connection was ended without a farewell."""
        await self._gone.wait()

    def hang_up(self) -> None:
        """End the connection at once: what was queued is still written out, what comes now is dropped."""
        self._close()
        self._gone.set()

    async def aclose(self) -> None:
        """Let every reader write out what is queued, then end the streams."""
        self._close()
        with anyio.move_on_after(READERS_LEAVE_WITHIN):
            await self.streams.wait_unattended()
        self.streams.cut()
        self._gone.set()

    def _close(self) -> None:
        self._closed = True
        self._inbox.close()
        self.settled.set()
        self.streams.finish()

    def _push(self, frame: bytes, stream: str | None, behind: Mailbox | None = None) -> None:
        try:
            self.streams.of(stream).push(frame, behind)
        except MailboxFull:
            logger.warning("Closed a connection: nobody reads its events, and its mailbox is full")
            self.hang_up()

    def _expect(self, inbound: Inbound, stream: str | None) -> None:
        if isinstance(inbound.message, jsonrpc.Response) and inbound.message.id is not None:
            self._questions.pop(inbound.message.id, None)
        identifier, method = inbound.request_id, inbound.method
        if identifier is None or method is None:
            return
        self._asked[identifier] = _Asked(method, inbound.session, stream)
        if method in _OPEN_SESSION and inbound.session is not None:
            self.streams.loading(inbound.session)

    def _remember_question(self, frame: bytes, session: str | None) -> None:
        if not frame.startswith(_ASKS):
            return
        message = jsonrpc.decode(frame)
        if isinstance(message, jsonrpc.Request):
            self._questions[message.id] = session
            if len(self._questions) > MAX_OPEN_QUESTIONS:
                del self._questions[next(iter(self._questions))]

    def _learn(self, asked: _Asked, frame: bytes) -> None:
        """Take from the answer to a request which sessions there are now."""
        if asked.method not in _MAKE_SESSION | _OPEN_SESSION | _END_SESSION:
            return
        answer = jsonrpc.decode(frame)
        result = answer.result if isinstance(answer, jsonrpc.Response) and answer.error is None else None
        if asked.method in _MAKE_SESSION:
            created = None if result is None else session_named(result)
            if created is not None:
                self.streams.know(created)
        elif asked.session is not None:
            self._learn_named(asked.method, asked.session, succeeded=result is not None)

    def _learn_named(self, method: str, session: str, *, succeeded: bool) -> None:
        if method in _OPEN_SESSION:
            self.streams.loaded(session, known=succeeded)
        elif succeeded:
            self.streams.forget(session)


class _SessionFlow:
    """Asks anew each time which mailbox takes the updates: it may change while a session is loaded."""

    def __init__(self, streams: Streams, session: str) -> None:
        self._streams = streams
        self._session = session

    @property
    def congested(self) -> bool:
        return self._streams.of(self._session).congested

    async def drain(self) -> None:
        await self._streams.of(self._session).drain()
