# SPDX-License-Identifier: Apache-2.0
"""Looks at pages of the site in Chromium, as wide as a desktop and as a telephone: writes pictures of them, and lists
what axe-core finds wrong (contrast, names, landmarks, ...) and what is wider than the screen.

    python tools/look_at_site.py build/site/html build/site/pictures [PAGE...]

Without pages, those in the folder itself and a few of each kind below it. It needs the program chromium and the
package axe-core-python, which `make site BROWSER=1` installs. Chromium's window is at least 500 pixels wide where it
is asked what is wrong.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

WIDTHS = {"desktop": 1300, "telephone": 390}
EACH = 3  # pages of a folder
CHECK = """<script>{axe}</script><script>addEventListener("load", async () => {{
  const at = document.documentElement, found = (await axe.run(document, {{resultTypes: ["violations"]}})).violations;
  const lines = found.map(v => `${{v.id}} (${{v.nodes.length}}): ${{v.nodes[0].html.slice(0, 100)}}`);
  if (at.scrollWidth > innerWidth) lines.push(`it is ${{at.scrollWidth}} pixels wide on a screen of ${{innerWidth}}`);
  document.body.insertAdjacentHTML("beforeend", '<pre id="found"></pre>');
  document.getElementById("found").textContent = JSON.stringify(lines);
}})</script></body>"""


def chromium(*options: str) -> str:
    program = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")), "chromium")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def axe() -> str:
    (folder,) = importlib.util.find_spec("axe_core_python").submodule_search_locations  # type: ignore[union-attr]
    return Path(folder, "axe.min.js").read_text(encoding="utf-8").replace("</script>", "<\\/script>")


def wrong(page: Path, width: int, script: str) -> list[str]:
    """What axe-core says of a page, and whether it is too wide."""
    copy = page.with_name(f"looked_at_{page.name}")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", CHECK.format(axe=script)), encoding="utf-8")
    try:
        shown = chromium(f"--window-size={width},1500", "--virtual-time-budget=20000", "--dump-dom", copy.as_uri())
    finally:
        copy.unlink()
    found = re.findall(r'<pre id="found">([^<]+)</pre>', shown)
    return json.loads(html.unescape(found[-1])) if found else ["axe-core did not run"]


def some(folder: Path) -> list[Path]:
    pages = [*folder.glob("*.html")]
    for below in sorted(p for p in folder.iterdir() if p.is_dir() and p.name[0] != "_"):
        found = sorted(below.glob("*.html"))
        pages += [*(p for p in found if p.name == "index.html"), *found[:: max(1, len(found) // EACH)]]
    return sorted(set(pages))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("pages", nargs="*", help="names of pages in the site")
    asked = parser.parse_args()
    site, script, bad = asked.site.resolve(), axe(), []
    asked.pictures.mkdir(parents=True, exist_ok=True)
    pages = [site / name for name in asked.pages] or some(site)
    for page in pages:
        for screen, width in WIDTHS.items():
            name = f"{page.relative_to(site).with_suffix('').as_posix().replace('/', '.')}-{screen}.png"
            bad += [f"{page.relative_to(site)} ({screen}): {what}" for what in wrong(page, width, script)]
            chromium(f"--window-size={width},1800", f"--screenshot={asked.pictures / name}", page.as_uri())
    if bad:
        sys.exit("\n".join(["to be mended:", *bad]))
    print(f"{len(pages)} pages are well on {' and '.join(WIDTHS)}; their pictures are in {asked.pictures}")


if __name__ == "__main__":
    main()
