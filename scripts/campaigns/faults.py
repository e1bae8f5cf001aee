"""Signals, clock jumps, several processes on one folder, data that are replaced during a run, and links, pipes and devices
in folders of results."""

import os
import random
import signal
import time

from .cases import prepared, write_classes
from .compare import files, raw, same
from .shim import Shim
from .tries import Failed

DAY = 86_400
# A stopped program saves what it has. On a busy machine this takes longer than the second it takes otherwise.
SOON = 20.0


def run(campaign):
    shim = Shim(campaign.work)
    kinds = [stopped_by_signal, paused, clock_jumps, several_processes, data_replaced, linked, special_file]
    with prepared(campaign) as cases:
        for seed in campaign.seeds():
            rng = random.Random(seed)
            kind = rng.choice(kinds)
            name = rng.choice(cases.names())

            def action(folder, kind=kind, name=name, rng=rng):
                kind(campaign, cases, name, shim, rng, folder)

            campaign.attempt(seed, action)


def moment(case, rng) -> float:
    return rng.uniform(0, 1) * 1.1 * case.seconds


def stopped_by_signal(campaign, cases, name, shim, rng, folder):
    """SIGINT, SIGTERM or SIGHUP, perhaps twice: the program ends soon, and the next command completes the work."""
    case = cases[name]
    case.copy_to(folder)
    for _ in range(rng.randint(1, 4)):
        process = case.next(folder)
        time.sleep(moment(case, rng))
        number = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        was_running = process.running()
        process.send(number, group=rng.random() < 0.5)
        twice = rng.random() < 0.3
        if twice:
            time.sleep(rng.uniform(0, 0.05))
            process.send(number)
        # A command without a handler ends by the signal itself; one that had almost ended may still succeed.
        ended = process.wait(SOON).expect(0, 1, -number)
        campaign.counts["signals"] += was_running
        case.check(folder)
        # The second signal ends the program at once.
        if ended.code == 1 and "error" not in ended.error and not twice:
            raise Failed(f"{ended.command} ended with 1 after {signal.Signals(number).name} without a message")
    case.next(folder).wait().expect(case.case.code())
    same(folder, case.expected)


def paused(campaign, cases, name, shim, rng, folder):
    """SIGSTOP and SIGCONT several times: nothing happens."""
    case = cases[name]
    case.copy_to(folder)
    process = case.next(folder)
    for _ in range(rng.randint(1, 5)):
        time.sleep(moment(case, rng) / 4)
        campaign.counts["pauses"] += process.running()
        process.send(signal.SIGSTOP)
        time.sleep(rng.uniform(0, 0.05))
        process.send(signal.SIGCONT)
    process.wait().expect(case.case.code())
    same(folder, case.expected)


def clock_jumps(campaign, cases, name, shim, rng, folder):
    """The clocks jump by hours or days, forward or back: the results are the same."""
    case = cases[name]
    case.copy_to(folder)
    seconds = rng.choice([-1, 1]) * rng.choice([1, 60, 3600, DAY, 400 * DAY, 40_000 * DAY])
    jump = shim.clock(seconds, only_time_of_day=rng.random() < 0.5, at=moment(case, rng))
    case.next(folder, jump).wait().expect(case.case.code())
    campaign.counts["clock jumps"] += 1
    same(folder, case.expected)


def several_processes(campaign, cases, name, shim, rng, folder):
    """Two or three processes with the same command: one wins and the others say so, or all end well."""
    case = cases[name]
    case.copy_to(folder)
    processes = []
    for _ in range(rng.randint(2, 3)):
        processes.append(case.next(folder))
        time.sleep(rng.choice([0, moment(case, rng) / 2]))
    ended = [process.wait().expect(0, 1) for process in processes]
    campaign.counts["several processes"] += 1
    case.check(folder)
    for one in ended:
        if one.code == 1 and "error" not in one.error:
            raise Failed(f"{one.command} ended with 1 without a message")
    if not any(one.code == case.case.code() for one in ended):
        raise Failed("no process succeeded: " + "; ".join(one.error.strip() for one in ended))
    case.next(folder).wait().expect(case.case.code())
    same(folder, case.expected)


def data_replaced(campaign, cases, name, shim, rng, folder):
    """A data file is replaced during a run: the run uses the old data throughout, or refuses. After the old data are
    restored, it can be resumed."""
    if "from-file" not in cases.names():
        return
    case = cases["from-file"]
    case.copy_to(folder)
    data, kept = folder / "two.csv", folder.with_name(folder.name + ".csv")
    kept.write_bytes(data.read_bytes())
    process = case.next(folder)
    time.sleep(moment(case, rng))
    if rng.random() < 0.5:
        write_classes(data, seed=2)
    else:
        other = folder.with_name(folder.name + ".new")
        write_classes(other, seed=2)
        other.replace(data)
    ended = process.wait().expect(0, 1)
    campaign.counts["data replaced"] += 1
    data.write_bytes(kept.read_bytes())
    kept.unlink()
    if ended.code == 1 and "two.csv" not in ended.error:
        raise Failed(f"{ended.command} does not name the data that were replaced: {ended.error.strip()}")
    if ended.code == 0 and files(folder)["out/plan.json"] != case.expected["out/plan.json"]:
        # The run may have been planned with the new data. Then it has used them throughout.
        same_as_with_new_data(case, folder)
        return
    case.next(folder).wait().expect(0)
    same(folder, case.expected)


def same_as_with_new_data(case, folder):
    """Fails unless the folder has the result of an undisturbed run with the new data."""
    other = folder.with_name(folder.name + "-new")
    case.copy_to(other)
    write_classes(other / "two.csv", seed=2)
    case.next(other).wait().expect(0)
    write_classes(folder / "two.csv", seed=2)
    same(folder, files(other))


def linked(campaign, cases, name, shim, rng, folder):
    """Something in a folder of results is a link: nothing is written where it leads to, and without it the next command
    completes the work."""
    case, inside = with_results(cases, name, folder)
    if not inside:
        return
    path = rng.choice(inside)
    # The case may look into the file.
    command = case.case.command(folder)
    outside = folder.with_name(folder.name + "-outside")
    outside.mkdir()
    target = outside / path.name
    path.rename(target)
    if target.is_dir():
        (target / ".strust-other.tmp").write_text("a temporary file of somebody else")
    path.symlink_to(target)
    before = raw(outside)
    ended = case.start(folder, command).wait().expect(0, 1)
    campaign.counts["links"] += 1
    if raw(outside) != before:
        raise Failed(f"{ended.command} wrote through the link {path.relative_to(folder)}")
    if ended.code == 1 and path.name not in ended.error:
        raise Failed(f"{ended.command} does not name the link {path.name}: {ended.error.strip()}")
    path.unlink()
    if target.is_dir():
        (target / ".strust-other.tmp").unlink()
    target.rename(path)
    case.next(folder).wait().expect(case.case.code())
    same(folder, case.expected)


def special_file(campaign, cases, name, shim, rng, folder):
    """A file in a folder of results is a pipe or a device: the program ends and names it, or does not need it."""
    case, inside = with_results(cases, name, folder)
    inside = [path for path in inside if path.is_file()]
    if not inside:
        return
    path = rng.choice(inside)
    # The case may look into the file.
    command = case.case.command(folder)
    content = path.read_bytes()
    path.unlink()
    if rng.random() < 0.5:
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    ended = case.start(folder, command).wait().expect(0, 1)
    campaign.counts["pipes and devices"] += 1
    if ended.code == 1 and path.name not in ended.error:
        raise Failed(f"{ended.command} does not name {path.name}: {ended.error.strip()}")
    path.unlink()
    path.write_bytes(content)
    case.next(folder).wait().expect(case.case.code())
    same(folder, case.expected)


def with_results(cases, name, folder):
    """A case, and everything in its folders of results. If it has none yet, its command makes them first."""
    case = cases[name]
    case.copy_to(folder)
    if not any(path.is_dir() for path in folder.iterdir()):
        case.next(folder).wait().expect(case.case.code())
    results = [path for path in sorted(folder.iterdir()) if (path / "report.html").is_file()]
    return case, [path for result in results for path in sorted(result.rglob("*"))]
