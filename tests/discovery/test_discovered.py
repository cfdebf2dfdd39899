import sys
import types
from itertools import count

import pytest

from acp_integration.discovery import discovered, find_single, resolve, resolve_agent
from acp_integration.errors import DiscoveryError, SeveralAgents

AGENT = "from acp_integration import acp_agent\n\n@acp_agent\nclass {name}:\n    pass\n"
NUMBERS = count()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes modules of a package that nobody has imported; gives the package's name."""
    name = f"project_{next(NUMBERS)}"
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules):
        for module, text in modules.items():
            file = tmp_path / name / f"{module.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("PROJECT", name), encoding="utf-8")
        return name

    write(__init__="")
    yield write
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


def names(*targets, **options):
    return [candidate.agent_class.__qualname__ for candidate in discovered(*targets, **options)]


def test_a_module_gives_what_it_defines(project):
    name = project(agents=AGENT.format(name="First") + "class Plain:\n    pass\n")
    (found,) = discovered(f"{name}.agents")
    assert found.name == f"{name}.agents.First"
    assert type(found.instance).__name__ == "First"


def test_what_a_module_imports_belongs_to_somebody_else(project):
    name = project(
        theirs=AGENT.format(name="Theirs"),
        agents="from PROJECT.theirs import Theirs\n" + AGENT.format(name="Mine"),
    )
    assert names(f"{name}.agents") == ["Mine"]


def test_a_declared_subclass_of_somebodys_agent_is_one_agent(project):
    name = project(
        theirs=AGENT.format(name="Theirs"),
        agents="from PROJECT.theirs import Theirs\n" + AGENT.format(name="Mine(Theirs)"),
    )
    assert names(f"{name}.agents") == ["Mine"]


def test_an_undeclared_subclass_is_no_agent(project):
    name = project(
        theirs=AGENT.format(name="Theirs"),
        agents="from PROJECT.theirs import Theirs\n\nclass Mine(Theirs):\n    pass\n",
    )
    assert names(f"{name}.agents") == []


def test_a_second_name_for_an_agent_is_no_second_agent(project):
    name = project(agents=AGENT.format(name="First") + "Alias = First\n")
    assert names(f"{name}.agents", f"{name}.agents") == ["First"]


def test_a_function_is_found(project):
    name = project(agents="from acp_integration import acp_agent\n\n@acp_agent\ndef answer(turn):\n    return 'x'\n")
    assert names(f"{name}.agents") == ["answer"]


def test_an_instance_is_not_found(project):
    name = project(theirs=AGENT.format(name="Theirs"), agents="from PROJECT.theirs import Theirs\n\nagent = Theirs()\n")
    assert names(f"{name}.agents") == []


def test_a_package_gives_what_its_modules_define(project):
    name = project(
        one=AGENT.format(name="One"),
        inner__in____init__=AGENT.format(name="Two"),
        inner__in__deep=AGENT.format(name="Three"),
        __main__="raise SystemExit(1)",
    )
    assert sorted(names(name)) == ["One", "Three", "Two"]


def test_nothing_is_imported_but_what_is_named(project):
    name = project(agents=AGENT.format(name="First"), other="raise RuntimeError('imported')")
    assert names(f"{name}.agents") == ["First"]
    assert f"{name}.other" not in sys.modules


def test_an_imported_module_is_looked_into(project):
    name = project(agents=AGENT.format(name="First"))
    assert names(resolve(f"{name}.agents")) == ["First"]


@pytest.fixture
def entry_points(tmp_path, monkeypatch):
    """Installs a distribution with entry points in the group ``test.agents``."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(**points):
        info = tmp_path / "shop-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n", encoding="utf-8")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[test.agents]", *lines]), encoding="utf-8")

    return install


def test_entry_points_are_agents_or_modules(project, entry_points):
    name = project(one=AGENT.format(name="One") + AGENT.format(name="Hidden"), two=AGENT.format(name="Two"))
    entry_points(first=f"{name}.one:One", second=f"{name}.two")
    assert sorted(names(group="test.agents")) == ["One", "Two"]


def test_an_entry_point_that_cannot_be_loaded_is_named(entry_points):
    entry_points(first="no_such_shop.one:One")
    with pytest.raises(DiscoveryError, match=r"^There is no module no_such_shop$"):
        discovered(group="test.agents")


def test_an_entry_point_that_is_no_agent_is_refused(entry_points):
    entry_points(first="json:JSONDecoder")
    with pytest.raises(DiscoveryError, match="JSONDecoder is not marked with @acp_agent"):
        discovered(group="test.agents")


def test_one_agent_is_found_among_modules(project):
    name = project(agents=AGENT.format(name="First"), others="")
    assert find_single(f"{name}.agents", f"{name}.others").agent_class.__name__ == "First"
    assert find_single(f"{name}.others") is None


def test_several_agents_are_refused_with_the_key_that_serves_none(project):
    name = project(agents=AGENT.format(name="Second") + AGENT.format(name="First"))
    with pytest.raises(SeveralAgents) as raised:
        find_single(f"{name}.agents", enabled_property="acp.agent.enabled")
    assert str(raised.value) == (
        f"Found 2 @acp_agent classes [{name}.agents.First, {name}.agents.Second], but an application serves one: "
        "remove @acp_agent from all but one, or set acp.agent.enabled=false to serve none"
    )


def test_switched_off_nothing_is_looked_at(project):
    name = project(agents=AGENT.format(name="First") + AGENT.format(name="Second"))
    assert find_single(f"{name}.agents", "no.such.module", enabled=False) is None
    assert f"{name}.agents" not in sys.modules


def test_a_target_names_an_object_or_a_module(project):
    name = project(agents=AGENT.format(name="First") + "class Outer:\n    class Inner:\n        pass\n")
    module = resolve(f"{name}.agents")
    assert isinstance(module, types.ModuleType)
    assert resolve(f"{name}.agents:First") is module.First
    assert resolve(f"{name}.agents:Outer.Inner") is module.Outer.Inner


@pytest.mark.parametrize("target", ["", ":", "a:", ":B", "a:b:c", "a b", "a/b.py", "a.py:B c", "a..b", ".a"])
def test_a_target_that_is_none_is_refused(target):
    with pytest.raises(DiscoveryError) as raised:
        resolve(target)
    assert str(raised.value) == f"{target!r} is not a target: write module:Name or module"


@pytest.mark.parametrize("target", ["no_such_shop", "no_such_shop.agents:First", "json.no_such:First"])
def test_a_target_without_a_module_is_refused(target):
    missing = {"json.no_such:First": "json.no_such"}.get(target, "no_such_shop")
    with pytest.raises(DiscoveryError, match=f"^There is no module {missing}$"):
        resolve(target)


def test_a_module_that_fails_to_import_says_why(project):
    name = project(agents="import no_such_library", broken="raise ValueError('half')")
    with pytest.raises(DiscoveryError) as raised:
        resolve(f"{name}.agents:First")
    assert str(raised.value) == (
        f"{name}.agents cannot be imported: ModuleNotFoundError(\"No module named 'no_such_library'\")"
    )
    with pytest.raises(DiscoveryError, match=r"cannot be imported: ValueError\('half'\)") as raised:
        resolve(f"{name}.broken")
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_name_that_a_module_has_not_is_refused_and_its_agents_are_offered(project):
    name = project(agents=AGENT.format(name="First") + AGENT.format(name="Second"), empty="")
    with pytest.raises(DiscoveryError) as raised:
        resolve(f"{name}.agents:Frist")
    assert str(raised.value) == f"{name}.agents has no Frist; its agents are [First, Second]"
    with pytest.raises(DiscoveryError, match=r"empty has no First$"):
        resolve(f"{name}.empty:First")


def test_an_agent_is_resolved_by_name_by_module_and_as_an_instance(project):
    name = project(
        agents=AGENT.format(name="First") + "ready = First()\n",
    )
    module = resolve(f"{name}.agents")
    assert resolve_agent(f"{name}.agents:First").agent_class is module.First
    assert resolve_agent(f"{name}.agents").agent_class is module.First
    assert resolve_agent(f"{name}.agents:ready").instance is module.ready


def test_a_target_that_is_no_agent_is_refused(project):
    name = project(agents="class Plain:\n    pass\n")
    with pytest.raises(DiscoveryError) as raised:
        resolve_agent(f"{name}.agents:Plain")
    assert str(raised.value) == f"{name}.agents:Plain is not marked with @acp_agent"


def test_a_module_without_an_agent_is_refused(project):
    name = project(agents="")
    with pytest.raises(DiscoveryError) as raised:
        resolve_agent(f"{name}.agents")
    assert str(raised.value) == f"{name}.agents defines no @acp_agent class or function"


def test_a_class_with_handlers_that_is_not_marked_is_named(project):
    name = project(agents="from acp_integration import on\nclass Shop:\n    @on.prompt\n    def reply(self): ...\n")
    with pytest.raises(DiscoveryError) as raised:
        resolve_agent(f"{name}.agents")
    assert str(raised.value) == (
        f"{name}.agents defines no @acp_agent class or function; "
        f"mark with @acp_agent what is to be served: {name}.agents.Shop"
    )


def test_a_module_with_several_agents_is_refused(project):
    name = project(agents=AGENT.format(name="First") + AGENT.format(name="Second"))
    with pytest.raises(SeveralAgents, match=r"^Found 2 @acp_agent classes "):
        resolve_agent(f"{name}.agents")
