"""The style sheet of a report: one short prefix, light and dark, the host's colours where it names them."""

from __future__ import annotations

import hashlib
from functools import cache

_LIGHT = (
    "--bg:#fff;--fg:#1f2328;--mut:#59636e;--line:#d9dee3;--soft:#f5f7f9;--good:#1a7f37;--bad:#b42318;--uns:#8a5a00;"
    "--goodbg:#eef8f0;--badbg:#fdf1ef;--unsbg:#fdf6e3;--bar:#0b62b8;--base:#a3afba;--k:#8250df;--t:#0550ae;"
    "--c:#59636e;--s:#0a6640;--n:#953800;--p:#7d4e00;--f:#6639ba;"
)
_DARK = (
    "--bg:#16191d;--fg:#e4e8ec;--mut:#9da7b1;--line:#343b43;--soft:#1e2329;--good:#57c878;--bad:#ff8b80;--uns:#e6b84d;"
    "--goodbg:#16281c;--badbg:#331c1a;--unsbg:#2f2714;--bar:#58a6ff;--base:#5d6874;--k:#d2a8ff;--t:#79c0ff;"
    "--c:#9da7b1;--s:#7ee2a8;--n:#ffb074;--p:#e3b341;--f:#c5b3ff;"
)
# Hosts say themselves whether they are light or dark; that wins over what the operating system prefers.
_HOST_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]', '[data-theme="light"]')
_HOST_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]', '[data-theme="dark"]')
_JUPYTER = (
    "--bg:var(--jp-layout-color0,{bg});--fg:var(--jp-content-font-color1,{fg});"
    "--line:var(--jp-border-color2,{line});"
)
_VSCODE = (
    "--bg:var(--vscode-notebook-editorBackground,var(--vscode-editor-background,{bg}));"
    "--fg:var(--vscode-editor-foreground,{fg});"
)

_RULES = """
@{background:var(--bg);color:var(--fg);
font:14px/1.5 var(--jp-ui-font-family,var(--vscode-font-family,system-ui,
-apple-system,"Segoe UI",Roboto,sans-serif));border:1px solid var(--line);border-radius:8px;
container-type:inline-size;
max-width:980px;margin:4px 0;overflow:hidden;text-align:left}
@ *{box-sizing:border-box}
@ .in{padding:14px 18px 12px}
@ h3,@ h4,@ p,@ ul,@ dl,@ dd,@ pre,@ table{margin:0;padding:0}
@ h3,@ h4{font-family:inherit}
@ h3{font-size:17px;line-height:1.35;font-weight:600;color:var(--fg)}
@ h4{font-size:13px;font-weight:600;margin:20px 0 6px;color:var(--fg)}
@ .head{padding:13px 18px 12px;border-bottom:1px solid var(--line);box-shadow:inset 4px 0 0 var(--tone);
background:var(--tonebg)}
@ .good{--tone:var(--good);--tonebg:var(--goodbg)}
@ .bad{--tone:var(--bad);--tonebg:var(--badbg)}
@ .unsure{--tone:var(--uns);--tonebg:var(--unsbg)}
@ .quiet{--tone:var(--mut);--tonebg:var(--soft)}
@ .v{color:var(--tone);white-space:nowrap}
@ .lead{margin-top:3px;font-size:14px;overflow-wrap:anywhere}
@ .mut{color:var(--mut)}
@ .meta{color:var(--mut);font-size:12.5px;margin-top:5px;overflow-wrap:anywhere}
@ code,@ pre{font-family:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,
SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace));font-size:12.5px}
@ code{background:none;color:inherit;padding:0;overflow-wrap:anywhere;white-space:pre-wrap}
@ .notes{list-style:none;margin:0 0 12px;font-size:13px}
@ .notes li{margin:0 0 6px;padding:6px 10px;border-left:3px solid var(--uns);background:var(--unsbg);
border-radius:0 4px 4px 0;
overflow-wrap:anywhere}
@ dl.figs{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:8px 22px}
@ dl.figs div{min-width:0}
@ dt,@ dd{float:none;width:auto;clear:none;margin:0!important;padding:0;line-height:1.5}
@ dt{color:var(--mut);font-size:12px;font-weight:400}
@ dd{font-size:13.5px;overflow-wrap:anywhere}
@ .wrap{overflow-x:auto}
@ table{border-collapse:collapse;width:100%;font-size:13px;border:0;table-layout:auto;background:none}
@ th,@ td{line-height:1.5;border:0;border-bottom:1px solid var(--line);padding:5px 12px 5px 0;text-align:left;
vertical-align:top;
background:none;color:var(--fg);font-weight:400;white-space:normal;max-width:none;overflow-wrap:break-word}
@ tr{background:none!important}
@ tbody tr:last-child>*{border-bottom:0}
@ thead th{color:var(--mut);font-size:12px;padding-top:0}
@ td.num,@ th.num{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
@ th:last-child,@ td:last-child{padding-right:0}
@ tbody th{font-weight:500;min-width:95px}
@ .st{white-space:nowrap;color:var(--tone);width:1%}
@ .st b{display:inline-block;width:1.25em;font-weight:600}
@ tr:has(+.more)>*{border-bottom:0}
@ .more td{padding-top:0}
@ dl.ev{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:6px 0 4px;padding:7px 10px;
background:var(--soft);border-radius:4px}
@ dl.ev dd{font-size:12.5px}
@ dl.kv{display:grid;grid-template-columns:minmax(90px,max-content) 1fr;gap:3px 16px}
@ dl.kv dd{font-size:13px}
@ ul.plain{padding-left:18px;font-size:13px;list-style:disc}
@ ul.plain li{margin:2px 0;overflow-wrap:anywhere}
@ .bar{position:relative;height:10px;margin:4px 0 3px;background:var(--soft);border-radius:2px}
@ .fill{position:absolute;left:0;top:0;bottom:0;background:var(--base);border-radius:2px;min-width:2px}
@ .kernel .fill{background:var(--bar)}
@ .limit .fill{background:none;border:1px dashed var(--mut)}
@ .wsk{box-shadow:0 0 0 1px var(--bg);position:absolute;top:4px;height:2px;background:var(--fg);min-width:1px}
@ .wsk::before,@ .wsk::after{content:"";position:absolute;top:-3px;height:8px;width:1px;background:var(--fg)}
@ .wsk::before{left:0}
@ .wsk::after{right:0}
@ .kernel th{font-weight:600}
@ .tm th:first-child{width:52%}
@ .claim{font-size:14px;font-weight:600;margin-bottom:8px;overflow-wrap:anywhere}
@ details{margin-top:10px;border-top:1px solid var(--line);padding-top:9px;font-size:13px}
@ details details{border:0;border-left:2px solid var(--line);padding:0 0 0 12px;margin:8px 0 8px 3px}
@ summary{cursor:pointer;font-weight:600;font-size:13px;overflow-wrap:anywhere}
@ summary:focus-visible,@ pre:focus-visible,@ .wrap:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
@ summary .mut{font-weight:400}
@ details>*:not(summary){margin-top:8px}
@ pre{overflow:auto;max-height:480px;background:var(--soft);border:1px solid var(--line);border-radius:4px;
padding:8px 10px;
line-height:1.45;color:var(--fg);white-space:pre;tab-size:4}
@ pre code{white-space:inherit;overflow-wrap:normal}
@ pre.log{white-space:pre-wrap;overflow-wrap:anywhere;max-height:320px}
@ pre.num code{counter-reset:l}
@ pre.num .l::before{counter-increment:l;content:counter(l);display:inline-block;width:2.6em;
margin-right:1.1em;
text-align:right;color:var(--mut);opacity:.75;user-select:none;-webkit-user-select:none}
@ .k{color:var(--k)}@ .t{color:var(--t)}@ .h{color:var(--p);font-weight:600}
@ .c{color:var(--c);font-style:italic}@ .s{color:var(--s)}
@ .n{color:var(--n)}
@ .p{color:var(--p)}@ .f{color:var(--f)}
@ .add{color:var(--good)}@ .del{color:var(--bad)}@ .hunk{color:var(--mut)}
@ .steps{list-style:none;font-size:13px;padding:0;margin:0}
@ .steps .good,@ .steps .quiet{color:var(--tone);display:inline-block;width:1.2em}
@ .chips{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px}
@ .tail{margin-top:12px;max-height:none}
@ .done{list-style:none;font-size:13px;margin-bottom:8px}
@ svg{display:block;max-width:100%;height:auto}
@ .emap{margin:6px 0 8px;color:var(--bad)}@ .emap svg{margin-bottom:6px;border:1px solid var(--line)}
@ .emap strong{color:var(--fg);font-weight:600}
@ .roof{margin-top:12px;color:var(--fg)}@ .roof .mine{fill:var(--bar)}@ .roof text{font-family:inherit}
@ .flat{padding-top:4px}@ .flat details{border:0}
@container (max-width:520px){@ .in,@ .head{padding-left:12px;padding-right:12px}@ .opt{display:none}
@ th,@ td{padding-right:9px}@ .tm th:first-child{width:auto}@ td.ratio,@ .st.quiet{white-space:normal}
@ dl.kv{grid-template-columns:1fr;gap:0}
@ dl.kv dd{padding-bottom:5px}}
@media print{@{border-color:#bbb;max-width:none;overflow:visible;break-inside:auto}@ pre{max-height:none;
white-space:pre-wrap}
@ details::details-content{content-visibility:visible;block-size:auto}@ tr,@ li{break-inside:avoid}
@,@ .head{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""


def _palette(values: str) -> dict[str, str]:
    return dict(part[2:].split(":", 1) for part in values.split(";") if part)


@cache
def _template() -> str:
    light, dark = _palette(_LIGHT), _palette(_DARK)
    hosts = [
        f"@{{color-scheme:light;{_LIGHT}}}",
        f"@media (prefers-color-scheme:dark){{@{{color-scheme:dark;{_DARK}}}}}",
        ",".join(f"{h} @" for h in _HOST_LIGHT) + f"{{color-scheme:light;{_LIGHT}}}",
        ",".join(f"{h} @" for h in _HOST_DARK) + f"{{color-scheme:dark;{_DARK}}}",
        f"{_HOST_LIGHT[0]} @{{{_JUPYTER.format(**light)}}}",
        f"{_HOST_DARK[0]} @{{{_JUPYTER.format(**dark)}}}",
        f"{_HOST_LIGHT[1]} @{{{_VSCODE.format(**light)}}}",
        f"{_HOST_DARK[1]} @{{{_VSCODE.format(**dark)}}}",
        # Paper is white whatever the screen is.
        f"@media print{{@,{_HOST_DARK[0]} @,{_HOST_DARK[1]} @{{{_LIGHT}}}}}",
    ]
    return "\n".join([*hosts, _RULES.strip()])


@cache
def root_class() -> str:
    """Return the class that every rule starts with.

    Made from the rules themselves: reports of two versions of this package in one notebook have two names.
    """
    return "lk" + hashlib.sha256(_template().encode()).hexdigest()[:6]


@cache
def style_sheet() -> str:
    """Return the CSS text; it names nothing outside the notebook."""
    return prefixed(_template())


def prefixed(rules: str) -> str:
    """Return `rules` with the root's class where they have ``@``.

    The class is tripled, so that rules win over the host's own for tables, lists and code.
    """
    return (
        rules.replace("@container", "\0c")
        .replace("@media", "\0m")
        .replace("@", 3 * f".{root_class()}")
        .replace("\0c", "@container")
        .replace("\0m", "@media")
    )
