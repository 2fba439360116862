"""Every notebook in a real JupyterLab, as a reader uses it: open, Run All by the menu, move the sliders."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from browser.conftest import Server
from playwright.sync_api import BrowserContext, Locator, Page, expect

from notebooks import code_cells, paths, tags

pytestmark = pytest.mark.timeout(300)

OPEN = 60_000  # milliseconds
RUN = 180_000
TRACEBACK = "Traceback (most recent call last)"
READY = """async limit => {
    const widget = window.jupyterapp.shell.currentWidget;
    const late = new Promise((_, no) => setTimeout(() => no(new Error('no kernel: is a kernelspec stored?')), limit));
    const all = [widget.revealed, widget.context.ready, widget.sessionContext.ready];
    await Promise.race([Promise.all(all), late]);
    await Promise.race([widget.sessionContext.session.kernel.info, late]);
}"""
PROMPT = ".jp-InputPrompt:not(.jp-Placeholder-prompt)"  # a folded cell has a placeholder, without a number
FINISHED = r"""() => {
    const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
    const shown = panel.querySelectorAll('.jp-CodeCell PROMPT');
    const prompts = [...shown].map(e => e.textContent.trim());
    const idle = panel.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle';
    const stopped = panel.textContent.includes('Traceback (most recent call last)');  // the cells below stay unnumbered
    const ran = prompts.every(text => /^\[\d+\]:$/.test(text));
    return idle && prompts.length > 0 && !prompts.includes('[*]:') && (ran || stopped);
}""".replace("PROMPT", PROMPT)


@dataclass
class Opened:
    """A notebook that was opened and run, and what the browser complained of meanwhile."""

    page: Page
    panel: Locator
    notebook: nbformat.NotebookNode
    name: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)

    def cell(self, cell: nbformat.NotebookNode) -> Locator:
        return self.panel.locator(".jp-CodeCell").nth(code_cells(self.notebook).index(cell))


@pytest.fixture(scope="module", params=[path.name for path in paths()])
def opened(request: pytest.FixtureRequest, browser: BrowserContext, server: Server, shots: Path) -> Iterator[Opened]:
    name = request.param
    page = browser.new_page()
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    opened = Opened(page, panel, nbformat.read(server.notebooks / name, as_version=4), Path(name).stem)
    ours = (server.url, server.url.replace("http:", "ws:"), "data:", "blob:")
    page.on("console", lambda message: opened.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.on("requestfailed", lambda request: opened.complaints.append(f"failed: {request.url}"))
    page.on("request", lambda request: None if request.url.startswith(ours) else opened.elsewhere.add(request.url))

    page.goto(f"{server.url}/lab/tree/notebooks/{name}?reset&token={server.token}")
    # The page says "idle" before the document and the session are ready, and a Run All sent then is lost.
    expect(panel.locator(".jp-Cell")).to_have_count(len(opened.notebook.cells), timeout=OPEN)
    page.evaluate(READY, OPEN)
    run_all(page)
    try:
        page.wait_for_function(FINISHED, timeout=RUN)
    finally:  # also when it did not finish
        page.screenshot(path=shots / f"{opened.name}-run.png")
    yield opened
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()


def run_all(page: Page) -> None:
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Run$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()


def slider_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells whose picture follows a slider. They carry the tag `slider`."""
    return [cell for cell in code_cells(notebook) if "slider" in tags(cell)]


def press(handle: Locator, times: int) -> None:
    """Move a slider by keys, towards the side that has room."""
    low, now, high = (float(handle.get_attribute(f"aria-value{name}") or 0) for name in ("min", "now", "max"))
    handle.focus()
    for _ in range(times):
        handle.press("ArrowRight" if high - now >= now - low else "ArrowLeft")


def test_it_runs_from_top_to_bottom_without_an_error(opened: Opened):
    for cell in code_cells(opened.notebook):
        shown = opened.cell(cell).locator(".jp-OutputArea").first.text_content() or ""
        assert (TRACEBACK in shown) == ("raises-exception" in tags(cell)), shown
    prompts = opened.panel.locator(f".jp-CodeCell {PROMPT}").all_text_contents()
    folded = [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in code_cells(opened.notebook)]
    assert prompts == [f"[{number}]:" for number, hidden in enumerate(folded, 1) if not hidden]


def test_a_slider_changes_its_picture_and_leaves_one(opened: Opened, shots: Path):
    cells = slider_cells(opened.notebook)
    if not cells and not opened.name.startswith("00"):
        pytest.skip("this notebook has no cell with the tag `slider`")
    assert cells, "notebook 00 has a slider: tag its cell `slider`"
    for number, cell in enumerate(cells, 1):
        seen = opened.cell(cell)
        seen.scroll_into_view_if_needed()
        pictures = seen.locator(".jp-OutputArea-output img")
        expect(pictures).to_have_count(1, timeout=20_000)
        expect(pictures).to_be_visible(timeout=20_000)
        handle = seen.locator(".widget-slider .noUi-handle").first
        for times in (1, 5):
            before = pictures.get_attribute("src") or ""
            press(handle, times)
            expect(pictures).not_to_have_attribute("src", before, timeout=20_000)
        opened.page.wait_for_function(FINISHED, timeout=RUN)
        expect(pictures).to_have_count(1)
        assert TRACEBACK not in (seen.text_content() or "")
        seen.screenshot(path=shots / f"{opened.name}-slider-{number}.png")


def test_the_browser_has_no_complaint_and_asks_no_other_machine(opened: Opened):
    expect(opened.page.locator(".Toastify__toast")).to_have_count(0)  # no question about news or updates either
    assert opened.complaints == []
    assert opened.elsewhere == set()
