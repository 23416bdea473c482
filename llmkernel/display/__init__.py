"""Reports on the screen: HTML, Markdown and text. Only this package knows ipywidgets."""
