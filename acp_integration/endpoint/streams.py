"""The event streams of one HTTP connection: its own, and one for each session that is known or asked for."""

from time import monotonic
from typing import Final

from acp_integration.endpoint.exchange import Refusal
from acp_integration.endpoint.ledger import Ledger, Limits
from acp_integration.endpoint.mailbox import Mailbox
from acp_integration.options import EndpointOptions

DISCARD_AFTER: Final = 1.0
"""Seconds for which the stream of a session that failed to load, or was closed, stays open.

The answer that says so travels on another stream; a peer that saw this one end first would report a broken stream.
"""


class Streams:
    """Knows which sessions exist on the connection, and finds the mailbox of each."""

    def __init__(self, options: EndpointOptions) -> None:
        self._max_provisional = options.max_provisional_sessions
        self._ledger = Ledger(
            Limits(
                capacity=options.mailbox_capacity,
                max_pending=options.max_pending_sse_events,
                max_unread_bytes=2 * options.max_message_size,
                max_replay_bytes=options.max_message_size,
            )
        )
        self.connection = Mailbox(self._ledger)
        self._sessions: dict[str, Mailbox] = {}
        self._known: set[str] = set()
        self._loading: dict[str, bool | None] = {}
        self._finished = False

    @property
    def readers(self) -> int:
        """How many streams somebody reads."""
        return sum(mailbox.reader is not None for mailbox in self.all())

    def all(self) -> list[Mailbox]:
        """The mailbox of every stream."""
        return [self.connection, *self._sessions.values()]

    def of(self, session: str | None) -> Mailbox:
        """Where a message of a session goes: to its stream if there can be one, else to the connection's."""
        if session is None or self._replays_on_connection(session):
            return self.connection
        if session in self._known and session not in self._sessions:
            self._sessions[session] = Mailbox(self._ledger)
        return self._sessions.get(session, self.connection)

    def open(self, session: str | None) -> Mailbox:
        """The mailbox that a GET reads; for a session not known yet it is provisional.

        Raises:
            Refusal: with status 404 if there are too many provisional ones.
        """
        if session is None:
            return self.connection
        if session not in self._sessions:
            if session not in self._known and self._provisional() >= self._max_provisional:
                text = f"Too many provisional sessions on this connection (limit {self._max_provisional})"
                raise Refusal(404, text)
            self._sessions[session] = Mailbox(self._ledger)
            if self._finished:
                self._sessions[session].finish()
        return self._sessions[session]

    def left(self, session: str | None) -> None:
        """A reader has left: drop the mailbox of a session that never came to be, or is no more, once it is empty."""
        if session is None or session in self._known:
            return
        mailbox = self._sessions.get(session)
        if mailbox is not None and mailbox.reader is None and not mailbox.unread:
            self._drop(session)

    def know(self, session: str) -> None:
        """A session was created or loaded on this connection."""
        self._known.add(session)
        if session in self._sessions:
            self._sessions[session].discard_at = None

    def forget(self, session: str) -> None:
        """A session is no more, or failed to load: its stream ends a moment later."""
        self._known.discard(session)
        mailbox = self._sessions.get(session)
        if mailbox is None:
            return
        mailbox.discard_at = monotonic() + DISCARD_AFTER
        if mailbox.reader is not None:
            mailbox.reader.wake()
        self.left(session)
        self._drop_unread_beyond_limit()

    def loading(self, session: str) -> None:
        """A session is being loaded: its replay goes where the peer reads."""
        self._loading.setdefault(session, None)

    def replay_of(self, session: str | None) -> Mailbox | None:
        """The stream of its own on which the history of a session that is being loaded went, if it went there."""
        return self._sessions.get(session) if session is not None and self._loading.get(session) is False else None

    def loaded(self, session: str, *, known: bool) -> None:
        """A load was answered, with success or, if the session is not known now, without."""
        self._loading.pop(session, None)
        if known:
            self.know(session)
        elif session not in self._known:
            self.forget(session)

    def finish(self) -> None:
        """Every stream ends when its reader has written out what is here."""
        self._finished = True
        for mailbox in self.all():
            mailbox.finish()

    async def wait_unattended(self) -> None:
        """Wait until nobody reads any stream."""
        for mailbox in self.all():
            await mailbox.wait_unattended()

    def cut(self) -> None:
        """End every stream now, whatever its reader is doing, and let all events go."""
        self.finish()
        for mailbox in self.all():
            if mailbox.reader is not None:
                mailbox.reader.scope.cancel()
            mailbox.clear()

    def _replays_on_connection(self, session: str) -> bool:
        """Decide once for each load: a replay that changed its stream half-way could be read out of order."""
        if session not in self._loading:
            return False
        decided = self._loading[session]
        if decided is None:
            mailbox = self._sessions.get(session)
            decided = self._loading[session] = mailbox is None or not mailbox.was_read
        return decided

    def _provisional(self) -> int:
        return sum(name not in self._known and box.discard_at is None for name, box in self._sessions.items())

    def _drop_unread_beyond_limit(self) -> None:
        gone = [name for name, box in self._sessions.items() if box.discard_at is not None and box.reader is None]
        for session in gone[: -self._max_provisional]:
            self._drop(session)

    def _drop(self, session: str) -> None:
        self._sessions.pop(session).clear()
