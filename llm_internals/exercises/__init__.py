"""The exercises of the chapters, a file each: for every exercise a check of the reader's answer, and a solution.

A ``check_*`` takes an answer and returns one sentence: that it is right, or what is wrong with it, without giving the
solution away. The page shows the solution's source, and the tests run it through its own check.
"""
