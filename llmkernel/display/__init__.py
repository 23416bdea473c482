"""Reports on the screen: HTML, Markdown and text. Only this package knows ipywidgets.

`report_bundle` (bundle.py) makes the static output of a cell, `LiveOutput` (live.py) what stands there until
it is ready: widgets (live_widget.py) where the front end has them (front_end.py), else an output that is updated.
`format_report` and `format_table` (text.py) make the same for a shell.
"""
