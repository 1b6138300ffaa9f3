"""The report as a browser shows it: offline, without a script, on a wide and a narrow screen."""

import json
import shutil

import polars as pl
import pytest

from textnb import Calibration, Decision, TextClassifier, Tokenizer, write_report

for extra in ("altair", "vl_convert", "jinja2"):
    pytest.importorskip(extra, reason="needs textnb[report]")
webdriver = pytest.importorskip("selenium.webdriver", reason="needs textnb[browser]")

OWNED = "<script>document.title='owned'</script>"
LABELS = ["</text><script>document.title='owned'</script>",
          '"><img src=http://localhost/x onerror=document.title="owned">', "plain"]


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium that can resolve no name."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page of a calibrated model with a decision, on hostile rows."""
    frame = pl.DataFrame({
        "text": [f"{OWNED} aa", "bb <img src=http://localhost/y onerror=alert(1)>", "cc cc",
                 "unbroken" * 200] * 6,
        "label": [*LABELS, LABELS[0]] * 6})
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"\S+")).fit(frame)
    model.set_calibration(Calibration(2.0)).set_decision(Decision(dict.fromkeys(LABELS, 0.5)))
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model, frame.with_columns(pl.col("label").shift(1, fill_value=LABELS[0])), path,
                 train=frame, title=OWNED)
    return path


def opened(browser, path, width, scheme="light"):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())


def requested(browser):
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return {event["params"]["request"]["url"] for event in events
            if event["method"] == "Network.requestWillBeSent"}


@pytest.mark.parametrize("width", [1200, 360, 320])
def test_the_page_loads_itself_alone_runs_nothing_and_fits_the_screen(browser, report, width):
    opened(browser, report, width)
    assert browser.title == OWNED
    assert browser.get_log("browser") == []
    assert requested(browser) == {report.as_uri()}
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    shown, whole = browser.execute_script(
        "return [document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    assert shown == whole
    assert width - 20 < shown <= width


def test_the_log_would_show_a_request_and_a_refusal(browser, tmp_path):
    # What the test above would see if it failed.
    path = tmp_path / "loud.html"
    path.write_text("<title>x</title><img src='http://localhost/x'><script>throw 1</script>")
    opened(browser, path, 360)
    assert requested(browser) == {path.as_uri(), "http://localhost/x"}
    assert len(browser.get_log("browser")) >= 2


def test_charts_are_drawn(browser, report):
    opened(browser, report, 360)
    sizes = browser.execute_script("""
        return [...document.querySelectorAll('figure svg')].map(svg => {
          const box = svg.getBoundingClientRect();
          const drawn = [...svg.querySelectorAll('path')].filter(path => {
            const inner = path.getBoundingClientRect();
            return inner.width > 1 && inner.height > 1;
          });
          const texts = [...svg.querySelectorAll('text')].filter(text => {
            const inner = text.getBoundingClientRect();
            return inner.left < box.left - 2 || inner.right > box.right + 2;
          });
          return [box.width, box.height, drawn.length, texts.length];
        })""")
    # Confusions, ROC, precision and recall, reliability, and the histogram.
    assert len(sizes) == 5
    for width, height, drawn, outside in sizes:
        assert width > 150
        assert height > 100
        assert drawn >= 2
        assert outside == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, report, scheme):
    opened(browser, report, 1200, scheme)
    contrasts = browser.execute_script("""
        const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
        const ground = node => {
          for (; node; node = node.parentElement) {
            const colour = numbers(getComputedStyle(node).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour.slice(0, 3);
          }
          return [255, 255, 255];
        };
        const light = colour => colour.map(v => v / 255).map(
          v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
        ).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const texts = document.querySelectorAll('h1,h2,h3,p,dt,dd,td,th,li,a,summary,caption,' +
                                                'figcaption,blockquote,svg text,strong,.word');
        return [...texts].filter(node => node.textContent.trim()).map(node => {
          const style = getComputedStyle(node);
          const own = numbers(node.closest('svg') ? style.fill : style.color).slice(0, 3);
          const [a, b] = [light(own), light(ground(node))].sort((x, y) => y - x);
          return [(a + 0.05) / (b + 0.05), node.tagName + ': ' + node.textContent.slice(0, 30)];
        })""")
    assert len(contrasts) > 100
    assert [name for ratio, name in contrasts if ratio < 4.5] == []
