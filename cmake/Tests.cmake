# whole-tree tests
