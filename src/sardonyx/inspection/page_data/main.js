/* The page: tabs, an overview, placements, and keys. */
const tabs = {};
let shownTab = "";
function overviewTab(host) {
  const about = data.about, after = data.after, products = after ? after.nodes.filter((node) => node.precision) : [];
  const parts = after ? new Set(after.nodes.map((node) => node.partition)).size : 0;
  const pad = el("div", { class: "pad" });
  host.append(pad);
  const card = (value, text) => el("div", { class: "card" }, el("b", {}, value), el("span", {}, text));
  const count = (nodes, key) => { const counts = new Map(); nodes.forEach((node) => counts.set(key(node), (counts.get(key(node)) || 0) + 1)); return [...counts].sort((one, other) => other[1] - one[1]); };
  const values = (items) => sortedTable([["name", (row) => row.name, null, "wrap mono"], ["type", (row) => row.type, null, ""], ["shape", (row) => (row.shape ? `[${row.shape.join(", ")}]` : "?"), null, "mono"]], items, 40);
  more(pad, data.notes.map((note) => el("div", { class: "note", role: "alert" }, note)),
    el("div", { class: "cards" }, card(data.before.nodes.length.toLocaleString("en"), "nodes as given"), after ? card(after.nodes.length.toLocaleString("en"), "nodes as it runs") : null,
      card(quantity(about.parameters || 0), "parameters"), (about.attribute_numbers || 0) > (about.parameters || 0) ? card(quantity(about.attribute_numbers), "elements in attributes") : null, card(bytes(about.weight_bytes || 0), "weights"),
      after ? card(String(parts), parts === 1 ? "partition" : "partitions") : null, data.memory ? card(bytes(data.memory.arena_bytes), "arena of one run") : null,
      data.profile ? card(micros(data.profile.run_us || 0), "one run") : null),
    el("h2", {}, "Model"),
    el("div", { class: "scroll" }, el("table", {}, [["file", about.model], ["written by", about.producer || "unknown"], ["IR version", about.ir_version], ["operator sets", Object.entries(about.opset_imports || {}).map(([domain, version]) => `${domain} ${version}`).join(", ")], ...Object.entries(about.metadata || {}).slice(0, 20)]
      .map(([key, text]) => el("tr", {}, el("td", { class: "key" }, key), el("td", { class: "wrap" }, clip(String(text), 400)))))),
    el("div", { class: "two" }, el("div", {}, el("h2", {}, "Inputs"), values(about.inputs || [])), el("div", {}, el("h2", {}, "Outputs"), values(about.outputs || []))),
    el("div", { class: "two" },
      el("div", {}, el("h2", {}, "Operators as given"), bars(count(data.before.nodes, (node) => node.op).slice(0, 24), paint)),
      after ? el("div", {}, el("h2", {}, "Operators as it runs"), bars(count(after.nodes, (node) => opName(node.op)).slice(0, 24), (name) => paint(name.replace(" (NHWC)", ""))), el("h2", {}, "Who runs them"), bars(count(after.nodes, (node) => short(node.provider) || "unknown"), () => "var(--accent)"),
        products.length ? [el("h2", {}, "Precision of products"), bars(count(products, (node) => node.precision), () => "var(--accent)")] : null) : null));
  return { open() {} };
}
const partName = (node) => (node.partition || "").replace(`${node.provider}_`, "");
function placementTab(host) {
  const pad = el("div", { class: "pad" });
  host.append(pad);
  if (!data.after) { more(pad, el("p", {}, "Nothing runs: no session can be made of this model."), data.notes.map((note) => el("div", { class: "note" }, note))); return { open() {} }; }
  const rows = data.after.nodes.map((node, index) => ({ node, index }));
  const why = (node) => Object.entries(node.declined || {}).map(([name, reason]) => `${short(name)}: ${reason}`).join("; ");
  const reasons = new Map();
  for (const { node } of rows) for (const [name, reason] of Object.entries(node.declined || {})) { const key = `${short(name)}: ${reason}`; reasons.set(key, (reasons.get(key) || 0) + 1); }
  const filter = el("input", { type: "search", placeholder: "Filter by node, operator, provider, precision or reason", "aria-label": "Filter placements" });
  const place = el("div");
  const parts = new Map();
  for (const { node } of rows) { const part = parts.get(node.partition) || { short: partName(node) || "?", provider: short(node.provider), nodes: 0 }; part.nodes++; parts.set(node.partition, part); }
  function refill() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = rows.filter(({ node }) => { const text = `${node.name} ${node.op} ${node.provider} ${node.partition} ${node.precision || ""} ${why(node)}`.toLowerCase(); return words.every((word) => text.includes(word)); });
    fill(place, el("p", { class: "soft" }, plural(kept.length, "node")), sortedTable([
      ["node", ({ node, index }) => el("button", { class: "link", onclick: () => openNode("after", index) }, node.name || "(unnamed)"), ({ node }) => node.name, "wrap"],
      ["operator", ({ node }) => [el("i", { class: "dot", style: `background:${paint(node.op)}` }), opName(node.op)], ({ node }) => node.op, ""],
      ["provider", ({ node }) => short(node.provider), ({ node }) => node.provider || "", ""],
      ["partition", ({ node }) => `${partName(node)}${node.unit ? ` (${node.unit})` : ""}`, ({ node }) => node.partition || "", "wrap"],
      ...(rows.some(({ node }) => node.precision) ? [["precision", ({ node }) => node.precision || "", ({ node }) => node.precision || "", "wrap"]] : []),
      ["declined by", ({ node }) => why(node), ({ node }) => why(node), "wrap"]], kept, 400));
  }
  filter.addEventListener("input", refill);
  more(pad, el("h2", {}, "Partitions, in the order in which they run"), sortedTable([["partition", (part) => part.short, (part) => part.short, "wrap"], ["provider", (part) => part.provider, (part) => part.provider, ""], ["nodes", (part) => part.nodes, (part) => part.nodes, "n"]], [...parts.values()], 100),
    reasons.size ? [el("h2", {}, "Why providers declined"), sortedTable([["reason", (row) => row[0], (row) => row[0], "wrap"], ["nodes", (row) => row[1], (row) => row[1], "n"]], [...reasons].sort((one, other) => other[1] - one[1]), 40)] : null,
    el("h2", {}, "Nodes"), el("div", { class: "flow" }, el("div", { class: "find" }, filter)), place);
  refill();
  return { open() {} };
}
const PLAN = [["overview", "Overview", overviewTab], ["graph", "Graph", graphTab], ["changes", "Optimization", changesTab], ["placement", "Placement", placementTab], ["memory", "Memory", memoryTab], ["profile", "Profile", profileTab]];
const buttons = {}, panels = {};
function openTab(key, argument) {
  shownTab = key;
  for (const [name] of PLAN) { buttons[name].setAttribute("aria-selected", String(name === key)); buttons[name].tabIndex = name === key ? 0 : -1; panels[name].classList.toggle("on", name === key); }
  if (!tabs[key]) tabs[key] = PLAN.find((item) => item[0] === key)[2](panels[key]);
  tabs[key].open(argument);
  hideTip();
  if (location.hash !== `#${key}`) history.replaceState(null, "", `#${key}`);
}
function openNode(side, index) { openTab("graph"); tabs.graph.reveal(index, side); }
(function begin() {
  const bar = el("nav", { role: "tablist" });
  const main = el("main");
  for (const [key, title] of PLAN) {
    buttons[key] = el("button", { role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}`, onclick: () => openTab(key) }, title);
    panels[key] = el("section", { class: "tab", role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}` });
    bar.append(buttons[key]);
    main.append(panels[key]);
  }
  const name = data.label.split("/").pop();
  const parts = [plural(data.before.nodes.length, "node"), data.after ? `${data.after.nodes.length.toLocaleString("en")} as it runs` : "no session", bytes(data.about.weight_bytes || 0)];
  document.getElementById("app").append(el("header", {}, el("h1", { title: data.label }, name), el("span", { class: "sum" }, parts.join(" · ")), bar), main, tip);
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const keys = PLAN.map((item) => item[0]), next = keys[(keys.indexOf(shownTab) + step + keys.length) % keys.length];
    openTab(next);
    buttons[next].focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    openTab("graph");
    tabs.graph.focusSearch();
  });
  addEventListener("resize", () => { if (shownTab === "graph") tabs.graph.resize(); });
  const wanted = location.hash.slice(1);
  openTab(panels[wanted] ? wanted : "overview");
})();
