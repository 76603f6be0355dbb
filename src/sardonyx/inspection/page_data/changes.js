/* Before and after optimization side by side, with the rules that fired. */
const changeIndex = (() => {
  const removed = new Map(), added = new Map();
  const note = (map, label, name) => { const key = `${label.operator} ${label.name}`; if (!map.has(key)) map.set(key, new Set()); map.get(key).add(name); };
  for (const change of data.changes) {
    if (change.removed.length + change.added.length > 400) continue;
    for (const label of change.removed) note(removed, label, change.optimization);
    for (const label of change.added) note(added, label, change.optimization);
  }
  return { removed, added };
})();
function rulesOf(side, node) {
  const found = (side === "after" ? changeIndex.added : changeIndex.removed).get(`${node.op} ${node.name}`);
  return found ? [...found] : [];
}
function changesTab(host) {
  const pad = el("div", { class: "pad" });
  host.append(pad);
  if (!data.after) { more(pad, el("p", {}, "Nothing was optimized: no session can be made of this model.")); return { open() {} }; }
  const before = data.before.nodes, after = data.after.nodes;
  const used = new Set();
  const rows = after.map((node, index) => {
    const sources = node.sources || [];
    sources.forEach((item) => used.add(item));
    const same = sources.length === 1 && before[sources[0]].op === node.op && before[sources[0]].name === node.name;
    const rules = new Set(rulesOf("after", node));
    if (!same) for (const item of sources) for (const name of rulesOf("before", before[item])) rules.add(name);
    return { sources, after: index, rules: same ? [] : [...rules], changed: !same, at: sources.length ? sources[sources.length - 1] : -1 };
  });
  before.forEach((node, index) => { if (!used.has(index)) rows.push({ sources: [index], after: null, rules: rulesOf("before", node), changed: true, at: index }); });
  let last = -1;
  for (const row of rows) { if (row.after !== null) { row.order = Math.max(last, row.at); last = row.order; } else row.order = row.at; }
  rows.sort((one, other) => one.order - other.order || (one.after === null ? -1 : 1));

  const filter = el("input", { type: "search", placeholder: "Filter by name, operator or rule", "aria-label": "Filter changes", value: "" });
  const all = el("button", { class: "plain", "aria-pressed": "false", onclick: () => { all.setAttribute("aria-pressed", String(all.getAttribute("aria-pressed") === "false")); refill(); } }, "Unchanged too");
  const grid = el("div", { class: "pairs" });
  const count = el("p", { class: "soft" });
  let rule = "";
  const chips = data.rules.map((item) => el("button", { class: "plain", "data-rule": item.name, "aria-pressed": "false", title: item.kind, onclick: () => choose(rule === item.name ? "" : item.name) }, `${item.name} ${item.count}`));
  function choose(name) { rule = name; for (const chip of chips) chip.setAttribute("aria-pressed", String(chip.dataset.rule === rule)); refill(); }
  const item = (side, node, index) => el("div", { class: "item" }, el("i", { class: "dot", style: `background:${paint(node.op)}` }), el("b", {}, node.op.split(".").pop()), el("button", { class: "link", onclick: () => openNode(side, index) }, el("small", {}, node.name)));
  function refill() {
    const text = filter.value.toLowerCase(), every = all.getAttribute("aria-pressed") === "true";
    const kept = rows.filter((row) => {
      if (!every && !row.changed) return false;
      if (rule && !row.rules.includes(rule)) return false;
      const words = [...row.sources.map((index) => before[index]), ...(row.after === null ? [] : [after[row.after]])].map((node) => `${node.op} ${node.name}`).join(" ") + row.rules.join(" ");
      return !text || words.toLowerCase().includes(text);
    });
    const shown = kept.slice(0, 600);
    fill(grid, el("div", { class: "head" }, `As given, ${plural(before.length, "node")}`), el("div", { class: "head" }, ""), el("div", { class: "head" }, `As it runs, ${plural(after.length, "node")}`),
      ...shown.flatMap((row) => [
        el("div", {}, row.sources.slice(0, 12).map((index) => item("before", before[index], index)), row.sources.length > 12 ? el("div", { class: "soft" }, `and ${row.sources.length - 12} more`) : null, row.sources.length ? null : el("span", { class: "gone" }, "new")),
        el("div", { class: "mid" }, row.rules.slice(0, 6).map((name) => el("span", { class: "chip rule", onclick: () => choose(name) }, name)), row.changed ? null : "="),
        el("div", {}, row.after === null ? el("span", { class: "gone" }, "computed in advance, or not needed") : item("after", after[row.after], row.after)),
      ]));
    count.textContent = `${plural(kept.length, "row")}${kept.length > shown.length ? `, the first ${shown.length} shown` : ""}${rule ? ` of ${rule}` : ""}`;
  }
  filter.addEventListener("input", refill);
  more(pad, el("h2", {}, "Rules and passes that changed something"), el("div", { class: "flow" }, chips.length ? chips : el("span", { class: "soft" }, "none")),
    el("h2", {}, "Side by side"), el("div", { class: "flow" }, el("div", { class: "find" }, filter), all), count, grid);
  refill();
  return { open(name) { if (name) choose(name); } };
}
