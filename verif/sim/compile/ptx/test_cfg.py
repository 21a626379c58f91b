"""Basic blocks, dominators and reconvergence points against hand-made graphs and a brute-force definition."""

from __future__ import annotations

import os
import random
import time

from lockstep.sim.compile.ptx.cfg import ControlFlowGraph, reconvergence

EXIT: tuple[int, ...] = ()


def test_straight_line_is_one_block() -> None:
    graph = ControlFlowGraph([(1,), (2,), EXIT])
    assert graph.blocks == [range(3)]
    assert graph.exits == {0}
    assert graph.successors == graph.predecessors == [()]
    assert reconvergence([(1,), (2,), EXIT]) == [3, 3, 3]


def test_empty_program() -> None:
    assert reconvergence([]) == []


def test_if_else_reconverges_at_the_join() -> None:
    #            if       then          else    join
    program = [(1, 3), (2,), (5,), (4,), (5,), (6,), EXIT]
    graph = ControlFlowGraph(program)
    assert graph.blocks == [range(1), range(1, 3), range(3, 5), range(5, 7)]
    assert graph.block_of == [0, 1, 1, 2, 2, 3, 3]
    assert graph.predecessors == [(), (0,), (0,), (1, 2)]
    assert graph.dominators == [None, 0, 0, 0]
    assert graph.post_dominators == [3, 3, 3, 4]
    assert reconvergence(program) == [5, 5, 5, 5, 5, 7, 7]


def test_loop_reconverges_after_its_exit_branch() -> None:
    program = [(1,), (2,), (3, 1), EXIT]
    assert ControlFlowGraph(program).blocks == [range(1), range(1, 3), range(3, 4)]
    assert reconvergence(program) == [1, 3, 3, 4]


def test_early_return_reconverges_at_the_virtual_exit() -> None:
    program = [(1, 2), EXIT, EXIT]
    assert reconvergence(program) == [3, 3, 3]
    assert ControlFlowGraph(program).exits == {1, 2}


def test_virtual_exit_beside_another_successor() -> None:
    program = [(1, 3), (2,), EXIT]
    graph = ControlFlowGraph(program)
    assert graph.exits == {0, 1}
    assert reconvergence(program) == [3, 3, 3]


def test_switch_reconverges_at_the_common_join() -> None:
    program = [(1, 2, 3, 2), (4,), (4,), (4,), EXIT]
    assert ControlFlowGraph(program).successors[0] == (1, 2, 3)
    assert reconvergence(program) == [4, 4, 4, 4, 5]


def test_branches_in_an_endless_loop_reconverge_inside_it() -> None:
    #         entry  header  then  else  latch
    program = [(1,), (2, 3), (4,), (4,), (1,)]
    assert reconvergence(program) == [1, 4, 4, 4, 1]
    without_latch = [(1,), (2, 3), (1,), (1,)]
    assert reconvergence(without_latch) == [1, 1, 1, 1]
    two_loops = [(1, 3), (2, 1), (1,), (4, 3), (3,)]
    assert reconvergence(two_loops) == [5, 1, 1, 3, 3]


def test_one_endless_arm() -> None:
    program = [(1, 2), (1,), EXIT]
    assert reconvergence(program)[0] == 3


def test_branch_to_itself() -> None:
    assert reconvergence([(0,)]) == [0]
    assert reconvergence([(0, 1), EXIT]) == [1, 2]


def test_unreachable_code_changes_nothing() -> None:
    program = [(1, 2), (3,), (3,), EXIT, (5, 1), (4,)]
    graph = ControlFlowGraph(program)
    assert reconvergence(program)[:4] == [3, 3, 3, 6]
    assert graph.reachable == {0, 1, 2, 3}
    assert graph.dominators[:4] == [None, 0, 0, 0]
    assert graph.dominators[4:] == [None, None]


def test_postorder_visits_successors_first() -> None:
    graph = ControlFlowGraph([(1, 3), (2,), (5,), (4,), (5,), (6,), EXIT, (0,)])
    place = {block: position for position, block in enumerate(graph.postorder)}
    assert set(place) == graph.reachable == {0, 1, 2, 3}
    assert all(place[to] < place[block] for block in place for to in graph.successors[block])


def _reach(program: list[tuple[int, ...]], start: int, without: int) -> set[int]:
    seen, work = set(), [start] if start != without else []
    while work:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        targets = (program[at] or (len(program),)) if at < len(program) else ()
        work.extend(target for target in targets if target != without)
    return seen


def test_random_graphs_against_the_definition() -> None:
    """``d`` post-dominates a block when the exit cannot be reached without it; the immediate one is the nearest."""
    seed = int(os.environ.get("LOCKSTEP_SEED", random.randrange(2**32)))
    print(f"LOCKSTEP_SEED={seed}")
    generator = random.Random(seed)
    for _ in range(150):
        count = generator.randint(1, 14)
        program: list[tuple[int, ...]] = []
        for index in range(count):
            kind = generator.random()
            if kind < 0.5 and index + 1 < count:
                program.append((index + 1,))
            elif kind < 0.65:
                program.append(EXIT)
            else:
                program.append(tuple(generator.choices(range(count + 1), k=generator.randint(1, 3))))
        graph, result = ControlFlowGraph(program), reconvergence(program)
        assert [index for block in graph.blocks for index in block] == list(range(count))
        for number, block in enumerate(graph.blocks):
            assert all(program[index] == (index + 1,) for index in block[:-1])
            assert all(number in graph.predecessors[successor] for successor in graph.successors[number])
        assert graph.reachable == {graph.block_of[index] for index in _reach(program, 0, -1) - {count}}
        if any(count not in _reach(program, index, -1) for index in range(count)):
            continue  # endless loops: the definition does not say; directed tests above
        for index in range(count):
            start = graph.blocks[graph.block_of[index]][-1]
            after = {count} | {
                block.start
                for block in graph.blocks
                if start not in block and count not in _reach(program, start, block.start)
            }
            nearest = [one for one in after if not (after - {one}) & (_reach(program, start, one) - {one})]
            assert [result[index]] == nearest


def test_large_programs_take_a_moment() -> None:
    count = 20_000
    program: list[tuple[int, ...]] = [(index + 1,) for index in range(count - 1)]
    program[: count - 5 : 5] = [(index + 1, index + 4) for index in range(0, count - 5, 5)]
    program.append(EXIT)
    start = time.process_time()
    assert reconvergence(program)[0] == 4
    assert time.process_time() - start < 5
