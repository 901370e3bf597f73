"""``POST /xmla``: the released cubes for spreadsheets and OLAP clients, by XML for Analysis 1.1."""
