"""What the live view's widgets need besides a report's style."""

from __future__ import annotations

from functools import cache

from llmkernel.display.style import prefixed, style_sheet

_RULES = """
@.live{position:relative;width:auto;padding:0;margin:4px 0;overflow:hidden}
@ .jupyter-widgets{margin:0;width:auto;overflow:visible}
@ .widget-html-content{min-width:0;line-height:1.5;font-size:14px;white-space:normal}
@ .widget-vbox{width:100%;padding:0}
@ .head{padding-right:130px}
@ .unseen{display:none}
@ .spoken{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
@ .tools{position:absolute;right:14px;top:11px;z-index:1;align-items:center;max-width:60%}
@ .tools .widget-html-content{font-size:12.5px;text-align:right}
@ .jupyter-button{height:30px;width:auto;min-width:92px;padding:0 12px;border:1px solid var(--line);
border-radius:6px;background:var(--bg);color:var(--fg);font-size:13px;line-height:28px;box-shadow:none}
@ .jupyter-button:hover:enabled{border-color:var(--bad);color:var(--bad)}
@ .jupyter-button:focus-visible,@ input:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
@ .jupyter-button:disabled{color:var(--mut);opacity:1}
@ .part{padding:0 18px 10px}
@ .part>details{margin-top:0}
@ .choose{border-top:1px solid var(--line);padding-top:10px}
@ .choose .widget-hbox{align-items:center;padding:0 18px 6px;flex-wrap:wrap;gap:6px 18px}
@ .choose .widget-hbox .widget-html-content,@ .choose .widget-checkbox,@ .choose .widget-checkbox *{font-size:13px}
@ .choose .widget-checkbox{height:auto;width:auto;min-width:0;margin:0}
@ .choose .widget-checkbox label{display:flex;align-items:center;gap:6px;width:auto;cursor:pointer;white-space:normal}
@ .choose input{margin:0;accent-color:var(--bar)}
@ .cmp{table-layout:fixed;min-width:620px}
@ .cmp th{font-weight:600;color:var(--fg);padding-bottom:4px}
@ .cmp td{border:0;padding:0 6px 0 0;vertical-align:top}
@ .cmp td[colspan]{padding:2px 10px;font-size:12.5px}
@ .cmp col.no{width:3.4em}
@ .cmp td.num{padding-right:10px;font-size:12px;user-select:none;-webkit-user-select:none}
@ .cmp td.del{background:var(--badbg);color:var(--fg)}@ .cmp td.add{background:var(--goodbg);color:var(--fg)}
@ .choose .wrap{max-height:360px;overflow:auto;border:1px solid var(--line);border-radius:4px}
@ .cmp thead th{position:sticky;top:0;background:var(--soft);padding:5px 10px}
@container (max-width:520px){@ .part,@ .choose .widget-hbox{padding-left:12px;padding-right:12px}
@ .tools{position:static;max-width:none;padding:10px 12px}@ .tools .widget-html-content{text-align:left}
@ .head{padding-right:12px}}
"""


@cache
def live_style_sheet() -> str:
    """Return a report's CSS text and the widgets' own."""
    return style_sheet() + prefixed(_RULES)
