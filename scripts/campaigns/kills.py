"""SIGKILL at random moments, several times in a row, and then what a user would do until the command ends.

The results must be those of an undisturbed run, byte for byte, and at any time a file that was there before is the old
one or the new one.
"""

import random
import signal
import time

from .cases import prepared
from .compare import same


def run(campaign):
    with prepared(campaign) as cases:
        for seed in campaign.seeds():
            campaign.attempt(seed, lambda folder, seed=seed: kill(campaign, cases, seed, folder))


def kill(campaign, cases, seed, folder):
    rng = random.Random(seed)
    case = cases[rng.choice(cases.names())]
    case.copy_to(folder)
    for _ in range(rng.randint(1, 8)):
        process = case.next(folder)
        time.sleep(rng.uniform(0, 1) ** 2 * 1.1 * case.seconds)
        # The program has no children now. If it gets some, both must be safe.
        group = rng.random() < 0.5
        was_running = process.running()
        process.send(signal.SIGKILL, group)
        ended = process.wait()
        campaign.counts["commands"] += 1
        case.check(folder)
        if was_running and ended.code == -signal.SIGKILL:
            campaign.counts["kills"] += 1
            campaign.counts["kills of groups"] += group
        else:
            ended.expect(case.case.code())
    case.next(folder).wait().expect(case.case.code())
    campaign.counts["commands"] += 1
    # Nor is a temporary file left: the last command has removed those of the killed ones.
    same(folder, case.expected)
