"""Plans of a run's groups, read → the form of each group in one binlog.

What plans have for binlogs stands behind the names of these, and these names are alike in nearly all plans: so the
number of a binlog's list is asked for once for all plans of the same names.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.memory import Bytes, is_equal

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]


def name_blocks(text: Bytes, index: Numbers, blocks: Numbers) -> int:
    """Number the different names of binlogs in plans.

    Args:
        text: The bytes of the plans.
        index: A column for each plan, as `read_plans` gives it.
        blocks: Two rows with room for each plan: the first gets the number of its names, -1 for a plan without a
            form, the second the plan that has the names of each number.

    Returns:
        How many different ones there are.
    """
    count = 0
    for plan in range(index.shape[1]):
        blocks[0, plan] = -1
        if index[lay.PLAN_FORM, plan] < 0:
            continue
        names = int(index[lay.PLAN_NAMES, plan])
        length = int(index[lay.PLAN_NAMES_END, plan]) - names
        # That of the last plan comes again more often than those before.
        for number in range(count - 1, -1, -1):
            one = blocks[1, number]
            start = int(index[lay.PLAN_NAMES, one])
            is_as_long = int(index[lay.PLAN_NAMES_END, one]) - start == length
            if is_as_long and is_equal(text, start, text, names, length):
                blocks[0, plan] = number
                break
        if blocks[0, plan] < 0:
            blocks[0, plan] = count
            blocks[1, count] = plan
            count += 1
    return count


def choose_forms(
    numbers: Numbers,
    plans: tuple[Numbers, Numbers, Numbers, Small],
    has_texts: int,
    out: Small,
    stops: Numbers,
) -> int:
    """Choose the form of groups in one binlog, all of whose texts may stand there.

    Args:
        numbers: The groups that plans may concern, in order.
        plans: The columns of the plans, in any order; the numbers of their names; for each of these names the number
            of the binlog's list and 1 if it was made for the binlog as it is; and all forms.
        has_texts: 1 if texts may stand in the binlog.
        out: Gets the forms, a column for each group of the run, all of them 0.
        stops: Gets the groups that are for the reference, last first.

    Returns:
        How many these are.
    """
    index, blocks, lists, forms = plans
    for number in numbers:
        out[lay.FORM_FIRST, number] = lay.BY_ROUTE
    for plan in range(index.shape[1]):
        block = blocks[0, plan]
        number = index[lay.PLAN_GROUP, plan]
        # Others are not asked for.
        if block < 0 or out[lay.FORM_FIRST, number] != lay.BY_ROUTE:
            continue
        if lists[0, block] == lay.ABSENT:
            if index[lay.PLAN_IS_FULL, plan]:
                out[lay.FORM_FIRST, number] = lay.OWN_BYTES
                out[lay.FORM_COUNT, number] = lay.PLANNED
            continue
        form = index[lay.PLAN_FORM, plan] + lists[0, block]
        is_text = forms[lay.FORM_FIRST, form] >= 0
        may_be_text = has_texts and lists[1, block] and forms[lay.FORM_COUNT, form]
        if not is_text or may_be_text:
            out[lay.FORM_FIRST, number] = forms[lay.FORM_FIRST, form]
            out[lay.FORM_COUNT, number] = forms[lay.FORM_COUNT, form]
    count = 0
    for place in range(len(numbers) - 1, -1, -1):
        if out[lay.FORM_FIRST, numbers[place]] == lay.BY_ROUTE:
            out[lay.FORM_FIRST, numbers[place]] = 0
            stops[count] = numbers[place]
            count += 1
    return count


EXPORTS: Final = (
    (name_blocks, "int64(uint8[::1], int64[:, ::1], int64[:, ::1])"),
    (
        choose_forms,
        (
            "int64(int64[::1], Tuple((int64[:, ::1], int64[:, ::1], int64[:, ::1], int32[:, ::1])), "
            "int64, int32[:, ::1], int64[::1])"
        ),
    ),
)
