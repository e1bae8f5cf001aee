"""StratifiedBatches: members of every group in proportion."""

from collections import Counter
from itertools import chain

import pytest
import torch

from strust.torch import StratifiedBatches


@pytest.mark.parametrize("seed", range(40))
def test_each_batch_has_every_group_in_proportion_and_no_item_comes_twice_in_a_pass_of_all_ranks(seed):
    ranks = 1 + seed % 4
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(5, 300, (), generator=generator))
    size = int(torch.randint(1, n // ranks + 1, (), generator=generator))
    groups = torch.randint(6, (n,), generator=generator).square() % 5
    counts = Counter(groups.tolist())
    settings = {"seed": seed, "world_size": ranks}
    passes = [list(StratifiedBatches(groups, size, rank=rank, **settings)) for rank in range(ranks)]
    assert all(len(batches) == n // (size * ranks) for batches in passes)
    for batch in chain(*passes):
        found = Counter(groups[batch].tolist())
        assert len(batch) == size
        assert all(size * counts[g] // n <= found[g] <= -(-size * counts[g] // n) for g in counts)
    items = [i for batches in passes for batch in batches for i in batch]
    assert len(set(items)) == len(items) == n // (size * ranks) * size * ranks


def test_batch_k_is_a_function_of_the_seed_and_k():
    groups = ["a"] * 30 + ["b"] * 12
    sampler = StratifiedBatches(groups, 7, seed=3)
    passes = [list(sampler) for _ in range(3)]
    assert passes[0] != passes[1]
    resumed = StratifiedBatches(groups, 7, seed=3, start=8)
    assert [list(resumed), list(resumed)] == [passes[1][2:], passes[2]]
    assert list(StratifiedBatches(groups, 7, seed=4)) != passes[0]


def test_a_data_loader_takes_it():
    labels = torch.tensor([0] * 8 + [1] * 4)
    loader = torch.utils.data.DataLoader(labels, batch_sampler=StratifiedBatches(labels, 3))
    assert len(loader) == 4
    assert [batch.sum().item() for batch in loader] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (([0, 1], 3), {}, "there are 2 items"),
        (([0, 1], 1), {"world_size": 3}, "on 3 ranks, but there are 2 items"),
        (([0, 1], 1), {"world_size": 2, "rank": 2}, "`rank` is 2, but `world_size` is 2"),
        (([0, 1], 1), {"world_size": 0}, "`world_size` is 0"),
        (([0, 1], 0), {}, "`batch_size` is 0"),
        (([0, 1], 1.5), {}, "`batch_size` is a float"),
        (([0, 1], 1), {"start": -1}, "`start` is -1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        StratifiedBatches(*arguments, **settings)
