"""hone report: stores as a page, also in a browser."""

import json
import os
import re
import shutil
import subprocess
import unittest

from support import DONE, NORM, NORM_NEAR, PRODUCT, QUICK, USAGE, WORLD, CommandTest

EVIL = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"
CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("HONE_REQUIRE", "")
# What the page did is told by its own elements: errors, whether it fits the width, how it looks.
WATCH = "<script>var errors = 0; addEventListener('error', () => errors++);</script>"
TELL = ("<script>document.querySelectorAll('details').forEach(d => d.open = true); setTimeout(() => {"
        "const told = document.createElement('output'); told.id = 'told'; told.textContent = JSON.stringify({errors,"
        " title: document.title, fits: document.documentElement.scrollWidth <= innerWidth, cards: document.querySelectorAll('.card').length,"
        " kinds: [...document.querySelectorAll('.card')].map(e => e.classList[1] || ''),"
        " dots: document.querySelectorAll('svg circle').length, page: getComputedStyle(document.body).backgroundColor,"
        " swatches: typeof kernel_names === 'undefined' ? [...document.querySelectorAll('.swatch')].map(e =>"
        " [e.nextSibling.textContent, e.style.background]) : kernel_names.map(n => [n, kernel_color(n)]),"
        " colors: [...Array(24).keys()].map(i => { const e = document.createElement('i'); e.style.background = color(i);"
        " document.body.append(e); return getComputedStyle(e).backgroundColor; })});"
        " document.body.append(told); }, 200);</script>")


def apart(one, other):
    """How far two colours lie apart, of 255 in each of red, green and blue."""
    return max(abs(int(a) - int(b)) for a, b in zip(re.findall(r"\d+", one)[:3], re.findall(r"\d+", other)[:3]))


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


class Fleet(CommandTest):
    def report(self, *urls, code=DONE):
        path = self.folder / "fleet.html"
        self.hone("report", *urls, "-o", str(path), code=code)
        return path.read_text()

    def decision(self, **changes):
        """A result document with one decision of this call, of a device far away."""
        known = self.hone("store", "get", NORM, "--json").lines[0]
        entry = {**known, "device": "cpu|elsewhere,x,threads=64", **changes}
        return self.write("more.json", json.dumps({"hone_result": 1, "device": entry["device"], "entries": [entry],
                                                   "failed": [], "environment": {}}))

    def test_a_store_as_a_page(self):
        self.hone("tune", NORM, *QUICK, env={"HONE_PROVENANCE": "1"})
        for _ in range(2):
            self.hone("run", NORM_NEAR, env={"HONE_RECORD": "1", "HONE_POLICY": "heuristic"})
        page = self.report()
        data = data_of(page)
        (decision,) = data["decisions"]
        self.assertEqual((decision["call"], decision["stale"]), (NORM, None))
        self.assertRegex(decision["who"], "@")
        self.assertEqual([row["call"] for row in data["calls"]], [NORM_NEAR])
        self.assertGreater(len(data["contests"][0]["configs"]), 1)
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), r"https?://")
        self.assertEqual(self.hone("report", "--json").json["decisions"], data["decisions"])
        self.assertEqual(data_of(self.hone("report", "-o", "-").out)["decisions"], data["decisions"])

    def test_a_fleet_and_a_store_that_is_not_there(self):
        self.hone("tune", NORM, *QUICK)
        first = self.store
        self.use_new_store()
        self.hone("tune", NORM, PRODUCT, *QUICK, "--kernel", "portable", code=None)
        data = data_of(self.report(first, self.store, "sqlite:/nowhere/x.db", code=WORLD))
        self.assertEqual([row.get("failed") for row in data["stores"]], [None, None, "there is no such store"])
        self.assertEqual({row["store"] for row in data["decisions"]}, {0, 1})

    def test_what_cannot_be_served_is_stale(self):
        self.hone("tune", NORM, *QUICK)
        self.hone("store", "import", self.decision(revision="older"))
        stale = [row["stale"] for row in self.hone("report", "--json").json["decisions"]]
        self.assertEqual(sum(words is not None for words in stale), 1)
        self.assertIn("revision older", next(words for words in stale if words))

    def test_stores_stay_as_they_are(self):
        self.hone("tune", NORM, *QUICK)
        before = (self.folder / "store.db").read_bytes()
        self.report()
        self.assertEqual((self.folder / "store.db").read_bytes(), before)

    def test_wrong_use_makes_no_page(self):
        path = str(self.folder / "x.html")
        self.refused("report", says="-o FILE")
        self.refused("report", "--json", "-o", path, says="--json")
        self.refused("report", "-o", "/nowhere/x.html", code=WORLD, says="/nowhere/x.html")
        self.refused("report", "nonsense:x", "-o", path, code=USAGE, says="nonsense")
        self.refused("report", "sqlite:/nowhere/x.db", "-o", path, code=WORLD, says="no such store")
        self.refused("list", "-o", path, says="-o")
        self.write("garbage.db", "garbage" * 1000)
        self.hone("report", f"sqlite:{self.folder}/garbage.db", "-o", path, code=None)
        self.assertFalse(os.path.exists(path))


@unittest.skipUnless(CHROMIUM or REQUIRED, "there is no chromium (scripts/setup browser)")
class Browser(CommandTest):
    def shown(self, page, width, dark):
        page = page.replace("<head>", "<head>" + WATCH).replace("</body>", TELL + "</body>")
        path = self.write("watched.html", page)
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},1200",
             f"--user-data-dir={self.folder}/chromium", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
             "--virtual-time-budget=2000", "--dump-dom", f"file://{path}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120, check=True)
        told = re.search(r'<output id="told">(.*?)</output>', done.stdout, re.S)
        self.assertIsNotNone(told, done.stdout[-500:])
        return json.loads(told.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">"))

    def look(self, page, title, kinds=()):
        backgrounds = set()
        for width, dark in ((1280, False), (1280, True), (800, True), (500, False), (500, True)):
            with self.subTest(width=width, dark=dark):
                told = self.shown(page, width, dark)
                self.assertEqual((told["errors"], told["fits"]), (0, True), told)
                self.assertIn(title, told["title"])
                self.assertGreater(told["dots"], 5)
                self.assertLessEqual(set(kinds), set(told["kinds"]))
                backgrounds.add((dark, told["page"]))
        self.assertEqual(len(backgrounds), 2, backgrounds)

    def test_no_two_kernels_share_a_colour(self):
        if os.environ.get("HONE_E2E_SANITIZE"):
            return  # pages are the same in every build
        contest, fleet = self.folder / "contest.html", self.folder / "fleet.html"
        self.hone("tune", NORM, PRODUCT, *QUICK, "--report", str(contest))
        self.hone("report", "-o", str(fleet))
        kernels = {row["name"] for algorithm in self.hone("list", "--json").json["algorithms"] for row in algorithm["kernels"]}
        for path in (contest, fleet):
            for dark in (False, True):
                with self.subTest(path.name, dark=dark):
                    told = self.shown(path.read_text(), 1280, dark)
                    colors = {}
                    for name, color in told["swatches"]:
                        if name in kernels and color != "var(--line)":  # which those have that were not measured
                            colors.setdefault(color, set()).add(name)
                    self.assertGreater(len(colors), 1)
                    self.assertEqual([names for names in colors.values() if len(names) > 1], [])
                    # Nor would those of a page with more kernels than any has now.
                    nearest = min(apart(one, other) for i, one in enumerate(told["colors"]) for other in told["colors"][:i])
                    self.assertGreater(nearest, 12)

    def test_reports_are_drawn_at_every_width_in_light_and_dark_and_run_nothing_of_a_store(self):
        if os.environ.get("HONE_E2E_SANITIZE"):
            return  # pages are the same in every build
        contest, fleet = str(self.folder / "contest.html"), str(self.folder / "fleet.html")
        self.hone("tune", NORM, PRODUCT, *QUICK)
        self.hone("tune", NORM, PRODUCT, *QUICK, "--fresh", "--report", contest)
        entry = {**self.hone("store", "get", NORM, "--json").lines[0], "device": EVIL[:90], "algorithm": "gone", "call": EVIL}
        entry["evidence"]["undecided"] = EVIL
        entry["evidence"]["who"] = EVIL[:60]
        document = {"hone_result": 1, "device": EVIL[:90], "entries": [entry], "failed": [], "environment": {}}
        self.hone("store", "import", self.write("evil.json", json.dumps(document)))
        self.hone("report", "-o", fleet)
        with open(fleet, encoding="utf-8") as page:
            text = page.read()
        self.assertNotIn("<img", text)
        self.look(text, "hone")
        with open(contest, encoding="utf-8") as page:
            self.look(page.read(), "hone", ["before", "heatmap", "roofline", "machine", "seconds"])


if __name__ == "__main__":
    unittest.main()
