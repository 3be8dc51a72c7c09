"""The rows of the table, in the order in which they are written."""
from trial import Row

ROWS = []


def row(name, **fields):
    """Makes a function of a Trial a row."""
    def register(run):
        ROWS.append(Row(name=name, run=run, **fields))
        return run
    return register
