"""TPC-H as a project of Tidemark: tables, queries, and refresh sets by another writer."""
