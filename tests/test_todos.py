"""TODO blocks are found, and what the learner has touched is told apart."""

from checker.todos import blocks, open_todos, outside

SOURCE = """\
def f(x):
    # TODO(1): load the block
    y = None
    # END TODO(1)
    # TODO(2): store it
    # END TODO(2)
    return y
"""


def test_blocks_have_number_line_text_and_body() -> None:
    first, second = blocks(SOURCE)
    assert (first.number, first.line, first.text, first.body) == (1, 2, "load the block", ("    y = None",))
    assert (second.number, second.line, second.body) == (2, 5, ())


def test_outside_is_what_skeleton_and_solution_share() -> None:
    assert outside(SOURCE) == outside(SOURCE.replace("y = None", "y = x + 1\n    y = y * 2"))
    assert outside(SOURCE) != outside(SOURCE.replace("return y", "return x"))


def test_an_edited_block_is_no_longer_untouched() -> None:
    mine = SOURCE.replace("    y = None\n", "    y = x\n").replace("# TODO(2): store it", "# TODO(2): store it\n\n")
    assert [(todo.number, todo.untouched) for todo in open_todos(mine, SOURCE)] == [(1, False), (2, True)]


def test_removed_markers_are_no_todos() -> None:
    assert open_todos("def f(x):\n    return x\n", SOURCE) == ()


def test_a_block_that_lost_its_end_is_passed_over() -> None:
    assert [block.number for block in blocks(SOURCE.replace("    # END TODO(1)\n", ""))] == [2]
