"""The order in which what a peer sent is started: by lane, never by luck.

A job starts when every job it must follow is finished. Which those are is decided once, when the job is read:

    ALONE       initialize, authenticate, logout    every control job read before; all later jobs follow it
    SESSION     load, resume, close, set_mode, ...   the control job read last for the same session
    CREATE      session/new                          the session/new read last
    AFTER_ALL   session/list, providers/*            every control job read before
    BACKGROUND  prompts, mcp/*, extension requests   the control job read last for the same session; nothing follows it
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from acp_integration.wire import methods


class Lane(Enum):
    """What a job must wait for."""

    ALONE = auto()
    SESSION = auto()
    CREATE = auto()
    AFTER_ALL = auto()
    BACKGROUND = auto()


LANES: Final = {
    methods.INITIALIZE: Lane.ALONE,
    methods.AUTHENTICATE: Lane.ALONE,
    methods.LOGOUT: Lane.ALONE,
    methods.SESSION_NEW: Lane.CREATE,
    methods.SESSION_LOAD: Lane.SESSION,
    methods.SESSION_RESUME: Lane.SESSION,
    methods.SESSION_CLOSE: Lane.SESSION,
    methods.SESSION_DELETE: Lane.SESSION,
    methods.SESSION_SET_MODE: Lane.SESSION,
    methods.SESSION_SET_CONFIG_OPTION: Lane.SESSION,
    methods.SESSION_FORK: Lane.SESSION,
    methods.SESSION_LIST: Lane.AFTER_ALL,
    methods.PROVIDERS_LIST: Lane.AFTER_ALL,
    methods.PROVIDERS_SET: Lane.AFTER_ALL,
    methods.PROVIDERS_DISABLE: Lane.AFTER_ALL,
}
"""The lanes of the protocol's methods; whatever is not among them runs in the background."""


class Job:
    """Something that was read and is to be started in its turn."""

    __slots__ = ("begin", "followers", "lane", "session", "waiting")

    def __init__(self, lane: Lane, session: str | None, begin: Callable[[], None]) -> None:
        self.lane = lane
        self.session = session
        self.begin = begin
        self.waiting = 0
        self.followers: list[Job] = []


class Schedule:
    """The jobs of one connection that are not finished."""

    def __init__(self) -> None:
        self._barrier: Job | None = None
        self._controls: dict[Job, None] = {}
        self._last: dict[tuple[Lane, str | None], Job] = {}

    @property
    def waiting_controls(self) -> int:
        """How many control jobs were read and not yet started."""
        return sum(1 for job in self._controls if job.waiting)

    @property
    def controls(self) -> int:
        """How many control jobs were read and are not finished."""
        return len(self._controls)

    def names(self, session: str) -> bool:
        """Whether a control job of that session is not finished."""
        return any(job.session == session for job in self._controls)

    def add(self, job: Job) -> None:
        """Take a job in the place it was read at; it begins now if it follows nothing."""
        if self._controls:  # only an unfinished one is ever followed
            for predecessor in self._predecessors(job):
                predecessor.followers.append(job)
                job.waiting += 1
        if job.lane is not Lane.BACKGROUND:
            self._register(job)
        if not job.waiting:
            job.begin()

    def finish(self, job: Job) -> None:
        """The job is over: whatever waited for it alone begins."""
        if job.lane is Lane.BACKGROUND:  # nothing follows it
            return
        self._controls.pop(job, None)
        if self._barrier is job:
            self._barrier = None
        key = _key(job)
        if self._last.get(key) is job:
            del self._last[key]
        followers, job.followers = job.followers, []
        for follower in followers:
            follower.waiting -= 1
            if not follower.waiting:
                follower.begin()

    def _predecessors(self, job: Job) -> list[Job]:
        if job.lane in (Lane.ALONE, Lane.AFTER_ALL):
            return list(self._controls)
        last = self._last.get(_key(job))
        if last is not None:
            return [last]
        return [self._barrier] if self._barrier is not None else []

    def _register(self, job: Job) -> None:
        self._controls[job] = None
        if job.lane is Lane.ALONE:
            self._barrier = job
            # A job of any lane behind the barrier follows the barrier, which follows all that was there before.
            self._last.clear()
        elif job.lane in (Lane.SESSION, Lane.CREATE):
            self._last[_key(job)] = job


def _key(job: Job) -> tuple[Lane, str | None]:
    lane = Lane.SESSION if job.lane is Lane.BACKGROUND else job.lane
    return lane, job.session
