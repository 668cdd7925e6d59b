"""The calculus: each op's kernel with the formulas of its gradient (floor 3)."""
