"""The pictures of the report in these pages, taken by a browser.

    python docs/report_pictures.py

trains on the docstrings of the installed libraries, writes a report, and pictures its parts in
``docs/pictures``, in the light theme and the dark one. It needs ``textnb[report,browser]``,
Chromium and its driver.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from selenium import webdriver
from selenium.webdriver.common.by import By

from corpora.docstrings import build
from textnb import MultinomialNB, TextClassifier, write_report

FOLDER = Path(__file__).parent / "pictures"
PARTS = ("confusion", "curves", "mistakes", "terms")
# A picture has the beginning of its section, and no part is cut in the middle.
STYLE = """
main > section { margin: 0; padding: 1rem; }
main > section > h2 { margin-top: 0; }
#curves details, #confusion details, #confusion .tables, #terms details,
.mistakes > li:nth-child(n + 2), .labels > article:nth-child(n + 4),
.labels .bars tr:nth-child(n + 9) { display: none; }
"""


def _chrome(options: Any) -> Any:
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def main() -> None:
    rows = build()
    model = TextClassifier(MultinomialNB(l="auto")).fit(rows.filter(pl.col("split") == "train"))
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in ("--headless=new", "--no-sandbox", "--hide-scrollbars",
                   "--window-size=1200,1800"):
        options.add_argument(option)
    with tempfile.TemporaryDirectory() as folder, _chrome(options) as browser:
        page = Path(folder) / "report.html"
        write_report(model, rows.filter(pl.col("split") == "test"), page)
        FOLDER.mkdir(exist_ok=True)
        for theme, ending in {"light": "", "dark": "-dark"}.items():
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": theme}]})
            browser.get(page.as_uri())
            browser.execute_script(
                "document.head.appendChild(document.createElement('style')).id = 'shown'")
            for part in PARTS:
                browser.execute_script(
                    "document.getElementById('shown').textContent = arguments[0]",
                    f"{STYLE} main > section:not(#{part}) {{ display: none; }}")
                section = browser.find_element(By.ID, part)
                section.screenshot(str(FOLDER / f"{part}{ending}.png"))


if __name__ == "__main__":
    main()
