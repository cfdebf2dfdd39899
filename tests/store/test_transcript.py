"""What is written of a session, in whatever groups it is written, shows what was said: once, and in order."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_integration.context import updates
from acp_integration.jsonrpc import encode
from acp_integration.store.tables import Entry
from acp_integration.store.transcript import LONGEST_MESSAGE, Transcript, piece_of, replay

TEXTS = st.text(alphabet='ab"\\\n}{é\U0001f600\0', max_size=6)
CHUNKS = st.builds(
    updates.chunk,
    st.sampled_from([updates.MESSAGE, updates.THOUGHT, updates.USER_MESSAGE]),
    TEXTS,
    st.none() | st.sampled_from(["1", 'a"b']),
)
OTHERS = st.sampled_from(
    [
        {"sessionUpdate": "plan", "entries": []},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x", "_meta": {"a": "b"}}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x", "more": "y"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "", "mimeType": "image/png"}},
    ]
).map(encode)
STEPS = st.lists(CHUNKS | OTHERS | st.sampled_from(["take", "end", "prompt"]), max_size=40)


class Rows:
    """The table that a store keeps."""

    def __init__(self) -> None:
        self.rows: dict[int, Entry] = {}

    def write(self, transcript: Transcript) -> None:
        gone, entries = transcript.take()
        for span in gone:
            for number in range(span.first, span.last + 1):
                self.rows.pop(number, None)
        for entry in entries:
            assert entry.number not in self.rows
            self.rows[entry.number] = entry

    def shown(self) -> list[dict[str, Any]]:
        return replay([self.rows[number] for number in sorted(self.rows)])


def flat(shown: list[Any]) -> list[Any]:
    """Updates with texts of one message joined, however they were divided."""
    found: list[Any] = []
    for update in shown:
        piece = piece_of(encode(update))
        if piece is None:
            found.append(update)
        elif found and isinstance(found[-1], tuple) and found[-1][:2] == (piece.head, piece.tail):
            found[-1] = (piece.head, piece.tail, found[-1][2] + piece.body)
        else:
            found.append((piece.head, piece.tail, piece.body))
    return found


@given(STEPS)
def test_what_was_written_shows_what_was_said(steps: list[Any]):
    transcript, rows, said, written = Transcript(0), Rows(), [], 0
    for step in steps:
        if step == "take":
            rows.write(transcript)
            written = len(said)
            assert flat(rows.shown()) == flat(said)
        elif step == "end":
            transcript.end_message()
        elif step == "prompt":
            transcript.prompt([updates.chunk(updates.USER_MESSAGE, "p")])
            said.append(json.loads(updates.chunk(updates.USER_MESSAGE, "p")))
        else:
            transcript.add(step)
            said.append(json.loads(step))
    assert flat(rows.shown()) == flat(said[:written])  # a crash loses what was not written, and nothing else


@given(st.lists(TEXTS, min_size=1, max_size=30), st.integers(1, 5))
def test_the_pieces_of_a_message_are_one_entry_at_its_end(texts: list[str], every: int):
    transcript, rows = Transcript(7), Rows()
    for position, text in enumerate(texts):
        transcript.add(updates.chunk(updates.MESSAGE, text))
        if position % every == 0:
            rows.write(transcript)
    transcript.end_message()
    rows.write(transcript)
    (entry,) = rows.rows.values()
    assert (entry.number, entry.kind) == (7, "update")
    assert json.loads(entry.update)["content"]["text"] == "".join(texts)


def test_prompts_are_never_merged():
    transcript, rows = Transcript(0), Rows()
    for text in ("one", "two"):
        transcript.prompt([updates.chunk(updates.USER_MESSAGE, text)])
    rows.write(transcript)
    assert [update["content"]["text"] for update in rows.shown()] == ["one", "two"]


def test_a_message_without_end_does_not_grow_without_end():
    transcript, rows = Transcript(0), Rows()
    for _ in range(3):
        transcript.add(updates.chunk(updates.MESSAGE, "x" * LONGEST_MESSAGE))
    transcript.end_message()
    rows.write(transcript)
    assert len(rows.rows) == 3


def test_a_cut_is_shown_and_ends_its_message():
    body = updates.chunk(updates.MESSAGE, "a")
    shown = replay([Entry(0, "piece", body), Entry(1, "piece", body, cut=True), Entry(2, "piece", body)])
    assert [update["content"]["text"] for update in shown] == ["aa", "a"]
    assert [update.get("_meta") for update in shown] == [{"acp_integration": {"cut": True}}, None]
