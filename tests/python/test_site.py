"""The documentation site builds without errors, and works from the file system without a network.

Without Chromium the tests in a browser are skipped with a warning.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

import narrows
import pytest
from narrows import playground
from test_browser import chromium

pytest.importorskip("zensical", reason="the documentation extra is not installed")

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools/build_site.py"
REPOSITORY = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]


PLAYGROUND = playground.PAGE.name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run([sys.executable, TOOL, "--out", out], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("build_site", TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "build_site", module)
    monkeypatch.syspath_prepend(str(TOOL.parent))  # the script imports its neighbour web
    spec.loader.exec_module(module)
    root = tmp_path.resolve()
    for name in ("zensical.toml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    (root / "docs/guides").mkdir(parents=True)
    (root / "docs/index.md").write_text("# Home\n\nSee [guides](guides/index.md).\n")
    (root / "docs/guides/index.md").write_text(
        "# Guides\n\nRead [one](one.md#first) and [limits](../../LIMITS.md).\n"
    )
    (root / "docs/guides/one.md").write_text(
        "# One\n\n## First\n\nWritten in [TOML](../../pyproject.toml).\n"
    )
    (root / "LIMITS.md").write_text("# Limits\n\nBack to [one](docs/guides/one.md).\n")
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(module, "DOCS", root / "docs")
    return module


def test_pages_follow_their_indexes_and_links_are_rewritten(tool, tmp_path):
    out = tmp_path / "site"
    tool.build(out, with_rust=False)
    assert {page.relative_to(out).as_posix() for page in own_pages(out)} == {
        "404.html",
        "index.html",
        "guides/index.html",
        "guides/one.html",
        "guides/limits.html",
    }
    assert 'href="one.html"' in (out / "guides/limits.html").read_text()
    source = f"{REPOSITORY}/blob/main/pyproject.toml"
    assert f'href="{source}"' in (out / "guides/one.html").read_text()
    navigation = re.findall(
        r'href="\./(guides/\w+\.html)" class="md-nav__link', (out / "index.html").read_text()
    )
    assert list(dict.fromkeys(navigation)) == ["guides/index.html", "guides/one.html", "guides/limits.html"]


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("one.md#second", "the generator found faults in the pages"),
        ("two.md", "docs/guides/index.md: two.md does not exist"),
        ("picture.svg", "docs/guides/index.md: picture.svg does not exist"),
    ],
)
def test_a_dead_link_fails_the_build(tool, tmp_path, link, fault):
    with (tmp_path / "docs/guides/index.md").open("a") as index:
        index.write(f"\n[dead]({link})\n")
    out = tmp_path / "site"
    with pytest.raises(tool.SiteError, match=re.escape(fault)):
        tool.build(out, with_rust=False)
    assert not out.exists()


def test_a_page_that_no_index_links_to_fails_the_build(tool, tmp_path):
    (tmp_path / "docs/guides/lost.md").write_text("# Lost\n")
    with pytest.raises(tool.SiteError, match=r"docs/guides/lost\.md: no index page links to it"):
        tool.contents()


def own_pages(site):
    """Every page except those of rustdoc and the playground, which has its own tests."""
    return [
        page for page in site.glob("**/*.html") if page.relative_to(site).parts[0] not in ("rust", PLAYGROUND)
    ]


def test_pages_load_nothing_from_outside(site):
    for page in own_pages(site):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text())
        outside = [
            tag for tag in loaded if re.search(r"(?:src|href)=.?https?:", tag) and "canonical" not in tag
        ]
        assert not outside, page


def test_links_in_generated_parts_lead_somewhere(site):
    """The site generator does not check the links in the generated reference. This test checks them."""
    pages = {page: page.read_text() for page in own_pages(site)}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    for page, text in pages.items():
        if page.name == "404.html":
            continue
        for target in re.findall(r'<a [^>]*href="([^"]+)"', text):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), f"{page.name}: {target}"
            if file not in pages:
                continue
            # Anchors that start with `__` belong to scripts of the theme.
            if anchor and not anchor.startswith("__"):
                assert anchor in anchors[file], f"{page.name}: {target}"


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_the_page_about_rust_links_to_the_documentation_of_each_crate(site):
    text = (site / "reference/rust.html").read_text()
    for crate in ("narrows_control", "narrows_plan", "narrows_sim"):
        assert f'href="../rust/{crate}/index.html"' in text
        assert f"Crate {crate}" in re.sub(r"<[^>]+>", "", (site / f"rust/{crate}/index.html").read_text())


def test_the_python_reference_has_every_public_name_with_its_docstring(site):
    text = (site / "reference/python.html").read_text()
    for name in narrows.__all__:
        assert f'id="narrows.{name}"' in text, name
    assert "Read a scenario file." in text


def test_the_command_reference_has_every_command(site, narrows):
    text = (site / "reference/commands.html").read_text()
    code, out, _ = narrows("--help")
    assert code == 0
    for name in ("run", "check", "report", "doctor"):
        assert re.search(rf"\b{name}\b", out)
        assert f'id="narrows-{name}"' in text


def test_a_reader_searches_follows_a_result_and_turns_the_lights_off(site):
    """A page from file:// makes no request to any host."""
    api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="light")
        outside, errors = [], []
        # The search worker starts from a blob, which is in the browser's memory.
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "blob:")) or outside.append(request.url),
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "index.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("Gilbert-Elliott")
        result = (
            page.get_by_role("option").filter(has_text=re.compile("gilbert-elliott", re.IGNORECASE)).first
        )
        result.click()
        page.wait_for_url("**/reference/*.html*")
        assert "gilbert-elliott" in page.inner_text("article").lower()
        body = page.locator("body")
        assert body.get_attribute("data-md-color-scheme") == "default"
        light = body.evaluate("element => getComputedStyle(element).backgroundColor")
        page.locator("label[title='Switch to dark mode']").click()
        api.expect(body).to_have_attribute("data-md-color-scheme", "slate")
        assert body.evaluate("element => getComputedStyle(element).backgroundColor") != light
        page.reload()
        api.expect(body).to_have_attribute("data-md-color-scheme", "slate")
        assert not outside and not errors
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_example_runs_in_place(site, scheme):
    if not (site / PLAYGROUND).exists():
        pytest.skip("the site has no playground: make web")
    api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(color_scheme=scheme)
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "tutorials/first-comparison.html").as_uri())
        link = page.locator("a.play").first
        assert page.locator("iframe").count() == 0, "nothing is loaded before a click"
        link.focus()
        page.keyboard.press("Enter")
        frame = page.frame_locator(".play-frame iframe").first
        frame.locator("#progress[data-complete=true]").wait_for(timeout=120_000)
        text = frame.locator("#toml").input_value()
        assert link.get_attribute("href").endswith(playground.fragment(text))
        wants_dark = frame.locator("body").evaluate(
            "() => matchMedia('(prefers-color-scheme: dark)').matches"
        )
        assert wants_dark == (scheme == "dark")
        assert link.get_attribute("aria-expanded") == "true"
        page.keyboard.press("Enter")
        assert page.locator("iframe").count() == 0
        assert link.inner_text() == "Run this scenario in your browser"
        assert link.get_attribute("aria-expanded") == "false"
        link.click(modifiers=["Control"])
        assert page.locator("iframe").count() == 0, "Ctrl opens the page in another tab"
        assert not errors
        browser.close()


SCENARIO = """topology = { kind = "dumbbell", rate = "10mbit", rtt = "20ms" }
flows = [{}]
duration = "1s"
"""


def test_examples_that_the_playground_runs_have_a_link(tool, monkeypatch):
    place = PurePosixPath("guides/one.md")
    with_trace = SCENARIO.replace('rate = "10mbit"', 'trace = { file = "x.csv" }')
    for example, has_link in ((SCENARIO, True), (with_trace, False), ("[topology]\nrate = 1\n", False)):
        text = f"# One\n\n```toml\n{example}```\n\nMore.\n"
        linked = tool.with_examples(text, place)
        assert ("<a " in linked) == has_link
        if has_link:
            (target,) = re.findall(r'href="\.\./narrows-play\.html(#s=[\w-]+)"', linked)
            assert target == playground.fragment(example)


@pytest.mark.parametrize("is_built", [True, False])
def test_the_site_has_the_playground_if_it_was_built(tool, tmp_path, monkeypatch, is_built):
    page = tmp_path / "built.html"
    monkeypatch.setattr(tool.web, "page", lambda: page)
    if is_built:
        page.write_text("<!doctype html><title>page</title>")
    (tmp_path / "docs/guides/one.md").write_text(f"# One\n\n## First\n\n```toml\n{SCENARIO}```\n")
    tool.build(tmp_path / "site", with_rust=False)
    assert (tmp_path / "site" / PLAYGROUND).exists() == is_built
    assert ("Run this scenario" in (tmp_path / "site/guides/one.html").read_text()) == is_built


def test_each_link_to_the_playground_runs_its_scenario(site):
    links = [
        (page, target)
        for page in own_pages(site)
        for target in re.findall(r'<a class="play" href="([^"]+)"', page.read_text())
    ]
    if not (site / PLAYGROUND).exists():
        assert links == []
        pytest.skip("the site has no playground: make web")
    assert any(page.name == "first-comparison.html" for page, _ in links)
    api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for source, target in links:
            page = browser.new_page()
            errors, outside = [], []
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            page.on(
                "request",
                lambda request, outside=outside: (
                    request.url.startswith(("file:", "blob:", "data:")) or outside.append(request.url)
                ),
            )
            page.goto(source.as_uri())
            page.goto(page.locator(f'a.play[href="{target}"]').first.evaluate("link => link.href"))
            page.wait_for_selector("#progress[data-complete=true]", timeout=120_000)
            text = page.locator("#toml").input_value()
            assert playground.fragment(text) == f"#{target.partition('#')[2]}"
            assert page.locator("#problem").is_hidden() and page.locator("#notice").is_hidden()
            assert not errors and not outside
            page.close()
        browser.close()
