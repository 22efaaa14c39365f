# SPDX-License-Identifier: Apache-2.0
"""Checks the links of HTML pages in a folder: files, anchors and pictures exist.

With --external, servers are asked, too: a page that they do not have is an error, a server out of reach is told."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.add(value)


def check(folder: Path) -> tuple[list[str], dict[str, str]]:
    """What is broken, and a page for each address outside of the folder."""
    pages = {p.resolve(): Page(p) for p in folder.rglob("*.html")}
    wrong, outside = [], {}
    for path, page in pages.items():
        for link in sorted(page.links):
            where = urlsplit(link)
            if where.scheme or where.netloc:
                if where.scheme in ("http", "https"):
                    outside[link.partition("#")[0]] = str(path.relative_to(folder.resolve()))
                continue
            file = (path.parent / unquote(where.path)).resolve() if where.path else path
            anchor = unquote(where.fragment)
            # The theme's own "#" goes to the top of the page.
            if not file.is_file() or anchor and file in pages and anchor not in pages[file].anchors:
                wrong.append(f"{path.relative_to(folder.resolve())}: {link}")
    return wrong, outside


def ask(address: str) -> tuple[bool, str]:
    """Whether a server says that there is no such page, and what it says if it does not give the page."""
    request = urllib.request.Request(address, headers={"User-Agent": "penstock-links"})
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except urllib.error.HTTPError as e:
        return e.code in (404, 410), str(e)
    except OSError as e:
        return False, str(e)
    return False, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--external", action="store_true", help="ask servers, too")
    args = parser.parse_args()
    wrong, outside = check(args.folder)
    for address, page in sorted(outside.items()) if args.external else ():
        gone, said = ask(address)
        if gone:
            wrong.append(f"{page}: {address}: {said}")
        elif said:
            print(f"not checked: {address}: {said}")
    if wrong:
        sys.exit("\n".join(["links that lead nowhere:", *wrong]))
    print(f"the links in {args.folder} lead somewhere; {len(outside)} addresses of others")


if __name__ == "__main__":
    main()
