"""One self-contained page: the stored results as JSON, and a hand-written script that draws them."""

from hipmdp.report.page.write import write_page

__all__ = ["write_page"]
