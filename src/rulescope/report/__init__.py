"""A store as a report: static HTML pages that open from disk, the same bytes every time.

- ``report_inputs``, ``plan_search``, ``plan_selection``: records, results and the plans with a page
- ``site_model``, ``site_builder``: the data of a report, and from a store to a folder of pages
- ``front_page``, ``assay_page``, ``mechanism_page``, ``provenance_page``, ``explorer_data``: pages
- ``page_templates``, ``estimate_tables``, ``learning_curves``, ``css_styles``, ``svg``: their parts
- ``publication``, ``publication_readme``: figures and tables for print
"""
