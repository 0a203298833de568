"""Random graphs for record.py."""


def graphs(rng):
    kinds = [uniform, layered, joined, tree, stencil, chained, overlaid, forked, forked]
    for i in range(2700):
        make = kinds[i % len(kinds)]
        n = rng.randint(1, 14) if i < 700 else rng.randint(5, 60) if i < 2560 else rng.randint(100, 400)
        deps = make(rng, n)
        yield f"{make.__name__}-{i}", dress(rng, deps, flavour=i // len(kinds) % 4)
    for i in range(20):
        yield f"deep-{i}", dress(rng, deep(rng), flavour=0)


def dress(rng, deps, flavour):
    """Numbers and names the tasks at random, and gives them kinds."""
    n = len(deps)
    where = list(range(n))
    rng.shuffle(where)
    labels = list(range(n))
    if rng.random() < 0.7:
        rng.shuffle(labels)
    out = [None] * n
    kinds = ["r"] * n
    users = [0] * n
    for ds in deps:
        for d in ds:
            users[d] += 1
    for v, ds in enumerate(deps):
        out[where[v]] = sorted({where[d] for d in ds})
        if flavour == 1 and not ds and rng.random() < 0.5:
            kinds[where[v]] = "p"
        if flavour == 2 and not users[v] and len(ds) > 1 and rng.random() < 0.6:
            kinds[where[v]] = "p"
        if flavour == 3:
            if not ds and users[v] and rng.random() < 0.3:
                kinds[where[v]] = "o"
            elif rng.random() < 0.2:
                kinds[where[v]] = "p"
    # What is plain and takes something is a list, and a list cannot name what is outside.
    for v in range(n):
        if kinds[v] == "p" and any(kinds[d] == "o" for d in out[v]):
            kinds[v] = "r"
    names = [None] * n
    for v in range(n):
        names[where[v]] = f"t{labels[v]}" if flavour != 1 else f"('x-{labels[v] % 7}', {labels[v]})"
    if all(k == "o" for k in kinds):
        kinds = ["r"] * n
    if "o" in kinds:  # those come last, as dask would find them
        first = [v for v in range(n) if kinds[v] != "o"]
        order = first + sorted((v for v in range(n) if kinds[v] == "o"), key=lambda v: names[v])
        at = {v: i for i, v in enumerate(order)}
        out = [sorted(at[d] for d in out[v]) for v in order]
        names = [names[v] for v in order]
        kinds = [kinds[v] for v in order]
    return {"names": names, "deps": out, "kinds": "".join(kinds)}


def some(rng, below, most):
    return set(rng.sample(range(below), min(below, rng.randint(0, most))))


def uniform(rng, n):
    most = rng.choice([1, 2, 3, 4])
    return [some(rng, v, most) for v in range(n)]


def layered(rng, n):
    """Tasks depend on the layer before."""
    width = rng.randint(1, max(1, n // 3))
    most = rng.randint(1, 4)
    out = []
    for v in range(n):
        start = max(0, v // width * width - width)
        end = v // width * width
        out.append({start + d for d in some(rng, end - start, most)} if end else set())
    return out


def joined(rng, n):
    """Few tasks have many dependencies."""
    out = []
    for v in range(n):
        if v and rng.random() < 0.2:
            out.append(some(rng, v, min(v, 8)))
        elif v and rng.random() < 0.7:
            out.append({rng.randint(max(0, v - 6), v - 1)})
        else:
            out.append(set())
    return out


def tree(rng, n):
    """Reductions, some of whose parts are used elsewhere too."""
    fan = rng.randint(2, 4)
    level = list(range(max(1, n // 2)))
    out = [set() for _ in level]
    while len(level) > 1:
        above = []
        for i in range(0, len(level), fan):
            out.append(set(level[i : i + fan]))
            above.append(len(out) - 1)
        level = above
    for _ in range(n // 5):
        out.append({rng.randrange(len(out))} | some(rng, len(out), 1))
    return out


def stencil(rng, n):
    """Rows, each task of which takes its neighbours in the row before."""
    width = rng.randint(1, max(1, n // 3))
    out = []
    for v in range(n):
        row, col = divmod(v, width)
        near = {c for c in (col - 1, col, col + 1) if 0 <= c < width}
        out.append({(row - 1) * width + c for c in near if rng.random() < 0.9} if row else set())
    return out


def chained(rng, n):
    """Chains that meet and part."""
    out = []
    heads = []
    for v in range(n):
        what = rng.random()
        if not heads or what < 0.15:
            out.append(set())
            heads.append(v)
        elif what < 0.65:
            i = rng.randrange(len(heads))
            out.append({heads[i]})
            heads[i] = v
        elif what < 0.8:
            out.append({rng.choice(heads)})
            heads.append(v)
        else:
            met = set(rng.sample(heads, min(len(heads), rng.randint(2, 4))))
            out.append(met)
            heads = [h for h in heads if h not in met or rng.random() < 0.3] + [v]
    return out


def overlaid(rng, n):
    """Two products of parts that share their roots."""
    out = [set() for _ in range(max(2, n // 6))]
    roots = len(out)
    while len(out) < n:
        part = len(out)
        for r in range(roots):
            out.append({r})
        out.append(set(range(part, part + roots)))
        for r in range(roots):
            out.append({r, part + roots} | ({part + r} if rng.random() < 0.5 else set()))
    return out


def deep(rng):
    """Dense layers, so many that the count of ways to a root is beyond a word."""
    width = rng.randint(2, 4)
    out = [set() for _ in range(width)]
    for layer in range(rng.randint(70, 100)):
        start = layer * width
        most = rng.randint(width - 1, width)
        out += [set(rng.sample(range(start, start + width), most)) | {start + c} for c in range(width)]
        if rng.random() < 0.1:
            out[-1].add(rng.randrange(width))
    return out


def forked(rng, n):
    """Parts that fork and meet again, one within another, on a few roots."""
    out = []
    loose = []  # what others may take too

    def add(*deps):
        out.append(set(deps))
        if rng.random() < 0.15:
            loose.append(len(out) - 1)
        return len(out) - 1

    def part(below, depth):
        at = add(below)
        if depth == 0 or len(out) > n:
            return at
        arms = [part(at, depth - 1 - (rng.random() < 0.4)) if depth > 1 else add(at) for _ in range(rng.randint(2, 4))]
        if rng.random() < 0.2:
            arms.append(rng.choice(loose)) if loose else None
        what = rng.random()
        if what < 0.5:
            return add(*arms)
        if what < 0.7:
            add(*arms)
            return add(*arms)
        if what < 0.85:
            return add(arms[0], add(*arms[1:]))
        return arms[-1]

    tops = []
    while len(out) < n:
        root = add()
        tops += [part(root, rng.randint(1, 4)) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.7:
        step = rng.randint(2, 5)
        for i in range(0, len(tops), step):
            add(*tops[i : i + step])
    return out
