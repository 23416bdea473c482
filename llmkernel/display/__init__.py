"""Reports on the screen: HTML, Markdown and text. Only this package knows ipywidgets.

`report_bundle` (bundle.py) makes the static output of a cell, `LiveOutput` (live.py) what stands there until
it is ready, `format_report` and `format_table` (text.py) the same for a shell.
"""
