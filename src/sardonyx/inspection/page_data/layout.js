/* Scopes, by which nodes fold, and a layered layout of what is visible. */

/* Return the tree of a graph's nodes: {name, path, kids: [], nodes: [index], parent}; leaves are {node: index}. */
function scopeTree(graph) {
  const named = graph.nodes.filter((node) => node.name.includes("/")).length;
  const byName = named * 2 >= graph.nodes.length && graph.nodes.length > 0;
  const root = { name: "", path: "", kids: [], nodes: [], parent: null, depth: 0, groups: new Map() };
  const pathOf = byName ? nameScope : chunkScope(graph);
  graph.nodes.forEach((node, index) => {
    let at = root;
    at.nodes.push(index);
    for (const part of pathOf(node, index)) {
      if (!at.groups.has(part)) {
        const made = { name: part, path: `${at.path}/${part}`, kids: [], nodes: [], parent: at, depth: at.depth + 1, groups: new Map() };
        at.groups.set(part, made);
        at.kids.push(made);
      }
      at = at.groups.get(part);
      at.nodes.push(index);
    }
    at.kids.push({ node: index, parent: at, path: `#${index}` });
  });
  squash(root);
  return root;
}
function nameScope(node) {
  const parts = (node.inside ? `${node.inside}/${node.name}` : node.name).split("/").filter(Boolean);
  return parts.slice(0, -1);
}
/* Without scopes in the names, nodes fold by their order: as many in a chunk as there are chunks, about. */
function chunkScope(graph) {
  const count = graph.nodes.length;
  if (count <= 60) return (node) => (node.inside ? node.inside.split("/").filter(Boolean) : []);
  const size = count > 1200 ? 24 : Math.max(12, Math.ceil(Math.sqrt(count)));
  const label = (from, step) => {
    const to = Math.min(from + step, count);
    const counts = new Map();
    for (let index = from; index < to; index++) counts.set(graph.nodes[index].op, (counts.get(graph.nodes[index].op) || 0) + 1);
    const top = [...counts].sort((one, other) => other[1] - one[1]).slice(0, 2).map((pair) => pair[0].split(".").pop());
    return `${from + 1}–${to} ${top.join(", ")}`;
  };
  const kept = new Map();
  const part = (from, step) => { const key = `${from}:${step}`; if (!kept.has(key)) kept.set(key, label(from, step)); return kept.get(key); };
  return (node, index) => {
    const small = part(Math.floor(index / size) * size, size);
    if (count <= 1200) return [small];
    const wide = size * size;
    return [part(Math.floor(index / wide) * wide, wide), small];
  };
}
/* A group of one group is that group; a group of one node is that node. */
function squash(group) {
  group.kids = group.kids.map((kid) => {
    if (kid.node !== undefined) return kid;
    squash(kid);
    if (kid.kids.length !== 1) return kid;
    const only = kid.kids[0];
    only.parent = kid.parent;
    if (only.node === undefined) only.name = `${kid.name}/${only.name}`;
    return only;
  });
  for (const kid of group.kids) kid.parent = group;
}
const order = (unit) => (unit.node !== undefined ? unit.node : unit.nodes[0]);

/* Return what is visible where the groups of `open` are unfolded: nodes and folded groups. */
function visibleUnits(root, open) {
  const found = [];
  const walk = (group) => {
    for (const kid of group.kids) {
      if (kid.node === undefined && open.has(kid.path)) walk(kid);
      else found.push(kid);
    }
  };
  walk(root);
  return found.sort((one, other) => order(one) - order(other));
}
/* Unfold groups from the top as long as no more than `most` units are visible. */
function openAtFirst(root, most) {
  const open = new Set();
  let count = root.kids.length, level = root.kids.filter((kid) => kid.node === undefined);
  while (level.length) {
    const next = [];
    for (const group of level.sort((one, other) => one.kids.length - other.kids.length)) {
      if (count + group.kids.length - 1 > (count === 1 ? 8 * most : most)) continue;
      open.add(group.path);
      count += group.kids.length - 1;
      next.push(...group.kids.filter((kid) => kid.node === undefined));
    }
    level = next;
  }
  return open;
}

const BOX = { width: 168, height: 38, gapX: 22, gapY: 34, most: 14 };

/* Place units and edges: {units: [{unit, x, y, w, h}], edges: [{from, to, points, value}], width, height}. */
function layered(graph, units) {
  const owner = new Map(), boxes = [];
  const add = (box) => { box.rank = 0; box.ins = []; box.outs = []; boxes.push(box); return box; };
  for (const unit of units) {
    const box = add({ unit, w: BOX.width, h: BOX.height });
    for (const index of unit.node !== undefined ? [unit.node] : unit.nodes) owner.set(index, box);
  }
  const maker = new Map();
  graph.nodes.forEach((node, index) => node.outs.forEach((value) => maker.set(value, owner.get(index))));
  const read = new Set();
  graph.nodes.forEach((node) => node.ins.forEach((value) => read.add(value)));
  graph.inputs.forEach((value) => { if (read.has(value) && !maker.has(value)) maker.set(value, add({ input: value, w: 120, h: 26 })); });
  const edges = new Map();
  const join = (from, to, value) => {
    if (!from || !to || from === to) return;
    const key = `${boxes.indexOf(from)}>${boxes.indexOf(to)}`;
    const known = edges.get(key);
    if (known) known.values.push(value);
    else edges.set(key, { from, to, values: [value] });
  };
  boxes.forEach((box, index) => { box.id = index; });
  boxes.indexOf = (box) => box.id;
  graph.nodes.forEach((node, index) => node.ins.forEach((value) => join(maker.get(value), owner.get(index), value)));
  graph.outputs.forEach((value) => {
    const made = maker.get(value);
    if (!made) return;
    const box = add({ output: value, w: 120, h: 26 });
    box.id = boxes.length - 1;
    join(made, box, value);
  });
  const rankOf = (box) => (box.unit ? order(box.unit) : box.input !== undefined ? -1 : Infinity);
  const all = [...edges.values()];
  for (const edge of all) edge.back = rankOf(edge.from) >= rankOf(edge.to);
  const forward = all.filter((edge) => !edge.back);
  for (const edge of forward) { edge.from.outs.push(edge); edge.to.ins.push(edge); }
  const sorted = [...boxes].sort((one, other) => rankOf(one) - rankOf(other));
  for (const box of sorted) for (const edge of box.outs) edge.to.rank = Math.max(edge.to.rank, box.rank + 1);
  for (const box of [...sorted].reverse()) if (!box.ins.length && box.outs.length) box.rank = Math.max(0, Math.min(...box.outs.map((edge) => edge.to.rank)) - 1);
  const ranks = [];
  const put = (item) => { (ranks[item.rank] = ranks[item.rank] || []).push(item); };
  sorted.forEach(put);
  const spans = forward.reduce((sum, edge) => sum + edge.to.rank - edge.from.rank, 0), longest = spans < 6000 ? 400 : BOX.most;
  for (const edge of forward) {
    edge.chain = [edge.from];
    const span = edge.to.rank - edge.from.rank;
    if (span > 1 && span <= longest) {
      for (let rank = edge.from.rank + 1; rank < edge.to.rank; rank++) {
        const dummy = { rank, w: 8, h: BOX.height, ins: [], outs: [], dummy: true };
        edge.chain.push(dummy);
        put(dummy);
      }
    }
    edge.chain.push(edge.to);
  }
  const up = new Map(), down = new Map();
  for (const edge of forward) {
    for (let index = 1; index < edge.chain.length; index++) {
      const one = edge.chain[index - 1], other = edge.chain[index];
      (down.get(one) || down.set(one, []).get(one)).push(other);
      (up.get(other) || up.set(other, []).get(other)).push(one);
    }
  }
  for (let index = 0; index < ranks.length; index++) ranks[index] = ranks[index] || [];
  place(ranks, up, down);
  let y = 0;
  for (const rank of ranks) {
    const tall = Math.max(0, ...rank.map((item) => item.h));
    for (const item of rank) item.y = y + (tall - item.h) / 2;
    y += tall + BOX.gapY;
  }
  const left = Math.min(0, ...boxes.map((box) => box.x)), right = Math.max(1, ...boxes.map((box) => box.x + box.w));
  return { boxes, edges: all, left, width: right - left, height: Math.max(1, y - BOX.gapY) };
}
/* Order the items of each rank by where their neighbours are, and give them places, in some sweeps. */
function place(ranks, up, down) {
  const spread = (rank) => { let x = 0; for (const item of rank) { item.x = x; x += item.w + BOX.gapX; } const shift = (x - BOX.gapX) / 2; for (const item of rank) item.x -= shift; };
  ranks.forEach(spread);
  const center = (item) => item.x + item.w / 2;
  const wish = (item, near) => { const others = near.get(item); return others && others.length ? others.reduce((sum, other) => sum + center(other), 0) / others.length : center(item); };
  const sweep = (rank, near) => {
    for (const item of rank) item.wish = wish(item, near);
    rank.sort((one, other) => one.wish - other.wish);
    settle(rank);
  };
  const sweeps = ranks.length > 400 ? 3 : 6;
  for (let round = 0; round < sweeps; round++) {
    for (let index = 1; index < ranks.length; index++) sweep(ranks[index], up);
    for (let index = ranks.length - 2; index >= 0; index--) sweep(ranks[index], down);
  }
  for (let index = 1; index < ranks.length; index++) sweep(ranks[index], up);
}
/* Put items, in their order, as near to their wishes as they fit beside one another: blocks that touch move together. */
function settle(rank) {
  const blocks = [];
  for (const item of rank) {
    let block = { items: [item], sum: item.wish - item.w / 2, count: 1, w: item.w };
    block.x = block.sum;
    while (blocks.length && blocks[blocks.length - 1].x + blocks[blocks.length - 1].w + BOX.gapX > block.x) {
      const before = blocks.pop();
      const shift = before.w + BOX.gapX;
      before.items.push(...block.items);
      before.sum += block.sum - block.count * shift;
      before.count += block.count;
      before.w = shift + block.w;
      before.x = before.sum / before.count;
      block = before;
    }
    blocks.push(block);
  }
  for (const block of blocks) { let x = block.x; for (const item of block.items) { item.x = x; x += item.w + BOX.gapX; } }
}
