"""What is wrong in several readings is said in one error."""

from typing import NoReturn

import pytest

from acp_integration.configuration.gathering import gather
from acp_integration.errors import ConfigurationError, UnknownKey


def refuse(error: ConfigurationError) -> NoReturn:
    raise error


def test_results_come_in_order():
    assert gather(lambda: 1, lambda: "two") == [1, "two"]


def test_one_error_stays_what_it_is():
    error = UnknownKey("acp.x is not a known key", keys=["acp.x"])
    with pytest.raises(UnknownKey) as raised:
        gather(lambda: 1, lambda: refuse(error))
    assert raised.value is error


def test_the_problems_of_all_are_told_once_each():
    with pytest.raises(ConfigurationError) as raised:
        gather(lambda: refuse(ConfigurationError("a", "b")), lambda: refuse(UnknownKey("b", "c")))
    assert raised.value.problems == ("a", "b", "c")


def test_any_other_error_ends_the_readings():
    with pytest.raises(ZeroDivisionError):
        gather(lambda: 1 / 0, lambda: refuse(ConfigurationError("never read")))
