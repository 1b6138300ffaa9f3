"""The pictures of the report in these pages, taken by a browser.

    python docs/report_pictures.py

trains on the docstrings of the installed libraries, writes a report, and pictures its parts in
``docs/pictures``. It needs ``textnb[report,browser]``, Chromium and its driver.
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
# Section of the page, and the height at which its picture is cut.
PARTS = {"confusion": 420, "curves": 580, "mistakes": 720, "terms": 720}


def _chrome(options: Any) -> Any:
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def main() -> None:
    rows = build()
    model = TextClassifier(MultinomialNB(l="auto")).fit(rows.filter(pl.col("split") == "train"))
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1200,900"):
        options.add_argument(option)
    with tempfile.TemporaryDirectory() as folder, _chrome(options) as browser:
        page = Path(folder) / "report.html"
        write_report(model, rows.filter(pl.col("split") == "test"), page)
        browser.get(page.as_uri())
        FOLDER.mkdir(exist_ok=True)
        for part, height in PARTS.items():
            browser.execute_script(
                "const s = document.getElementById(arguments[0]).style;"
                "s.maxHeight = arguments[1] + 'px'; s.overflow = 'hidden';", part, height)
            section = browser.find_element(By.ID, part)
            section.screenshot(str(FOLDER / f"{part}.png"))


if __name__ == "__main__":
    main()
