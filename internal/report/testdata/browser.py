"""Opens reports in a real browser, with its network off, and looks at what a person would see.

Usage: browser.py TFBATCH WORK. It makes jobs of the builtin model in WORK: one complete with hostile rows, one killed,
one of error rows only, one empty. Every page is opened at 400 and at 1400 pixels, light and dark.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

from playwright.sync_api import sync_playwright

BROWSERS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"]
HOSTILE = "</div></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x' \u202e\x1b[31m"
JOB = """version: 1
jobs:
  - name: %s
    model: builtin:gopher-15m
    input: { path: %s, id_field: id }
    sampling: { max_tokens: 24, temperature: 0.7, seed: 3 }
    drafter: { path: builtin:gopher-15m-dspark, mode: "fixed:3" }
    audit: 10%%
    limits: { max_row_errors: 1000 }
    output: { dir: out }
"""
NAMES = "Fields Cut Index Split Join Repeat Map Title Trim Count EqualFold HasPrefix".split()


def job(work, name, lines):
    (work / f"{name}.jsonl").write_text("".join(lines))
    (work / f"{name}.yaml").write_text(JOB % (name, f"{name}.jsonl"))


def question(key, text):
    return json.dumps({"id": key, "messages": [{"role": "user", "content": text}]}) + "\n"


def questions(n):
    return [question(f"q{i}", f"What does strings.{NAMES[i % 12]} do?") for i in range(n)]


def make(tfbatch, work):
    """The folders of jobs, and what must be read on their pages."""
    def run(*args):
        return subprocess.run([tfbatch, *args], cwd=work, check=True, capture_output=True, text=True).stdout

    job(work, "whole", questions(40) + [question(HOSTILE + str(i), HOSTILE) for i in range(3)] + [HOSTILE.replace("\n", " ") + "\n"])
    job(work, "killed", questions(4000))
    job(work, "bad", ["<script>alert(3)</script>\n", "{}\n"])
    job(work, "empty", [])
    for name in ["whole", "bad", "empty"]:
        run("run", f"{name}.yaml", "--quiet")
    p = subprocess.Popen([tfbatch, "run", "killed.yaml", "--quiet"], cwd=work)
    rows = 0
    while rows < 20 and p.poll() is None:
        time.sleep(0.1)
        if (work / "out/killed/journal.log").exists():
            rows = len(run("rows", "out/killed", "--order", "ended").splitlines())
    run("report", "out/killed", "--out", "running.html")
    assert p.poll() is None, "the job ended before it could be looked at while it runs"
    p.kill()
    p.wait()
    run("rows", "out/killed")
    for name in ["whole", "killed", "bad", "empty"]:
        run("report", f"out/{name}")
    wants = {"running.html": ["not complete", "not complete yet", "The journal was last written to "], "out/killed/report.html": ["not complete", "Lanes in use"]}
    for name in ["whole", "bad", "empty"]:
        m = json.loads((work / f"out/{name}/manifest.json").read_text())
        c = m["counts"]
        numbers = [c[k] for k in ["rows", "error_rows", "replies", "prompt_tokens", "completion_tokens"]]
        numbers += list(c["replies_by_finish"].values()) + list(c["errors_by_code"].values())
        wants[f"out/{name}/report.html"] = [f"{n:,}" for n in numbers] + list(c["replies_by_finish"]) + list(c["errors_by_code"]) + [
            m["job_root"], m["job_sha256"], m["arithmetic"], m["volatile"]["device"], "Verification: equal"] + [f["sha256"] for f in m["files"] + m["model"]["shards"]]
    whole = wants["out/whole/report.html"]
    whole += ["Throughput", "Acceptance by depth", "Drafting gain", "were made once more", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "⟨U+202E⟩⟨U+001B⟩[31m"]
    return wants


LOOK = """() => {
  const all = [...document.querySelectorAll('*')];
  const size = e => { const r = e.getBoundingClientRect(); return [r.width, r.height]; };
  return {
    text: document.body.innerText,
    over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    out: all.filter(e => !e.closest('.scroll, .said') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80)),
    plots: [...document.querySelectorAll('figure .plot svg')].map(e => [e.closest('figure').id, ...size(e), e.querySelectorAll('.line, .bar').length, e.getAttribute('role'), e.getAttribute('aria-label'), e.closest('figure').querySelectorAll('details td').length]),
    drawn: [...document.querySelectorAll('.plot .line, .plot .bar')].filter(e => e.getBBox().width > 0).length,
    alien: all.filter(e => /^(script|img|iframe|object|embed|form|a|base|video|audio)$/i.test(e.tagName)).map(e => e.outerHTML.slice(0, 80)),
    handlers: all.flatMap(e => [...e.attributes].filter(a => /^on/i.test(a.name) || a.name === 'style').map(a => a.name)),
    elements: [...new Set(all.map(e => e.tagName.toLowerCase()))].sort(),
    unnamed: [...document.querySelectorAll('section, [role=img]')].filter(e => !e.getAttribute('aria-label') && !document.getElementById(e.getAttribute('aria-labelledby'))).length,
    colours: [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor],
    nan: [...document.querySelectorAll('svg *')].some(e => [...e.attributes].some(a => /NaN|Inf/.test(a.value))),
  };
}"""

ELEMENTS = set("html head meta title link style body header main footer section figure figcaption div p h1 h2 h3 bdi span ul li svg path rect "
               "details summary table thead tbody tr th td article dl dt dd".split())


def luminance(colour):
    rgb = [int(v) / 255 for v in colour[colour.index("(") + 1:-1].split(",")[:3]]
    return sum(w * (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4) for w, v in zip([0.2126, 0.7152, 0.0722], rgb))


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


def check(browser, path, wants, width, scheme):
    problems, requests = [], []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    page.on("console", lambda m: problems.append(f"console: {m.text}"))
    page.on("pageerror", lambda e: problems.append(f"error: {e}"))
    page.on("dialog", lambda d: problems.append(f"dialog: {d.message}"))
    page.on("request", lambda r: requests.append(r.url))
    page.goto(path.as_uri())
    if width > 1000:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    seen = page.evaluate(LOOK)
    context.close()
    if requests != [path.as_uri()]:
        problems.append(f"requests: {requests}")
    for want in wants:
        if want not in seen["text"]:
            problems.append(f"text has no {want!r}")
    if seen["over"] > 0 or seen["out"]:
        problems.append(f"{seen['over']} px too wide: {seen['out'][:3]}")
    for name, w, h, drawn, role, label, cells in seen["plots"]:
        if w < 150 or h < 80 or drawn == 0 or role != "img" or not label or cells == 0:
            problems.append(f"plot {name} is {w} x {h} with {drawn} shapes, role {role}, label {label!r}, {cells} cells behind it")
    if seen["drawn"] != sum(drawn for _, _, _, drawn, *_ in seen["plots"]):
        problems.append(f"{seen['drawn']} shapes can be seen, of {seen['plots']}")
    if seen["alien"] or seen["handlers"] or set(seen["elements"]) - ELEMENTS:
        problems.append(f"elements that are not the page's: {seen['alien']} {seen['handlers']} {set(seen['elements']) - ELEMENTS}")
    if seen["unnamed"] or seen["nan"]:
        problems.append(f"{seen['unnamed']} parts without a name, NaN: {seen['nan']}")
    if contrast(*seen["colours"]) < 7 or (luminance(seen["colours"][1]) < 0.2) != (scheme == "dark"):
        problems.append(f"colours are {seen['colours']} in {scheme}")
    return [f"{path.name} of {path.parent.name}, {width} px, {scheme}: {p}" for p in problems], len(seen["plots"])


def main():
    tfbatch, work = sys.argv[1], pathlib.Path(sys.argv[2])
    wants = make(tfbatch, work)
    browser = next((b for b in BROWSERS if os.path.exists(b)), None)
    assert browser, f"none of {BROWSERS} is there"
    problems, plots = [], {}
    with sync_playwright() as p:
        b = p.chromium.launch(executable_path=browser, args=["--no-sandbox"])  # it opens our own pages only
        for name, want in wants.items():
            for width, scheme in [(1400, "light"), (1400, "dark"), (400, "light")]:
                found, plots[name] = check(b, work / name, want, width, scheme)
                problems += found
        version = b.version
        b.close()
    assert plots["out/whole/report.html"] == 7, plots
    assert plots["out/empty/report.html"] == 0 or plots["out/empty/report.html"] == 3, plots
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(wants)} pages at two widths, light and dark, in Chromium {version}: {plots} plots, no request, no console line, nothing too wide")


main()
