"""The live page in a real browser."""

import os
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from pilotfish.ipc.client import Introduction, open_link
from pilotfish_http.routes import page as served_page
from pilotfish_http.verb import REDIRECT
from support.clients.browsers import browser, other_site
from support.clients.http import HttpServed, http_served
from support.clients.page_scripts import ATTACKS, CONTRASTS, INJECTIONS, NAMELESS, READ
from support.daemon.homes import DaemonHome, daemon_home

pytestmark = [pytest.mark.proves("HTTP-2"), pytest.mark.slow]

expect.set_options(timeout=30_000)

SINCE = r", since \d\d:\d\d(?: [AP]M)?"
"""How the start of a conversation is shown."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """The processes of a browser come and go as it likes; `browser` looks when it has ended."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonHome]:
    with daemon_home(tmp_path_factory.mktemp("user")) as made:
        made.configure("hostile")
        made.write("a.x", "fine\n")
        yield made


@pytest.fixture(scope="module")
def served(home: DaemonHome) -> Iterator[HttpServed]:
    with http_served(home) as made:
        yield made


@contextmanager
def visiting(chromium: Browser, **settings: Any) -> Generator[tuple[Page, list[str]]]:
    """A window of its own, and whatever went wrong in it."""
    context = chromium.new_context(**settings)
    window = context.new_page()
    troubles: list[str] = []
    window.on("pageerror", lambda error: troubles.append(str(error)))
    window.on("console", lambda said: troubles.append(said.text) if "Content Security" in said.text else None)
    try:
        yield window, troubles
    finally:
        context.close()


def signed_in(window: Page, served: HttpServed) -> None:
    """By the token, as a person would who has lost the link."""
    window.goto(served.said["address"])
    window.get_by_label("Token").fill(served.token)
    window.get_by_role("button", name="Show the servers").click()
    expect(window.get_by_role("status")).to_have_text("Live")


def test_the_link_opens_the_page_once(chromium: Browser, served: HttpServed) -> None:
    with visiting(chromium) as (window, troubles):
        window.goto(served.said["page"])
        expect(window.get_by_role("status")).to_have_text("Live")
        assert window.url == served.said["address"] + "/", "the ticket is in no history"
        assert window.evaluate("document.cookie") == ""
        window.reload()
        expect(window.get_by_role("status")).to_have_text("Live")
        assert troubles == []
    with visiting(chromium) as (window, _):
        window.goto(served.said["page"])
        expect(window.get_by_role("status")).to_have_text("This link was already used, or has expired.")
        expect(window.get_by_role("button", name="Show the servers")).to_be_visible()


def test_a_second_tab_has_the_key_of_the_first(chromium: Browser, served: HttpServed) -> None:
    with visiting(chromium) as (window, troubles):
        signed_in(window, served)
        second = window.context.new_page()
        second.goto(served.said["address"])
        expect(second.get_by_role("status")).to_have_text("Live")
        assert troubles == []


@pytest.mark.proves("T54", "A18.26")
def test_the_file_that_is_opened_leads_to_the_page(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        file = tmp_path / "open.html"
        file.write_text(REDIRECT.format(link=served.said["page"]))
        window.goto(file.as_uri())
        expect(window.get_by_role("status")).to_have_text("Live")
        assert window.url == served.said["address"] + "/"
        assert troubles == []


def test_without_a_key_nothing_is_shown(chromium: Browser, served: HttpServed) -> None:
    with visiting(chromium) as (window, _):
        answer = window.goto(served.said["address"])
        assert answer is not None
        assert answer.status == 401
        expect(window.get_by_label("Token")).to_be_focused()
        expect(window.get_by_role("heading", name="Servers")).to_be_hidden()
        assert str(served.home.root) not in window.content()
        window.get_by_label("Token").fill("wrong")
        window.keyboard.press("Enter")
        expect(window.get_by_role("status")).to_have_text("The token is wrong.")


def test_states_change_as_they_happen(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("wrong.x", "bad\n")
        signed_in(window, served)
        servers = window.get_by_role("list", name=f"Servers of {home.root}")
        agents = window.locator(".who, .told").filter(has_text="agent")
        expect(servers.get_by_text("Not started")).to_be_visible()
        expect(window.get_by_text("no server has a file of this project open")).to_be_visible()
        with home.link("agent") as link:
            link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
            expect(servers.get_by_text("Running")).to_be_visible()
            expect(servers.get_by_role("img", name="Memory, now")).to_be_visible()
            expect(window.get_by_text("wrong.x — 1 error")).to_be_visible()
            expect(window.get_by_text("bad word").first).to_be_attached()
            expect(window.locator(".feedback pre")).to_contain_text("bad word")
            expect(agents).to_have_count(1)
            link.request("ask", {"operation": "hover", "filePath": "wrong.x", "line": 1, "character": 1})
            asked = window.get_by_role("list", name=f"Questions about {home.root}")
            expect(asked).to_contain_text("agent: hover wrong.x:1:1, ")
            link.request("ask", {"operation": "findReferences", "filePath": "wrong.x", "line": 1, "character": 1})
            expect(asked).to_contain_text("agent: find references wrong.x:1:1, ")
        expect(agents).to_have_count(0)
        for pid in [pid for pid, command in home.processes().items() if "fakels" in command]:
            os.kill(pid, signal.SIGKILL)
        expect(servers.get_by_text("Failed")).to_be_visible()
        assert troubles == []


@pytest.mark.proves("DIAG-12")
def test_it_shows_what_each_conversation_was_told_and_is_owed(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("wrong.x", "bad\n")
        home.write("fine.x", "fine\n")
        signed_in(window, served)
        told = window.get_by_role("list", name=f"Conversations of {home.root}")
        with home.link("agent") as link:
            link.request("touched", {"paths": ["fine.x"], "kind": "edit"})
            link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
            expect(told).to_have_text(re.compile(rf"^agent{SINCE}: 1 file told$"))
        assert troubles == []


def test_a_conversation_of_the_http_api_is_not_called_one_by_hooks(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("a.x", "fine\n")
        signed_in(window, served)
        served.ask("PUT", "/conversations/1/cwd", {"cwd": str(home.root)})
        served.ask("POST", "/conversations/1/lsp", {"operation": "diagnostics", "filePath": "a.x"})
        shown = window.locator(".who, .told").filter(has_text="http 1, since ")
        expect(shown).to_have_text(re.compile(rf"^http 1{SINCE} \(connects for each call\)"))
        assert troubles == []


def test_two_conversations_of_a_host_without_names_are_told_apart(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("wrong.x", "bad\n")
        signed_in(window, served)
        with home.link("agent") as one, home.link("agent") as other:
            for link in (one, other):
                link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
            told = window.get_by_role("list", name=f"Conversations of {home.root}")
            expect(told.get_by_role("listitem")).to_have_text(
                [re.compile(rf"^{name}{SINCE}: 1 file told$") for name in (r"agent", r"agent \(2\)")]
            )
            offered = window.locator("#conversation option")
            expect(offered).to_have_text(["All", re.compile(rf"^agent{SINCE}$"), re.compile(rf"^agent \(2\){SINCE}$")])
            window.locator("#conversation").select_option(index=2)
            expect(window.locator(".feedback summary")).to_have_count(1)
        assert troubles == []


def test_a_conversation_is_shown_once_by_its_host_a_short_id_and_its_start(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        signed_in(window, served)
        (home.root / "inner" / ".git").mkdir(parents=True)
        name = "019a7c5e-77f1-7000-8000-123456789abc"
        for root in (home.root, home.root / "inner"):
            (root / "wrong.x").write_text("bad\n")
            introduction = Introduction(cwd=str(root), host="agent", conversation=name)
            with open_link(introduction, home.terms()) as link:
                link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
                expect(window.locator(".who, .told").filter(has_text="agent 019a7c5e…, since ")).to_have_count(1)
        expect(window.locator(".feedback details")).to_have_count(2)
        offered = window.locator("#conversation option")
        expect(offered).to_have_text(["All", re.compile(rf"^agent 019a7c5e…{SINCE}$")])
        window.locator("#conversation").select_option(index=1)
        expect(window.locator(".feedback details")).to_have_count(2)
        assert troubles == []


@pytest.mark.proves("DIAG-12")
def test_it_shows_what_is_still_checked_for_a_conversation(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, visiting(chromium) as (window, _):
        home.configure("undecided", timing={"firstTouchTimeoutMs": 1_000, "diagnosticsWaitTimeoutMs": 1_000})
        home.write("a.x", "fine\n")
        with http_served(home) as served, home.link("agent") as link:
            signed_in(window, served)
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
            told = window.get_by_role("list", name=f"Conversations of {home.root}")
            # Until it is given up: the server is replaced, and that one does not answer either.
            expect(told).to_have_text(re.compile(rf"^agent{SINCE}: (1 file pending|1 dropped \(no verdict\))$"))


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize(
    ("server", "shown"),
    [("answering", "1 file late"), ("complaining", r"1 dropped \(no verdict\)")],
    ids=["late", "dropped"],
)
def test_it_shows_what_came_late_and_what_never_came(
    chromium: Browser, tmp_path: Path, server: str, shown: str
) -> None:
    with daemon_home(tmp_path) as home, visiting(chromium) as (window, troubles):
        # No server starts within that.
        home.configure(server, timing={"firstTouchTimeoutMs": 1, "diagnosticsWaitTimeoutMs": 1})
        home.write("a.x", "bad\n")
        with http_served(home) as served, home.link("agent") as link:
            signed_in(window, served)
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
            told = window.get_by_role("list", name=f"Conversations of {home.root}")
            expect(told).to_have_text(re.compile(rf"^agent{SINCE}: {shown}$"))
        assert troubles == []


@pytest.mark.proves("A17.13")
def test_what_a_server_says_is_text_and_nothing_else(chromium: Browser, served: HttpServed) -> None:
    with visiting(chromium) as (window, troubles):
        signed_in(window, served)
        with served.home.link() as link:
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        expect(window.locator(".files")).to_contain_text("<img src=x onerror=alert(1)>")
        expect(window.locator(".feedback pre").first).to_contain_text("wickedness")
        assert window.locator("main img").count() == 0
        assert troubles == []
        assert window.evaluate("document.querySelector('.files').textContent.includes('\\u202e')") is False


@pytest.mark.proves("A17.13")
def test_the_policy_allows_no_other_script(chromium: Browser, served: HttpServed) -> None:
    policy = served_page()[1]
    assert "unsafe" not in policy
    assert served.bare("GET", "/", b"", {}).headers["content-security-policy"] == policy
    with visiting(chromium) as (window, troubles):
        window.goto(served.said["address"])
        for attempt in INJECTIONS:
            assert (
                window.evaluate(f"() => {{ try {{ {attempt} }} catch (error) {{ return error.name; }} }}")
                == "TypeError"
            )
        assert window.evaluate("fetch('http://127.0.0.1:1/').then(() => 'reached', () => 'refused')") == "refused"
        assert any("connect-src" in trouble for trouble in troubles)


def test_a_key_opens_the_filter_and_everything_has_a_name(chromium: Browser, served: HttpServed) -> None:
    with visiting(chromium) as (window, _):
        signed_in(window, served)
        with served.home.link() as link:
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        expect(window.get_by_role("heading", name="toy")).to_be_visible()
        window.locator("body").press("/")
        expect(window.get_by_label("Filter")).to_be_focused()
        window.keyboard.type("no such server")
        expect(window.get_by_role("heading", name="toy")).to_be_hidden()
        window.keyboard.press("Escape")
        expect(window.get_by_role("heading", name="toy")).to_be_visible()
        window.locator(".files summary").first.focus()
        window.keyboard.press("Enter")
        expect(window.locator(".files li").first).to_be_visible()
        nameless = window.evaluate(NAMELESS)
        assert nameless == []
        assert window.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_can_be_read_in_any_light_and_at_any_width(
    chromium: Browser, served: HttpServed, tmp_path: Path, scheme: Any, width: int
) -> None:
    with visiting(chromium, color_scheme=scheme, viewport={"width": width, "height": 800}) as (window, _):
        signed_in(window, served)
        with served.home.link() as link:
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        expect(window.get_by_text("Running").first).to_be_visible()
        window.screenshot(path=tmp_path / f"page-{scheme}-{width}.png", full_page=True)
        assert window.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        contrasts: list[list[Any]] = window.evaluate(CONTRASTS)
        assert contrasts
        assert [seen for seen in contrasts if seen[0] < 4.5] == []


def test_the_page_comes_back_when_the_daemon_does(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, visiting(chromium) as (window, _):
        with http_served(home) as before:
            signed_in(window, before)
        expect(window.get_by_role("status")).to_have_text("Disconnected; reconnecting")
        with http_served(home, before.port) as after:
            expect(window.get_by_role("status")).to_have_text("The key has expired.")
            signed_in(window, after)


@pytest.mark.proves("T17", "T19", "A18.24")
def test_a_page_of_another_site_reaches_nothing(chromium: Browser, served: HttpServed, home: DaemonHome) -> None:
    with other_site() as evil, visiting(chromium) as (window, _):
        window.goto(evil)
        for way in ATTACKS:
            window.evaluate(way.replace("TARGET", served.said["address"]).replace("TOKEN", served.token))
        assert served.ask("GET", "/conversations/attack/cwd").json["cwd"] is None
        for path in ("/status", "/"):
            read = window.evaluate(READ.replace("TARGET", served.said["address"] + path).replace("TOKEN", served.token))
            assert read == "refused"


def test_a_summary_comes_first_and_a_project_can_be_chosen(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("wrong.x", "bad\n")
        home.write("fine.x", "fine\n")
        signed_in(window, served)
        with home.link("agent") as link:
            link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
            expect(window.locator("#summary")).to_contain_text("Errors now1")
            expect(window.locator("#summary")).to_contain_text("Edits today1")
            for batch in ("end", "part"):
                touch = {"paths": ["fine.x"], "kind": "edit", "batch": batch, "counts": batch == "end"}
                link.request("touched", touch)
            expect(window.locator(".feedback summary").first).to_contain_text("fine.x — judged with the next")
            link.request("touched", {"paths": ["fine.x"], "kind": "edit", "batch": "end"})
            expect(window.locator(".feedback summary").first).to_contain_text("fine.x — nothing new")
            expect(window.locator(".feedback summary")).to_have_count(3)
            project = window.get_by_role("region", name=f"Project {home.root}")
            expect(project.locator(".feedback summary").last).to_contain_text("wrong.x — told")
            expect(project.locator(".feedback pre").last).to_contain_text('<diagnostics file="wrong.x">')
            window.get_by_label("Project", exact=True).select_option(str(home.root))
            expect(project).to_be_visible()
            window.get_by_label("Agent", exact=True).select_option("agent")
            expect(project.locator(".feedback details")).to_have_count(3)
        assert troubles == []


def test_a_folder_in_which_nothing_is_at_work_is_no_project(chromium: Browser, served: HttpServed) -> None:
    with visiting(chromium) as (window, _):
        window.goto(served.said["address"])
        begun = "{root: '/a', conversations: [{host: '%s'}], servers: []}"
        for host, projects in (("serve", 0), ("agent", 1)):
            shown = window.evaluate(f"projectsOf({{workspaces: [{begun % host}]}})")
            assert len(shown) == projects


def test_a_server_is_restarted_and_its_log_read(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("wrong.x", "bad\n")
        signed_in(window, served)
        with home.link("agent") as link:
            link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
            card = window.get_by_role("list", name=f"Servers of {home.root}").get_by_role("listitem")
            expect(card.get_by_text("Running")).to_be_visible()
            before = {pid for pid, command in home.processes().items() if "fakels" in command}
            card.get_by_role("button", name="Restart").click()
            expect(card.get_by_text("Restarted in")).to_be_visible()
            after = {pid for pid, command in home.processes().items() if "fakels" in command}
            assert after
            assert after.isdisjoint(before)
            card.get_by_role("button", name="Log").press("Enter")
            expect(card.get_by_label("Log of toy")).to_be_visible()
            expect(card.get_by_role("button", name="Log")).to_have_attribute("aria-expanded", "true")
            expect(card.get_by_label("Log of toy")).not_to_be_empty()
        assert troubles == []


def test_an_edit_is_shown_as_old_and_new_text_and_by_conversation(chromium: Browser, tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, visiting(chromium) as (window, troubles):
        home.write("wrong.x", "fine\nlast\n")
        signed_in(window, served)
        with home.link("agent") as one, home.link("other") as two:
            one.request("touched", {"paths": ["wrong.x"], "kind": "write"})
            home.write("wrong.x", "bad > good\nlast\n")
            touch = {"paths": ["wrong.x"], "kind": "write", "before": {"wrong.x": "fine\nlast\n"}}
            two.request("touched", touch)
            feed = window.locator(".feedback details")
            expect(feed).to_have_count(2)
            expect(feed.first.locator("del")).to_have_text("- fine")
            expect(feed.first.locator("ins")).to_have_text("+ bad > good")
            expect(window.locator("#summary")).to_contain_text("Told today1")
            window.get_by_label("Conversation", exact=True).select_option(index=2)
            expect(feed).to_have_count(1)
            expect(feed.locator("ins")).to_have_text("+ bad > good")
            window.get_by_label("Conversation", exact=True).select_option(index=1)
            expect(feed.locator("ins")).to_be_hidden()
        assert troubles == []
