#!/usr/bin/env python3
"""Tries the foreign-key pruning rules on random tables, facts, batches and joins.

The delta of an inner join of leaves R0..Rn-1, with old and cur the states before and after the batch, is either of

    mobius       sum over non-empty masks m of (-1)^(|m|-1) * prod_i (i in m ? delta_i : cur_i)
    telescoping  sum over k of cur_0 .. cur_(k-1) * delta_k * old_(k+1) .. old_(n-1)

A fact (foreign key) leads from leaf C to leaf P if the join equates C's column with P's key; the two may be leaves of
one table. Facts of trust rely hold before and after the batch; tracked ones are violated at will. A leaf may filter its
table, by the rows' attribute.

Batch rule.  If P's table gains rows only, delta_P becomes empty, and in telescoping old_P becomes cur_P. A tracked fact
             is not used if a child row of the old state refers to a fresh parent.
Row rule.    Split the delta of P's table by key: fresh (not in the old table), gone (not in the new one), changed (in
             both). delta_P becomes the changed rows alone, cur_P becomes P_new + gone, and in telescoping old_P becomes
             P_old + fresh. Under a tracked fact a fresh row that a child of the old state refers to, and a gone row
             that one of the new state refers to, are no such rows: they stay in delta_P.
Reachability. Either rule may treat a set of leaves so only if each leaf of the set can be reached, along facts from
             child to parent, from a leaf outside it: then an old row there leads to old rows all along the path. In a
             cycle of facts at least one leaf must stay as it is, or rows that refer to each other are lost. Leaves are
             reached in rounds; a leaf loses the rows prunable under the facts that lead to it from earlier rounds, as
             under tracked facts two leaves could otherwise each rest on the other.

  pruning_rule.py [TRIALS]   prints the wrong results of each variant; exit 1 if a right one is ever wrong or a wrong one
                             (named "not ...") never is
"""
import random
import sys
from collections import Counter

KEYS = range(4)       # of every table; a row is (key, a, b, attribute), a and b may hold keys


def joined(leaves, edges):
    """leaves: lists of (row, weight); edges: (child leaf, column, parent leaf). -> {rows: weight}"""
    out = Counter()

    def extend(rows, weight):
        level = len(rows)
        if level == len(leaves):
            out[rows] += weight
            return
        for row, w in leaves[level]:
            longer = rows + (row,)
            if all(longer[c][column] is not None and longer[c][column] == longer[p][0]
                   for c, column, p in edges if max(c, p) == level):
                extend(longer, weight * w)
    extend((), 1)
    return {rows: w for rows, w in out.items() if w}


def random_tables(rng, count, like=None):
    """A table is {key: row}; about half of the rows of `like` are kept."""
    tables = []
    for t in range(count):
        table = {}
        for key in KEYS:
            if like and rng.random() < 0.5:
                if key in like[t]:
                    table[key] = like[t][key]
            elif rng.random() < 0.6:
                table[key] = (key, rng.choice([None, *KEYS]), rng.choice([None, *KEYS]), rng.randint(0, 1))
        tables.append(table)
    return tables


def drop_orphans(tables, facts):
    again = True
    while again:
        again = False
        for child, column, parent, trust in facts:
            for key, row in list(tables[child].items()):
                if trust == "rely" and row[column] is not None and row[column] not in tables[parent]:
                    del tables[child][key]
                    again = True


class Leaf:
    """One occurrence of a table: its rows before and after the batch, as {row: 1}, and what a filter leaves of them."""

    def __init__(self, old, new, wanted):
        self.old_table, self.new_table = old, new
        self.old, self.new = (Counter(r for r in t.values() if wanted is None or r[3] == wanted) for t in (old, new))
        self.delta = minus(self.new, self.old)

    def prunable(self, referred_before, referred_after):
        """Fresh and gone rows by the keys of the table, unless referred to."""
        return {r for r in self.delta if r[0] not in self.old_table and r[0] not in referred_before
                or r[0] not in self.new_table and r[0] not in referred_after}

    def prunable_by_signs(self):
        """A wrong rule: by the keys that the leaf's own delta gains and loses."""
        gained = {r[0] for r, w in self.delta.items() if w > 0}
        lost = {r[0] for r, w in self.delta.items() if w < 0}
        return {r for r in self.delta if (r[0] in gained) != (r[0] in lost)}


def minus(a, b):
    out = Counter(a)
    out.subtract(b)
    return Counter({r: w for r, w in out.items() if w})


def reachable_part(candidates, leaves, edges):
    """The candidates that can be pruned together, each reached from a leaf that is not; a cycle loses one leaf."""
    reached, pruned = set(range(leaves)) - candidates, set()
    while len(reached) < leaves:
        step = {p for c, column, p, rows in edges if c in reached} - reached
        pruned |= step
        reached |= step or {min(set(range(leaves)) - reached)}
    return pruned


def rounds_of(pruned, leaves, edges):
    rounds = {i: 0 for i in range(leaves) if i not in pruned}
    for k in range(1, leaves):
        rounds.update({p: k for c, column, p, rows in edges if rounds.get(c, k) < k and p not in rounds})
    return rounds


def trial(seed, rule, form, slip):
    """-> None if the join has no fact, else (was the delta right, was a leaf pruned). `slip` names a mistake."""
    rng, conditions = random.Random(seed), []
    tables = rng.randint(1, 3)
    facts = [(child, column, rng.randrange(tables), rng.choice(["rely", "tracked"])) for child in range(tables)
             for column in (1, 2) if rng.random() < 0.7]
    old = random_tables(rng, tables)
    drop_orphans(old, facts)
    new = random_tables(rng, tables, old)
    drop_orphans(new, facts)
    of = [rng.randrange(tables) for _ in range(rng.randint(2, 4))]
    leaves = [Leaf(old[t], new[t], rng.choice([None, None, 0, 1])) for t in of]
    n, edges = len(of), []
    for child, column, parent, trust in facts:
        for c in range(n):
            for p in range(n):
                if c != p and (child, parent) == (of[c], of[p]) and rng.random() < 0.6:
                    conditions.append((c, column, p))
                    before, after = ((), ()) if trust == "rely" or slip == "tracked trusted" else \
                        ({r[column] for r in t[child].values()} for t in (old, new))
                    rows = leaves[p].prunable(before, after)
                    if rule == "batch":
                        fresh = old[parent].keys() ^ new[parent].keys()
                        grows = all(k in new[parent] and new[parent][k] == r for k, r in old[parent].items())
                        rows = set(leaves[p].delta) if grows and not fresh & set(before) else None
                    elif slip == "by leaf signs":
                        rows = leaves[p].prunable_by_signs()
                    if rows is not None:
                        edges.append((c, column, p, rows))
    if not edges:
        return None
    candidates = {p for c, column, p, rows in edges if rows}
    pruned = candidates if slip == "no reachability" else reachable_part(candidates, n, edges)

    rounds = rounds_of(pruned, n, edges)
    before, delta, cur = [], [], []
    for i, leaf in enumerate(leaves):
        gone = {r for c, column, p, rows in edges if p == i and i in pruned for r in rows
                if slip in ("no reachability", "no rounds") or rounds[c] < rounds[i]}
        delta.append({r: w for r, w in leaf.delta.items() if r not in gone})
        early = Counter({r: w for r, w in leaf.delta.items() if r in gone and w > 0})
        late = Counter({r: -w for r, w in leaf.delta.items() if r in gone and w < 0})
        before.append(leaf.old if slip == "old as it was" else leaf.old + early)
        cur.append(leaf.new + late)
    got = Counter()
    if form == "mobius":
        sums = [(-1 if bin(m).count("1") % 2 == 0 else 1, [delta[i] if m >> i & 1 else cur[i] for i in range(n)])
                for m in range(1, 1 << n)]
    else:
        sums = [(1, [cur[i] if i < k else delta[i] if i == k else before[i] for i in range(n)]) for k in range(n)]
    for sign, states in sums:
        for rows, w in joined([list(s.items()) for s in states], conditions).items():
            got[rows] += sign * w
    want = Counter(joined([list(x.new.items()) for x in leaves], conditions))
    want.subtract(joined([list(x.old.items()) for x in leaves], conditions))
    return {k: w for k, w in got.items() if w} == {k: w for k, w in want.items() if w}, bool(pruned)


VARIANTS = [(rule, form, None) for rule in ("batch", "row") for form in ("mobius", "telescoping")] + [
    ("batch", "mobius", "no reachability"), ("row", "mobius", "no reachability"),
    ("row", "telescoping", "no reachability"), ("row", "mobius", "no rounds"), ("row", "telescoping", "old as it was"),
    ("batch", "mobius", "tracked trusted"), ("row", "mobius", "tracked trusted"),
    ("row", "telescoping", "tracked trusted"), ("row", "mobius", "by leaf signs"),
    ("row", "telescoping", "by leaf signs")]


def main(argv):
    trials = int(argv[1]) if len(argv) > 1 else 6000
    failed = False
    for rule, form, slip in VARIANTS:
        results = [r for r in (trial(seed, rule, form, slip) for seed in range(trials)) if r]
        wrong = sum(not right for right, pruned in results)
        failed |= (wrong > 0) == (slip is None)
        print(f"{rule} rule, {form}{', not right: ' + slip if slip else ''}: {len(results)} joins, "
              f"{sum(pruned for right, pruned in results)} with a pruned leaf, {wrong} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
