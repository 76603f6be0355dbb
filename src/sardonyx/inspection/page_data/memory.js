/* Who lies where in the arena, step by step. */
function memoryTab(host) {
  const pad = el("div", { class: "pad" });
  host.append(pad);
  const memory = data.memory;
  if (!memory) {
    more(pad, el("p", {}, "There is no memory plan: it needs a run of the model on inputs."), data.notes.map((note) => el("div", { class: "note" }, note)));
    return { open() {} };
  }
  const blocks = memory.blocks, steps = memory.steps.length;
  const own = blocks.filter((block) => block.kind === "own"), arena = blocks.filter((block) => block.kind === "arena");
  let top = memory.arena_bytes;
  const ends = [];
  for (const block of own) { /* memory of its own is drawn above the arena, stacked where it fits */
    let lane = ends.findIndex((end) => end.last < block.first && end.bytes >= block.bytes);
    if (lane < 0) { lane = ends.length; ends.push({ at: top, bytes: block.bytes, last: -1 }); top += block.bytes; }
    block.at = ends[lane].at;
    ends[lane].last = block.last;
  }
  const live = new Array(steps).fill(0);
  for (const block of blocks) for (let step = block.first; step <= Math.min(block.last, steps - 1); step++) live[step] += block.bytes;
  const peak = live.reduce((best, value, step) => (value > live[best] ? step : best), 0);
  const width = 1100, height = 440, left = 74, bottom = 34, plotW = width - left - 14, plotH = height - bottom - 16;
  const x = (step) => left + (plotW * step) / Math.max(1, steps), y = (at) => 16 + plotH - (plotH * at) / Math.max(1, top);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Memory over the steps of a run" });
  const unit = 2 ** Math.max(0, Math.round(Math.log2(Math.max(1, top) / 5)));
  for (let at = 0; at <= top; at += unit) {
    chart.append(svg("line", { class: "grid", x1: left, x2: width - 14, y1: y(at), y2: y(at) }), svg("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, bytes(at)));
  }
  const stride = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000].find((each) => steps / each <= 10) || Math.ceil(steps / 10);
  for (let step = 0; step <= steps; step += stride) {
    chart.append(svg("text", { x: x(step), y: height - 14, "text-anchor": "middle" }, String(step)));
  }
  chart.append(svg("text", { x: width - 14, y: height - 2, "text-anchor": "end" }, "step of the run"));
  const hue = (name) => { let sum = 7; for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 360; return sum; };
  const told = el("p", { class: "soft", "aria-live": "polite" }, "Click a block for its name, its size and the steps that it lives for.");
  let chosen = null;
  for (const block of blocks) {
    const at = block.kind === "own" ? block.at : block.offset;
    const rect = svg("rect", { class: "block", x: x(block.first), width: Math.max(1, x(block.last + 1) - x(block.first)), y: y(at + block.bytes), height: Math.max(1, y(at) - y(at + block.bytes)),
      style: `fill:hsl(${hue(block.name)} ${block.kind === "own" ? "12%" : "42%"} 58%)` });
    const lines = [block.name, `${bytes(block.bytes)}${block.kind === "own" ? ", memory of its own" : ` at offset ${block.offset.toLocaleString("en")}`}`, `steps ${block.first} to ${block.last}`];
    rect.addEventListener("mousemove", (event) => showTip(event, ...lines));
    rect.addEventListener("mouseleave", hideTip);
    rect.addEventListener("click", () => {
      if (chosen) chosen.classList.remove("on");
      chosen = rect;
      rect.classList.add("on");
      told.textContent = `${lines.join(" · ")}: from “${memory.steps[block.first] || ""}” to “${memory.steps[Math.min(block.last, steps - 1)] || ""}”`;
    });
    chart.append(rect);
  }
  if (memory.arena_bytes && memory.arena_bytes < top) chart.append(svg("line", { class: "roof", x1: left, x2: width - 14, y1: y(memory.arena_bytes), y2: y(memory.arena_bytes) }), svg("text", { x: left + 6, y: y(memory.arena_bytes) - 4 }, "the arena below, memory of its own above"));
  const sum = arena.reduce((total, block) => total + block.bytes, 0);
  more(pad, el("h2", {}, "Memory of one run"),
    el("div", { class: "cards" },
      el("div", { class: "card" }, el("b", {}, bytes(memory.arena_bytes)), el("span", {}, "arena")),
      el("div", { class: "card" }, el("b", {}, bytes(sum)), el("span", {}, `${plural(arena.length, "tensor")} that share it`)),
      el("div", { class: "card" }, el("b", {}, bytes(live[peak] || 0)), el("span", {}, `alive at most, at step ${peak}`)),
      el("div", { class: "card" }, el("b", {}, bytes(own.reduce((total, block) => total + block.bytes, 0))), el("span", {}, `${plural(own.length, "tensor")} with memory of their own`)),
      el("div", { class: "card" }, el("b", {}, bytes(data.about.weight_bytes || 0)), el("span", {}, "weights, in the file"))),
    el("p", { class: "soft" }, "For inputs of the shapes ", Object.entries(memory.sizes || {}).slice(0, 6).map(([name, shape]) => `${name} [${shape.join(", ")}]`).join(", "), ". Each block is a tensor: from left to right the steps for which it is needed, from bottom to top its place."),
    chart, told, el("h2", {}, "Memory of a session"),
    el("p", { class: "soft" }, "What a session of this model keeps between runs: its arenas as large as this run needs, its weights as they are or packed as kernels read them."),
    sortedTable([
      ["kept", (row) => row[0], (row) => row[0], "wrap"],
      ["size", (row) => bytes(row[1]), (row) => row[1], "n"],
    ], memory.report || [], 20),
    el("h2", {}, "The largest"),
    sortedTable([
      ["tensor", (block) => block.name, (block) => block.name, "wrap"],
      ["size", (block) => bytes(block.bytes), (block) => block.bytes, "n"],
      ["where", (block) => (block.kind === "own" ? "own memory" : `offset ${block.offset.toLocaleString("en")}`), (block) => block.offset, "n"],
      ["steps", (block) => `${block.first}–${block.last}`, (block) => block.last - block.first, "n"],
      ["made by", (block) => memory.steps[block.first] || "", null, "wrap"],
    ], [...blocks].sort((one, other) => other.bytes - one.bytes), 60));
  return { open() {} };
}
