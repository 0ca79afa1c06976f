"""The report as a page to look at: what of a comparison it shows (docs/report_page_design.md)."""
