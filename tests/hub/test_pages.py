"""A hub in browsers: joining, connecting a machine, sharing, following live, a guest with a link, the team's page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from support.browser_visit import SECONDS, wait_until
from support.hubs import hub, listening, save_counted, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.hub import contexts
from turnlog.hub.settings import HubSettings, OpenIdSettings

pytestmark = pytest.mark.browser

SHOP: Final = "/home/somebody/work/a-folder-with-a-long-name/shop"

AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def opened(browser: Browser, errors: list[str]) -> Page:
    """A page of a browser of its own; what goes wrong in it is an error."""
    page = browser.new_context().new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
    return page


def join(page: Page, link: str, name: str) -> None:
    page.goto(link)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Join").click()
    page.wait_for_url("**/")


def assert_usable(page: Page) -> None:
    """Names, roles, and contrast in both themes, as axe sees them; nothing wider than a phone."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        result: dict[str, Any] = page.evaluate("axe.run({ resultTypes: ['violations'] })")
        found = [(each["id"], each["nodes"][0]["html"][:200]) for each in result["violations"]]
        assert found == [], f"{page.url} in the {theme} theme"
    page.emulate_media(color_scheme="light")
    size = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    wait_until(page, "document.documentElement.scrollWidth <= 390")
    assert size is not None
    page.set_viewport_size(size)


def assert_whole_on_a_phone(page: Page, table: str) -> None:
    """All columns of a table are there without scrolling."""
    page.set_viewport_size({"width": 390, "height": 844})
    size: tuple[int, int] = page.eval_on_selector(table, "each => [each.scrollWidth, each.clientWidth]")
    assert size[0] <= size[1]
    page.set_viewport_size({"width": 1280, "height": 720})


def assert_end_is_seen_on_a_phone(page: Page, path: str) -> None:
    """A path that is too long is cut at its beginning."""
    page.set_viewport_size({"width": 390, "height": 844})
    places: list[list[float]] = page.eval_on_selector(
        path,
        "each => [each, each.firstElementChild].map(it => it.getBoundingClientRect()).map(it => [it.left, it.right])",
    )
    (left, right), (begin, end) = places
    assert begin < left
    assert end <= right
    page.set_viewport_size({"width": 1280, "height": 720})


def test_whoever_was_refused_at_the_provider_can_try_again(
    databases: PostgresDatabases, tmp_path: Path, browser: Browser
) -> None:
    errors: list[str] = []
    openid = OpenIdSettings(issuer="http://127.0.0.1:9", client_id="turnlog", client_secret="x", name="Shop")
    with hub(databases, tmp_path, HubSettings(openid=openid)) as found, listening(found) as base:
        page = opened(browser, errors)
        page.goto(f"{base}/sign-in/openid/callback?error=access_denied")
        expect(page.get_by_role("alert").first).to_contain_text("this was refused where you sign in")
        assert_usable(page)
        page.get_by_role("link", name="Sign in with Shop").click()
        expect(page.get_by_role("alert").first).to_contain_text("does not answer")
    assert errors == []


@pytest.mark.parametrize(
    ("to", "path"),
    [
        ("/usage?by=day", "/usage?by=day"),
        ("//evil.example/", "/"),
        ("/\t/evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("//", "/"),
    ],
)
def test_who_signs_in_stays_on_the_hub(
    databases: PostgresDatabases, tmp_path: Path, browser: Browser, to: str, path: str
) -> None:
    asked: list[str] = []
    with hub(databases, tmp_path) as found, listening(found) as base:
        page = browser.new_page()
        page.route("**/*", lambda route: (asked.append(route.request.url), route.continue_()))
        page.route("**/hub/v1/sign-in", lambda route: route.fulfill(json={}))
        # What is there is another matter: nobody has signed in.
        page.route(f"{base}{path}", lambda route: route.fulfill(body="here"))
        page.goto(f"{base}/sign-in?to={quote(to, safe='')}#code=abc")
        page.wait_for_url(f"{base}{path}")
        page.close()
    assert all(each.startswith(base) for each in asked)


def test_people_join_connect_and_share_in_the_browser(
    databases: PostgresDatabases, tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but a notification of the database brings a change in time.
    monkeypatch.setattr(contexts, "POLL_SECONDS", 4 * SECONDS)
    errors: list[str] = []
    with hub(databases, tmp_path) as found, listening(found) as base:
        ana, ben, guest = (opened(browser, errors) for _ in range(3))
        join(ana, f"{base}/join#code={found.people.teams.invite_first(60)}", "Ana")
        expect(ana.get_by_text(f"turnlog hub connect {base}")).to_be_visible()
        with httpx2.Client(base_url=base) as machine:
            asked = machine.post("/hub/v1/device", json={"machine": "laptop", "platform": "Linux"}).json()
            ana.goto(f"{base}/connect")
            ana.get_by_label("The code that the machine shows").fill(asked["user_code"].lower())
            ana.get_by_role("button", name="Go on").click()
            ana.get_by_role("button", name="Connect").click()
            ana.get_by_text("laptop may send your sessions now").wait_for()
            joined = machine.post("/hub/v1/device/token", json={"device_code": asked["device_code"]}).json()
            machine.headers["Authorization"] = f"Bearer {joined['access_token']}"
            session = save_session(machine, "a", "a hat", ownership={"machine": "laptop"})
            ana.goto(f"{base}/team")
            ana.get_by_role("button", name="Invite").click()
            join(ben, ana.locator(".secret code").inner_text(), "Ben")

            # Shown to Ben, who reads it with the name of its owner, and cannot change it.
            ana.goto(f"{base}/sessions/{session}")
            ana.get_by_role("button", name="Shown to: Only me").click()
            dialog = ana.get_by_role("dialog", name="Who sees this session")
            dialog.get_by_label("Some people").check()
            dialog.get_by_label("Ben").check()
            assert_usable(ana)
            dialog.get_by_role("button", name="Save").click()
            ana.get_by_role("button", name="Shown to: Some people").wait_for()
            ben.goto(base)
            ben.get_by_text("Ana on laptop").wait_for()
            ben.get_by_role("link", name="title of a hat").click()
            ben.get_by_text("answer a hat").wait_for()
            expect(ben.get_by_role("button", name="Shown to")).to_have_count(0)

            # What Ana's agent adds is before Ben's eyes at once, and in Ana's own browser.
            for page in (ana, ben):
                page.get_by_text("answer a hat").wait_for()
                page.locator(".session-facts[data-live=true]").wait_for()
            message = {
                "id": "live",
                "role": "assistant",
                "model": "m",
                "parts": [{"type": "text", "text": "now a coat"}],
            }
            machine.post(f"/api/sessions/{session}/messages", json={"messages": [message]})
            ben.get_by_text("now a coat").wait_for()
            ana.get_by_text("now a coat").wait_for()

        ana.get_by_role("button", name="Shown to: Some people").click()
        dialog.get_by_label("With a link").check()
        dialog.get_by_role("button", name="Save").click()
        expect(dialog.get_by_role("alert")).to_have_text("Nothing has changed yet: make a link.")
        dialog.get_by_label("It works for").select_option("A day")
        dialog.get_by_role("button", name="Make a link").click()
        link = dialog.locator(".secret code").inner_text()
        guest.goto(link)
        guest.wait_for_url(f"**/sessions/{session}")
        guest.get_by_text("answer a hat").wait_for()
        assert link.partition("#code=")[2] not in guest.url
        dialog.get_by_role("button", name="Revoke").click()
        dialog.get_by_role("button", name="Revoke").wait_for(state="detached")
        late = opened(browser, errors)
        late.goto(link)
        late.get_by_text(re.compile("This link is wrong, has expired or was revoked")).wait_for()
        # Whoever reads with it is told so, too, and not asked to sign in.
        guest.reload()
        guest.get_by_role("heading", name="This link has ended").wait_for()
        guest.get_by_text("It has expired or was revoked.").wait_for()
        assert_usable(guest)
        # Who has no link, and comes to its page, is not told that one has ended.
        late.goto(f"{base}/shared")
        late.get_by_role("heading", name="A link to a session").wait_for()
    assert errors == []


def test_an_owner_keeps_the_team_in_the_browser(databases: PostgresDatabases, tmp_path: Path, browser: Browser) -> None:
    errors: list[str] = []
    with hub(databases, tmp_path) as found, listening(found) as base:
        people = {name: found.browser(name) for name in ("Ben", "Cleo", "Dov", "Eva")}
        owner = found.browser("Olga", "owner")
        found.browser("Dov")
        for number, client in enumerate([owner, *people.values()]):
            session = save_session(client, f"s{number}", "a hat", cwd=SHOP)
            save_counted(client, session, f"u{number}", input=1000, output=10)
        owner.put("/hub/v1/sessions/turnlog:s0/sharing", json={"visibility": "team"})
        people["Ben"].get("/api/sessions/turnlog:s0")
        gone = save_session(owner, "gone", "a coat")
        owner.put(f"/hub/v1/sessions/{gone}/sharing", json={"visibility": "team"})
        people["Ben"].get(f"/api/sessions/{gone}")
        assert owner.delete(f"/api/sessions/{gone}").status_code == 204
        assert owner.post("/hub/v1/invitations", json={}).status_code == 200
        page = opened(browser, errors)
        page.context.add_cookies([{"name": "turnlog_browser", "value": owner.cookies["turnlog_browser"], "url": base}])

        page.goto(f"{base}/team")
        with page.expect_response("**/members/*"):
            page.get_by_label("Role of Ben").select_option("viewer")
        expect(page.get_by_label(re.compile(r"Role of Dov \(u-[0-9a-f]+\)"))).to_have_count(2)
        expect(page.get_by_role("listitem").filter(has_text="Whoever has the link")).to_have_count(1)
        page.get_by_label("Role of Olga").select_option("member")
        page.get_by_text(re.compile("The last owner stays")).wait_for()
        row = page.get_by_role("listitem").filter(has_text="Eva")
        row.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        row.wait_for(state="detached")
        assert people["Eva"].get("/hub/v1/me").status_code == 401
        assert found.people.teams.role_of(1, found.ids["Ben"]) == "viewer"
        assert_usable(page)

        page.get_by_role("link", name="Machines and tokens").click()
        page.get_by_label("New token for").fill("nightly")
        page.get_by_role("button", name="Make a token").click()
        token = page.locator(".secret code").inner_text()
        assert found.client(token).get("/hub/v1/me").json()["scopes"] == ["read"]
        row = page.get_by_role("listitem").filter(has_text="nightly")
        row.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        row.wait_for(state="detached")
        assert found.client(token).get("/hub/v1/me").status_code == 401
        assert_usable(page)

        page.get_by_role("link", name="Rules").click()
        page.get_by_label("Forget sessions").fill("1000")
        page.get_by_text("It would forget nothing now.").wait_for()
        page.get_by_role("button", name="Save the rules").click()
        page.get_by_role("button", name="Make it the rule").click()
        page.get_by_role("dialog").wait_for(state="detached")
        assert found.people.rulebook.rules(1).retention_days == 1000
        assert_usable(page)

        held: list[Route] = []
        page.route("**/hub/v1/budgets", lambda route: held.append(route))
        page.get_by_role("link", name="Usage").nth(1).click()
        page.get_by_role("heading", name="Budgets").wait_for()
        expect(page.get_by_text("None yet.")).to_have_count(0)
        for route in held:
            route.continue_()
        page.unroute("**/hub/v1/budgets")
        page.get_by_text("None yet.").wait_for()
        page.get_by_role("cell", name="5", exact=True).first.wait_for()
        page.get_by_role("rowheader", name=SHOP).wait_for()
        assert_end_is_seen_on_a_phone(page, ".path-end")
        page.get_by_label("US dollars a month").fill("250.5")
        page.get_by_role("button", name="Set the budget").click()
        page.get_by_text("$250.50 a month. What was spent is unknown.").wait_for()
        assert [each.limit for each in found.people.budgets.for_admin(1, 5)] == [250.5]
        page.get_by_role("button", name="Person").click()
        page.get_by_role("rowheader", name="Smaller groups together").wait_for()
        assert_usable(page)

        page.goto(f"{base}/projects")
        page.get_by_text(SHOP).wait_for()
        assert_end_is_seen_on_a_phone(page, ".path-end")
        page.goto(f"{base}/team")
        page.get_by_role("link", name="Audit log").click()
        entries = page.get_by_role("list", name="Entries").get_by_role("listitem")
        entries.filter(has_text="Ben read title of a hat").wait_for()
        # What is not there any more has no page.
        entries.filter(has_text=f"Ben read {gone}").wait_for()
        expect(page.get_by_role("link", name="title of a hat")).to_have_count(2)  # read, and shared before
        expect(page.get_by_role("link", name=gone)).to_have_count(0)
        expect(page.get_by_label("Person").locator("option").filter(has_text=re.compile(r"Dov \(u-"))).to_have_count(2)
        assert_whole_on_a_phone(page, ".audit-list")
        assert_whole_on_a_phone(page, ".team-sections")
        page.get_by_role("button", name="The team").click()
        page.get_by_label("Action").select_option("Changed the rules")
        entries.filter(
            has_text=re.compile("Olga changed the rules: .*sessions are forgotten after 1000 days")
        ).wait_for()
        expect(entries).to_have_count(1)
        entries.get_by_role("button", name="Details").click()
        expect(entries).to_contain_text('"retention_days": 1000')
        assert_usable(page)
    assert errors == []


def test_of_somebody_elses_session_only_what_one_may_do_is_offered(
    databases: PostgresDatabases, tmp_path: Path, browser: Browser
) -> None:
    errors: list[str] = []
    with hub(databases, tmp_path) as found, listening(found) as base:
        ana = found.browser("Ana", "owner")
        shared = save_session(ana, "shared", "xylophone")
        ana.put(f"/hub/v1/sessions/{shared}/sharing", json={"visibility": "team", "people": []})
        ben = opened(browser, errors)
        code = found.people.secrets.make("invitation", team=1, role="member")[0]
        join(ben, f"{base}/join#code={code}", "Ben")
        late = opened(browser, errors)
        late.goto(f"{base}/join#code={code}")
        late.get_by_label("Your name").fill("Ben")
        late.get_by_role("button", name="Join").click()
        expect(late.get_by_role("heading", name="This invitation has ended")).to_be_visible()
        expect(late.get_by_role("button", name="Join")).to_have_count(0)
        # Figures are below their names, although a row has no buttons.
        name = ben.locator(".session-head .session-figure").last.bounding_box()
        figure = ben.locator(".session-row .session-when").bounding_box()
        assert name is not None
        assert figure is not None
        assert abs(name["x"] + name["width"] - figure["x"] - figure["width"]) < 2
        ben.get_by_role("button", name="Select").click()
        ben.get_by_role("checkbox").first.check()
        bar = ben.get_by_label("Selected sessions")
        expect(bar.get_by_text("1 selected")).to_be_visible()
        expect(bar.get_by_role("button", name="Export")).to_be_visible()
        for name in ("Archive", "Tag", "Forget…"):
            expect(bar.get_by_role("button", name=name)).to_have_count(0)
        ben.goto(f"{base}/search?q=xylophone")
        expect(ben.locator(".hit-places")).to_contain_text("Ana")
        assert_usable(ben)
    assert errors == []


def test_a_session_goes_to_the_trash_and_comes_back(
    databases: PostgresDatabases, tmp_path: Path, browser: Browser
) -> None:
    errors: list[str] = []
    with hub(databases, tmp_path) as found, listening(found) as base:
        ana = found.browser("Ana", "owner")
        session = save_session(ana, "a", "a hat", cwd="/work/shop")
        page = opened(browser, errors)
        page.context.add_cookies([{"name": "turnlog_browser", "value": ana.cookies["turnlog_browser"], "url": base}])
        page.goto(f"{base}/sessions/{session}")
        page.get_by_role("button", name="Share", exact=True).click()
        page.get_by_role("button", name="Move to the trash").click()
        row = page.get_by_role("region", name="Trash").get_by_role("listitem").filter(has_text="a hat")
        row.wait_for()
        assert_usable(page)
        assert ana.get(f"/api/sessions/{session}").status_code == 404
        row.get_by_role("button", name="Take out of the trash").click()
        page.get_by_role("dialog").get_by_role("button", name="Take out of the trash").click()
        row.wait_for(state="detached")
        page.goto(f"{base}/")
        page.get_by_text("title of a hat").wait_for()
    assert errors == []
