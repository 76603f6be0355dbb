/* The graph: an outline that folds, a drawing that pans and zooms, a search, and what is known of one node. */
function graphTab(host) {
  const sides = { before: data.before };
  if (data.after) sides.after = data.after;
  const state = { side: data.after ? "after" : "before", node: null, group: null, view: { x: 0, y: 0, k: 1 }, hit: 0, hits: [] };
  const kept = {};
  const current = () => {
    const side = state.side;
    if (!kept[side]) {
      const tree = scopeTree(sides[side]);
      kept[side] = { graph: sides[side], tree, open: openAtFirst(tree, 48), leaves: new Map() };
      const walk = (group) => group.kids.forEach((kid) => (kid.node !== undefined ? kept[side].leaves.set(kid.node, kid) : walk(kid)));
      walk(tree);
    }
    return kept[side];
  };

  const input = el("input", { type: "search", id: "search", placeholder: "Search nodes  ( / )", "aria-label": "Search nodes by name, operator or value", autocomplete: "off", spellcheck: "false" });
  const hits = el("ul", { class: "hits", role: "listbox", "aria-label": "Nodes found" });
  const switches = Object.keys(sides).map((side) => el("button", { class: "plain", "data-side": side, onclick: () => show(side) }, side === "before" ? `As given (${data.before.nodes.length})` : `As it runs (${data.after.nodes.length})`));
  const outline = el("div", { class: "outline", role: "tree", "aria-label": "Nodes by scope" });
  const edgesLayer = svg("g"), boxLayer = svg("g");
  const world = svg("g", {}, edgesLayer, boxLayer);
  const picture = svg("svg", { tabindex: "0", role: "img", "aria-label": "The graph. Drag to move, wheel to zoom, arrows to move, plus and minus to zoom, 0 to fit." }, world);
  const legend = el("div", { class: "legend" });
  const detail = el("aside", { class: "detail", "aria-label": "Details", "aria-live": "polite" });
  const frame = el("div", { class: "graph" },
    el("div", { class: "tools" },
      el("div", { class: "find" }, input, hits), switches,
      el("button", { class: "plain", id: "unfold", onclick: () => foldAll(false) }, "Unfold all"),
      el("button", { class: "plain", id: "fold", onclick: () => foldAll(true) }, "Fold all"),
      el("button", { class: "plain", onclick: () => fit(), title: "0" }, "Fit"),
      el("button", { class: "plain narrow", onclick: () => { frame.classList.toggle("outlined"); apply(); } }, "Outline")),
    outline, el("div", { class: "canvas" }, picture, legend), detail);
  host.append(frame);

  let drawn = null;
  function draw(keepView) {
    const now = current();
    const units = visibleUnits(now.tree, now.open);
    drawn = layered(now.graph, units);
    for (const button of switches) button.setAttribute("aria-pressed", String(button.dataset.side === state.side));
    drawOutline();
    drawLegend(units);
    if (keepView) apply(); else fit();
    drawDetail();
  }
  function drawLegend(units) {
    const found = new Set(units.filter((unit) => unit.node !== undefined).map((unit) => familyOf(current().graph.nodes[unit.node].op)));
    fill(legend, ...FAMILIES.filter((item) => found.has(item[0])).map(([key, text]) => el("span", {}, el("i", { class: "dot", style: `background:var(--${key})` }), text)));
  }
  /* the view: only what lies in it is drawn */
  function apply() {
    const { x, y, k } = state.view, box = picture.getBoundingClientRect();
    world.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
    const left = -x / k - 60, top = -y / k - 60, right = left + box.width / k + 120, bottom = top + box.height / k + 120;
    const inView = (item) => item.x + item.w >= left && item.x <= right && item.y + item.h >= top && item.y <= bottom;
    boxLayer.replaceChildren(...drawn.boxes.filter(inView).map(drawBox));
    edgesLayer.replaceChildren(...drawn.edges.filter((edge) => edgeInView(edge, left, top, right, bottom)).map(drawEdge));
  }
  function edgeInView(edge, left, top, right, bottom) {
    const one = edge.from, other = edge.to;
    const low = Math.min(one.y, other.y), high = Math.max(one.y + one.h, other.y + other.h);
    const near = Math.min(one.x, other.x) - 200, far = Math.max(one.x + one.w, other.x + other.w) + 200;
    return high >= top && low <= bottom && far >= left && near <= right;
  }
  const isOn = (box) => (box.unit ? (box.unit.node !== undefined ? box.unit.node === state.node : box.unit.path === state.group) : false);
  function drawBox(box) {
    const graph = current().graph;
    const on = isOn(box) ? " on" : "";
    const place = { transform: `translate(${box.x} ${box.y})` };
    const body = svg("rect", { class: "body", width: box.w, height: box.h, rx: 6 });
    if (!box.unit) {
      const value = graph.values[box.input !== undefined ? box.input : box.output];
      return svg("g", { ...place, class: "unit io" }, svg("title", {}, `${box.input !== undefined ? "input" : "output"} ${value.name}: ${shapeText(value)}`), body,
        svg("text", { x: box.w / 2, y: 17, "text-anchor": "middle" }, clip(value.name || "?", 17)));
    }
    const unit = box.unit;
    if (unit.node === undefined) {
      return svg("g", { ...place, class: `unit group${on}`, "data-group": unit.path, onclick: () => pick(null, unit.path), ondblclick: () => toggle(unit.path) },
        svg("title", {}, `${unit.path.slice(1)}: ${plural(unit.nodes.length, "node")}; double-click unfolds`), body,
        svg("text", { x: 10, y: 16 }, clip(groupName(unit), 20)), svg("text", { x: 10, y: 30, class: "sub" }, `▸ ${plural(unit.nodes.length, "node")}`));
    }
    const node = graph.nodes[unit.node], made = graph.values[node.outs[0]];
    return svg("g", { ...place, class: `unit${on}`, "data-node": unit.node, onclick: () => pick(unit.node) },
      svg("title", {}, `${node.op} ${node.name}`), body, svg("rect", { width: 4, height: box.h - 12, x: 5, y: 6, rx: 2, style: `fill:${paint(node.op)};stroke:none` }),
      svg("text", { x: 15, y: 16 }, clip(node.op.split(".").pop(), 20)),
      svg("text", { x: 15, y: 30, class: "sub" }, clip(made ? shapeText(made) : node.name, 24)));
  }
  function groupName(unit) {
    const parent = unit.parent && unit.parent.parent ? unit.parent.name.split("/").pop() : "";
    return parent && !unit.name.includes(parent) && !/–/.test(unit.name) && parent.length + unit.name.length < 20 ? `${parent}/${unit.name}` : unit.name;
  }
  function drawEdge(edge) {
    const points = edge.chain || [edge.from, edge.to];
    const at = points.map((item, index) => [item.x + item.w / 2, index === 0 ? item.y + item.h : index === points.length - 1 ? item.y : item.y + item.h / 2]);
    let path = `M${at[0][0]} ${at[0][1]}`;
    for (let index = 1; index < at.length; index++) {
      const [x0, y0] = at[index - 1], [x1, y1] = at[index], bend = Math.min(60, Math.max(12, Math.abs(y1 - y0) / 2));
      path += `C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`;
    }
    const on = isOn(edge.from) || isOn(edge.to);
    const names = edge.values.slice(0, 6).map((value) => { const item = current().graph.values[value]; return `${item.name} ${shapeText(item)}`; });
    return svg("path", { class: `edge${on ? " on" : ""}${edge.back ? " back" : ""}`, d: path }, svg("title", {}, names.join("\n")));
  }
  function fit() {
    const box = picture.getBoundingClientRect();
    const scale = Math.min(1.1, Math.max(0.72, Math.min((box.width - 40) / drawn.width, (box.height - 40) / drawn.height)));
    const wide = drawn.width * scale > box.width - 40;
    state.view = { k: scale, x: wide ? box.width / 2 - middle() * scale : (box.width - drawn.width * scale) / 2 - drawn.left * scale, y: 18 };
    apply();
  }
  function middle() {
    const first = drawn.boxes.filter((item) => item.unit).slice(0, 3);
    return first.length ? first.reduce((sum, item) => sum + item.x + item.w / 2, 0) / first.length : 0;
  }
  function center(box) {
    const area = picture.getBoundingClientRect(), k = Math.max(state.view.k, 0.8);
    state.view = { k, x: area.width / 2 - (box.x + box.w / 2) * k, y: area.height / 2 - (box.y + box.h / 2) * k };
    apply();
  }
  function zoom(factor, cx, cy) {
    const view = state.view, k = Math.min(3, Math.max(0.05, view.k * factor));
    state.view = { k, x: cx - ((cx - view.x) * k) / view.k, y: cy - ((cy - view.y) * k) / view.k };
    apply();
  }

  /* folding */
  function toggle(path) {
    const open = current().open;
    if (open.has(path)) open.delete(path); else open.add(path);
    state.group = path;
    draw(true);
    const box = drawn.boxes.find((item) => item.unit && (item.unit.path === path || groupsOf(item.unit).includes(path)));
    if (box) center(box);
  }
  function groupsOf(unit) {
    const found = [];
    for (let at = unit.parent; at && at.parent; at = at.parent) found.push(at.path);
    return found;
  }
  function foldAll(fold) {
    const open = current().open;
    open.clear();
    if (!fold) { const walk = (group) => group.kids.forEach((kid) => { if (kid.node === undefined) { open.add(kid.path); walk(kid); } }); walk(current().tree); }
    draw(false);
  }
  function leafName(node) {
    const name = node.name.split("/").pop();
    return name === node.op.split(".").pop() ? null : el("small", { class: "name" }, name);
  }
  function drawOutline() {
    const now = current(), rows = [];
    const walk = (group, depth) => {
      for (const kid of [...group.kids].sort((one, other) => order(one) - order(other))) {
        const pad = `padding-left:${0.3 + depth * 0.8}rem`;
        if (kid.node !== undefined) {
          const node = now.graph.nodes[kid.node];
          rows.push(el("div", { class: `row${kid.node === state.node ? " on" : ""}`, style: pad, role: "treeitem", "data-node": kid.node, onclick: () => reveal(kid.node), title: node.name },
            el("i", { class: "dot", style: `margin-left:1rem;background:${paint(node.op)}` }), el("span", { class: "name" }, node.op.split(".").pop()), leafName(node)));
        } else {
          const opened = now.open.has(kid.path);
          rows.push(el("div", { class: `row${kid.path === state.group ? " on" : ""}`, style: pad, role: "treeitem", "aria-expanded": String(opened), "data-group": kid.path, title: kid.path.slice(1), onclick: () => toggle(kid.path) },
            el("button", { tabindex: -1, "aria-hidden": "true" }, opened ? "▾" : "▸"), el("span", { class: "name" }, kid.name), el("small", {}, String(kid.nodes.length))));
          if (opened) walk(kid, depth + 1);
        }
      }
    };
    walk(now.tree, 0);
    fill(outline, ...rows);
  }

  /* one node */
  function pick(node, group = null) {
    state.node = node;
    state.group = group;
    apply();
    for (const row of outline.children) row.classList.toggle("on", node !== null ? row.dataset.node === String(node) : row.dataset.group === group);
    const chosen = outline.querySelector(".row.on");
    if (chosen) chosen.scrollIntoView({ block: "nearest" });
    drawDetail();
  }
  function reveal(index, side = state.side) {
    const isNew = side !== state.side;
    state.side = side;
    const now = current(), shut = groupsOf(now.leaves.get(index)).filter((path) => !now.open.has(path));
    for (const path of shut) now.open.add(path);
    if (isNew || shut.length || !drawn) draw(true);
    pick(index);
    const box = drawn.boxes.find((item) => item.unit && item.unit.node === index);
    if (box) center(box);
  }
  function valueRow(graph, number, makers, readers) {
    const value = graph.values[number], nodes = readers || (makers.has(number) ? [makers.get(number)] : []);
    const told = value.const !== undefined ? ` constant ${value.const || bytes(value.bytes)}` : "";
    return el("div", { style: "margin:.2rem 0 .4rem" }, el("span", { class: "mono" }, value.name || "(unnamed)"), el("div", { class: "soft" }, `${shapeText(value)}${told}`),
      nodes.slice(0, 8).map((index) => el("div", { class: "item" }, el("span", {}, readers ? "→" : "←"), el("button", { class: "link", onclick: () => reveal(index) }, `${graph.nodes[index].op} ${clip(graph.nodes[index].name, 44)}`))),
      nodes.length > 8 ? el("div", { class: "soft" }, `and ${nodes.length - 8} more`) : null);
  }
  function drawDetail() {
    const now = current(), graph = now.graph;
    if (state.node === null) {
      const group = state.group && findGroup(now.tree, state.group);
      if (group) {
        const counts = new Map();
        group.nodes.forEach((index) => counts.set(graph.nodes[index].op, (counts.get(graph.nodes[index].op) || 0) + 1));
        fill(detail, el("h2", {}, group.path.slice(1)), el("p", {}, plural(group.nodes.length, "node")),
          el("button", { class: "plain", onclick: () => toggle(group.path) }, now.open.has(group.path) ? "Fold" : "Unfold"),
          el("h3", {}, "Operators"), [...counts].sort((one, other) => other[1] - one[1]).map(([op, count]) => el("div", {}, el("i", { class: "dot", style: `background:${paint(op)}` }), `${count} ${op}`)));
        return;
      }
      fill(detail, el("h2", {}, "Nothing is selected"), el("p", { class: "soft" }, "Click a node for its attributes, shapes and provider. Double-click a group, or click it in the outline, to unfold it. Press / to search."));
      return;
    }
    const node = graph.nodes[state.node], makers = new Map();
    graph.nodes.forEach((item, index) => item.outs.forEach((value) => makers.set(value, index)));
    const readers = (value) => graph.nodes.map((item, index) => (item.ins.includes(value) ? index : -1)).filter((index) => index >= 0);
    const leaf = now.leaves.get(state.node), group = leaf.parent && leaf.parent.parent ? leaf.parent : null;
    const facts = [["operator", `${opName(node.op)}, opset ${node.version}`], ["name", node.name]];
    if (node.inside) facts.push(["inside", node.inside]);
    const other = state.side === "after" ? "before" : "after";
    const linked = state.side === "after" ? node.sources || [] : data.after ? data.after.nodes.map((item, index) => ((item.sources || []).includes(state.node) ? index : -1)).filter((index) => index >= 0) : [];
    const rules = rulesOf(state.side, node);
    fill(detail, 
      el("h2", {}, el("i", { class: "dot", style: `background:${paint(node.op)}` }), node.op.split(".").pop()),
      el("dl", {}, facts.map(([key, text]) => [el("dt", {}, key), el("dd", {}, text)])),
      group ? el("p", {}, el("button", { class: "plain", onclick: () => { current().open.delete(group.path); state.node = null; toggleShut(group.path); } }, `Fold ${clip(group.name, 24)}`)) : null,
      node.provider ? [el("h3", {}, "Who runs it"), el("div", {}, el("b", {}, short(node.provider)), ` in ${node.partition}${node.unit ? `, fused as ${node.unit}` : ""}`),
        node.precision ? el("div", {}, `multiplies in ${node.precision}`) : null,
        Object.entries(node.declined || {}).map(([name, why]) => el("div", { class: "soft" }, `${short(name)} declines: ${why}`))] : null,
      rules.length ? [el("h3", {}, state.side === "after" ? "Made by" : "Changed by"), rules.map((name) => el("span", { class: "chip rule", onclick: () => openTab("changes", name) }, name))] : null,
      Object.keys(node.attrs).length ? [el("h3", {}, "Attributes"), el("dl", {}, Object.entries(node.attrs).map(([key, text]) => [el("dt", {}, key), el("dd", { class: "mono" }, text)]))] : null,
      el("h3", {}, "Inputs"), node.ins.map((value) => valueRow(graph, value, makers, null)),
      el("h3", {}, "Outputs"), node.outs.map((value) => valueRow(graph, value, makers, readers(value))),
      linked.length ? [el("h3", {}, other === "before" ? "Stands for, as given" : "Runs as"),
        linked.slice(0, 30).map((index) => el("div", {}, el("button", { class: "link", onclick: () => reveal(index, other) }, `${sides[other].nodes[index].op} ${clip(sides[other].nodes[index].name, 44)}`))),
        linked.length > 30 ? el("div", { class: "soft" }, `and ${linked.length - 30} more`) : null] : null);
  }
  function toggleShut(path) { state.group = path; draw(true); const box = drawn.boxes.find((item) => item.unit && item.unit.path === path); if (box) center(box); drawDetail(); }
  function findGroup(group, path) {
    for (const kid of group.kids) if (kid.node === undefined) { if (kid.path === path) return kid; const found = findGroup(kid, path); if (found) return found; }
    return null;
  }

  /* search */
  function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), graph = current().graph;
    state.hits = words.length ? graph.nodes.map((node, index) => index).filter((index) => {
      const node = graph.nodes[index];
      const text = `${node.op} ${node.name} ${node.outs.map((value) => graph.values[value].name).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    }) : [];
    state.hit = 0;
    state.gone = false;
    showHits();
  }
  function showHits() {
    const graph = current().graph, first = Math.max(0, Math.min(state.hit - 6, state.hits.length - 14));
    const items = state.hits.slice(first, first + 14).map((index, place) => el("li", { role: "option", "aria-selected": String(first + place === state.hit), onmousedown: (event) => { event.preventDefault(); state.hit = first + place; go(); } },
      el("i", { class: "dot", style: `background:${paint(graph.nodes[index].op)}` }), el("b", {}, graph.nodes[index].op.split(".").pop()), el("span", {}, graph.nodes[index].name)));
    if (input.value.trim()) items.push(el("li", { class: "soft", "aria-disabled": "true" }, state.hits.length ? `${state.hit + 1} of ${state.hits.length}` : "no node has this in its name, operator or values"));
    fill(hits, ...items);
  }
  function go() { if (state.hits.length) { reveal(state.hits[state.hit]); showHits(); } }
  input.addEventListener("input", search);
  input.addEventListener("focus", () => { if (input.value) showHits(); });
  input.addEventListener("blur", () => fill(hits));
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && state.hits.length) { state.hit = (state.hit + step + state.hits.length) % state.hits.length; state.gone = false; showHits(); event.preventDefault(); }
    if (event.key === "Enter") { if (state.gone && state.hits.length) state.hit = (state.hit + (event.shiftKey ? state.hits.length - 1 : 1)) % state.hits.length; go(); state.gone = true; }
    if (event.key === "Escape") { input.value = ""; fill(hits); picture.focus(); }
  });

  /* moving about */
  picture.addEventListener("wheel", (event) => { event.preventDefault(); const box = picture.getBoundingClientRect(); zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top); }, { passive: false });
  let drag = null;
  picture.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, view: { ...state.view }, moved: false }; });
  addEventListener("pointermove", (event) => {
    if (!drag) return;
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    picture.classList.add("drag");
    state.view = { ...drag.view, x: drag.view.x + dx, y: drag.view.y + dy };
    apply();
  });
  addEventListener("pointerup", () => { drag = null; picture.classList.remove("drag"); });
  picture.addEventListener("keydown", (event) => {
    const box = picture.getBoundingClientRect(), far = 80;
    const moves = { ArrowUp: [0, far], ArrowDown: [0, -far], ArrowLeft: [far, 0], ArrowRight: [-far, 0] };
    if (moves[event.key]) { state.view.x += moves[event.key][0]; state.view.y += moves[event.key][1]; apply(); event.preventDefault(); }
    if (event.key === "+" || event.key === "=") zoom(1.25, box.width / 2, box.height / 2);
    if (event.key === "-") zoom(0.8, box.width / 2, box.height / 2);
    if (event.key === "0") fit();
    if (event.key === "Enter" && state.group) toggle(state.group);
  });
  function show(side) { state.side = side; state.node = null; state.group = null; draw(false); }
  let begun = false;
  return { open: () => { if (!begun) { begun = true; draw(false); } else apply(); }, focusSearch: () => { input.focus(); input.select(); }, reveal, resize: () => { if (begun) apply(); } };
}
