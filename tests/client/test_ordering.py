"""The order in which a client takes what an agent sends, as a state machine and against a model of it."""

import anyio
import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from acp_integration.client.ordering import InboundOrder
from acp_integration.jsonrpc import Notification, Request, Response

NULL = msgspec.Raw(b"null")


def notification(name="session/update"):
    return Notification(name, NULL)


def response(identifier):
    return Response(identifier, NULL, None)


def request(identifier):
    return Request(identifier, "session/request_permission", NULL)


class Recorder:
    def __init__(self, limit=1024):
        self.released, self.started = [], []
        self.order = InboundOrder(
            lambda answer: self.released.append(answer.id), lambda asked: self.started.append(asked.id), limit
        )


@pytest.fixture
def recorder():
    return Recorder()


def test_an_answer_without_anything_before_it_is_released_at_once(recorder):
    recorder.order.arrive(response(1))
    assert recorder.released == [1]


def test_an_answer_waits_for_every_notification_before_it(recorder):
    order = recorder.order
    order.arrive(notification())
    order.arrive(notification())
    order.arrive(response(1))
    order.advance()
    order.handled()
    order.advance()
    assert recorder.released == []
    order.handled()
    assert order.advance() is None
    assert recorder.released == [1]


def test_an_agent_request_takes_its_place_behind_the_notifications_before_it(recorder):
    order = recorder.order
    order.arrive(notification())
    order.arrive(request(7))
    order.advance()
    assert recorder.started == []
    order.handled()
    order.advance()
    assert recorder.started == [7]


async def test_the_answer_to_the_running_handlers_own_request_passes_it(recorder):
    order = recorder.order
    order.arrive(notification())
    order.arrive(notification())
    order.advance()
    order.enter()
    order.sent(5, urgent=True)
    order.arrive(response(5))
    assert recorder.released == [5]


async def test_the_answer_to_somebody_elses_request_does_not_pass_a_running_handler(recorder):
    order = recorder.order
    order.sent(5, urgent=True)
    order.arrive(notification())
    order.advance()

    async def elsewhere():
        order.leave()
        order.sent(6, urgent=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(elsewhere)
    order.arrive(response(6))
    order.arrive(response(5))
    assert recorder.released == []


async def test_a_task_that_the_handler_started_counts_as_the_handler(recorder):
    order = recorder.order
    order.arrive(notification())
    order.advance()
    order.enter()

    async def child():
        order.sent(5, urgent=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child)
    order.arrive(response(5))
    assert recorder.released == [5]


async def test_held_agent_requests_start_while_the_running_handler_waits_for_its_own_answer(recorder):
    order = recorder.order
    order.arrive(notification())
    order.arrive(request(1))
    order.advance()
    order.enter()
    order.sent(9, urgent=True)
    order.arrive(request(2))
    assert recorder.started == [1, 2]


async def test_a_handler_that_waits_no_more_holds_agent_requests_back_again(recorder):
    order = recorder.order
    order.arrive(notification())
    order.advance()
    order.enter()
    order.sent(9, urgent=True)
    order.forget(9)
    order.arrive(request(2))
    assert recorder.started == []


def test_a_held_request_can_be_taken_out_and_the_rest_keeps_its_order(recorder):
    order = recorder.order
    for message in (notification(), request(1), response(3), request(2)):
        order.arrive(message)
    assert [taken.id for taken in order.take_requests(lambda held: held.id == 1)] == [1]
    order.advance()
    order.handled()
    order.advance()
    assert (recorder.started, recorder.released) == ([2], [3])


def test_close_releases_every_answer_that_is_here(recorder):
    order = recorder.order
    for message in (notification(), response(1), request(2), response(3)):
        order.arrive(message)
    assert order.answered == {1, 3}
    order.release_all()
    assert (recorder.released, recorder.started) == ([1, 3], [])


async def test_a_notification_that_arrives_while_the_end_is_awaited_is_still_handled(recorder, bound):
    taken = []

    async def worker():
        while (next_one := await recorder.order.next()) is not None:
            taken.append(next_one)
            recorder.order.handled()

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker)
            await anyio.wait_all_tasks_blocked()
            recorder.order.close()
            recorder.order.arrive(notification())
    assert len(taken) == 1


@pytest.mark.parametrize("awaited", [True, False], ids=["an answer is awaited", "nothing is awaited"])
def test_the_reader_pauses_when_much_waits_unless_an_answer_is_awaited_for_a_bounded_time(awaited):
    order = Recorder(limit=2).order
    if awaited:
        order.sent(1, urgent=True)
    order.arrive(notification())
    order.arrive(notification())
    assert order.full is not awaited


def test_unread_updates_of_a_stream_make_the_reader_pause():
    order = Recorder(limit=2).order
    order.read(-2)
    assert order.full
    order.read()
    assert not order.full


async def test_two_waiters_are_both_woken(bound):
    order = Recorder(limit=1).order
    order.read(-1)
    woken = []

    async def reader():
        await order.room()
        woken.append("reader")

    async def worker():
        await order.next()
        woken.append("worker")

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker)
            tasks.start_soon(reader)
            await anyio.wait_all_tasks_blocked()
            order.close()
    assert sorted(woken) == ["reader", "worker"]


class OrderModel(RuleBasedStateMachine):
    """Any interleaving of arrivals and handling keeps the guarantee.

    The model holds, for each answer and agent request, how many notifications came before it.
    """

    def __init__(self):
        super().__init__()
        self.recorder = Recorder()
        self.order = self.recorder.order
        self.arrived = self.handled = 0
        self.before = {}
        self.running = False
        self.own = set()
        self.free_passes = set()
        self.next_id = 0

    def identifier(self):
        self.next_id += 1
        return self.next_id

    @rule()
    def a_notification_arrives(self):
        self.arrived += 1
        self.order.arrive(notification())

    @rule(kind=st.sampled_from([response, request]))
    def an_answer_or_request_arrives(self, kind):
        identifier = self.identifier()
        self.before[identifier] = self.arrived
        if kind is request and self.own:
            self.free_passes.add(identifier)
        self.order.arrive(kind(identifier))

    @precondition(lambda self: not self.running)
    @rule()
    def a_handler_starts(self):
        if self.order.advance() is not None:
            self.running = True
            self.order.enter()

    @precondition(lambda self: self.running)
    @rule()
    def the_handler_sends_a_request(self):
        identifier = self.identifier()
        self.free_passes |= {held.id for held in self.order._held if isinstance(held, Request)}
        self.own.add(identifier)
        self.order.sent(identifier, urgent=True)

    @precondition(lambda self: self.own)
    @rule()
    def its_answer_arrives(self):
        identifier = self.own.pop()
        self.order.arrive(response(identifier))
        assert self.recorder.released[-1] == identifier, "the handler would wait for ever"
        self.recorder.released.pop()
        self.order.forget(identifier)

    @precondition(lambda self: self.running and not self.own)
    @rule()
    def the_handler_ends(self):
        self.running = False
        self.handled += 1
        self.order.handled()

    @invariant()
    def nothing_passed_a_notification_that_was_not_handled(self):
        for identifier in self.recorder.released:
            assert self.before[identifier] <= self.handled
        for identifier in self.recorder.started:
            assert self.before[identifier] <= self.handled or identifier in self.free_passes

    def teardown(self):
        self.own.clear()
        if self.running:
            self.order.handled()
            self.handled += 1
        while self.order.advance() is not None:
            self.order.handled()
            self.handled += 1
        assert self.handled == self.arrived
        done = [*self.recorder.released, *self.recorder.started]
        assert sorted(done) == sorted(self.before), "something was lost or done twice"
        assert self.recorder.released == sorted(self.recorder.released), "answers overtook each other"
        self.order.leave()


TestEveryInterleaving = OrderModel.TestCase
TestEveryInterleaving.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
