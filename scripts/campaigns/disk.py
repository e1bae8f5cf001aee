"""A disk that fails at the n-th operation, for every n: once, or from then on as a full disk.

The program must say what failed, exit with an error, and neither panic nor hang. On a disk that works again, the next
command of a user gives the result of an undisturbed run. A program may succeed although an operation failed only if
its results are complete.
"""

from .cases import prepared
from .compare import same
from .shim import Shim
from .tries import Failed

MODES = ["full", "once"]
# A word of the system, so that a user knows what to do.
REASONS = ["No space left", "no storage space", "Input/output error"]


def run(campaign):
    shim = Shim(campaign.work)
    with prepared(campaign) as cases:
        given = campaign.arguments.seed
        if given is not None:
            name, mode, at = given.split(":")
            campaign.attempt(given, lambda folder: fail(campaign, cases[name], shim, mode, int(at), folder))
            return
        # All cases in turn, so that a short campaign sees the start of each.
        open_ends = {(name, mode): True for mode in MODES for name in cases.names()}
        at = 0
        while any(open_ends.values()) and campaign.goes_on():
            at += 1
            for name, mode in [key for key, is_open in open_ends.items() if is_open]:
                if not campaign.goes_on():
                    break

                def action(folder, name=name, mode=mode):
                    open_ends[name, mode] = fail(campaign, cases[name], shim, mode, at, folder)

                campaign.attempt(f"{name}:{mode}:{at}", action)
        complete = sum(not is_open for is_open in open_ends.values())
        print(
            f"disk: {complete} of {len(open_ends)} combinations of case and mode were tried at every operation, "
            f"{at} operations at most"
        )


def fail(campaign, case, shim, mode, at, folder) -> bool:
    """Whether the operation was reached."""
    case.copy_to(folder)
    mark = campaign.work / "mark"
    mark.unlink(missing_ok=True)
    ended = case.next(folder, shim.disk(folder, at, mode == "once", mark)).wait()
    if not mark.exists():
        ended.expect(case.case.code())
        same(folder, case.expected)
        return False
    operation = mark.read_text().split()[0]
    campaign.counts["failed operations"] += 1
    campaign.counts[operation] += 1
    case.check(folder)
    if ended.code == 0:
        campaign.counts["survived"] += 1
        same(folder, case.expected)
        return True
    ended.expect(1)
    if not any(reason in ended.error for reason in REASONS):
        raise Failed(f"{ended.command}: {operation} failed, but the message does not say why: {ended.error.strip()}")
    case.next(folder).wait().expect(case.case.code())
    same(folder, case.expected)
    return True
