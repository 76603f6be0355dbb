/* A profile: the timeline of a run, its steps, and how near they are to what the machine can do. */
function profileTab(host) {
  const pad = el("div", { class: "pad" });
  host.append(pad);
  const profile = data.profile;
  if (!profile) {
    more(pad, el("p", {}, "No profile was given. A session with ", el("code", {}, "enable_profiling"), " writes one, and ", el("code", {}, "sardonyx inspect MODEL --html OUT.html --profile FILE"), " shows it here."));
    return { open() {} };
  }
  const nodes = profile.events.filter((event) => event.cat === "Node"), shown = profile.events;
  const steps = nodes.length ? nodes : shown.filter((event) => event.op);
  const total = profile.run_us || Math.max(1, ...shown.map((event) => event.ts + event.dur));
  const sum = steps.reduce((so, event) => so + event.dur, 0);
  more(pad, el("h2", {}, `One run of ${profile.file}`),
    el("div", { class: "cards" },
      el("div", { class: "card" }, el("b", {}, micros(total)), el("span", {}, profile.run_us ? profile.runs > 1 ? `the median of ${plural(profile.runs, "run")}` : "the only run" : "all that was recorded")),
      el("div", { class: "card" }, el("b", {}, micros(sum)), el("span", {}, `in ${plural(steps.length, "step")}`)),
      el("div", { class: "card" }, el("b", {}, `${((100 * sum) / total).toFixed(1)} %`), el("span", {}, "of the run is in steps"))));
  if (profile.left_out) more(pad, el("p", { class: "soft" }, `${plural(profile.left_out, "event")} more are not shown.`));

  /* timeline */
  const lanes = new Map();
  for (const event of shown) { /* events that lie in one another, of one thread, are drawn below it */
    const open = (lanes.get(event.tid) || lanes.set(event.tid, []).get(event.tid));
    let depth = 0;
    while (open[depth] !== undefined && open[depth] > event.ts + 0.5) depth++;
    open[depth] = event.ts + event.dur;
    open.length = depth + 1;
    event.depth = depth;
  }
  const depths = new Map();
  for (const event of shown) depths.set(event.tid, Math.max(depths.get(event.tid) || 0, event.depth + 1));
  const tops = new Map();
  let height = 24;
  for (const [tid, count] of depths) { tops.set(tid, height); height += count * 24 + 12; }
  height = Math.max(height + 20, 90);
  const width = 1100, left = 10, view = { from: 0, to: total };
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, tabindex: "0", role: "img", "aria-label": "Timeline; wheel to zoom, drag to move, 0 for all" });
  const x = (us) => left + ((width - 2 * left) * (us - view.from)) / (view.to - view.from);
  function drawTimeline() {
    const kids = [];
    for (let line = 0; line <= 8; line++) {
      const at = view.from + ((view.to - view.from) * line) / 8;
      kids.push(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: 18, y2: height - 4 }), svg("text", { x: x(at), y: 13, "text-anchor": line === 8 ? "end" : line === 0 ? "start" : "middle" }, micros(Math.max(0, at))));
    }
    for (const event of shown) {
      if (event.ts + event.dur < view.from || event.ts > view.to) continue;
      const a = Math.max(x(event.ts), left), b = Math.min(x(event.ts + event.dur), width - left), y = tops.get(event.tid) + event.depth * 24;
      const rect = svg("rect", { class: "block", x: a, y, width: Math.max(0.8, b - a), height: 21, rx: 2, style: `fill:${event.op && steps.length && event.cat !== "Partition" ? paint(event.op.split(",")[0]) : "var(--edge)"}` });
      rect.addEventListener("mousemove", (mouse) => showTip(mouse, event.name, `${event.fused || event.op || event.cat} ${micros(event.dur)}`, event.provider, event.kernel, event.flops && event.dur ? `${quantity(event.flops / (event.dur / 1e6))}FLOP/s` : null));
      rect.addEventListener("mouseleave", hideTip);
      kids.push(rect);
      if (b - a > 46) kids.push(svg("text", { x: a + 5, y: y + 14.5, style: `fill:${event.op && event.cat !== "Partition" ? "var(--card)" : "var(--ink)"};pointer-events:none;font-weight:600` }, clip((event.fused || event.op || event.name).replace(/com\.microsoft\./g, ""), Math.floor((b - a) / 7))));
    }
    chart.replaceChildren(...kids);
  }
  const zoom = (factor, at) => { view.from = at - (at - view.from) * factor; view.to = at + (view.to - at) * factor; if (view.to - view.from > total * 1.05) { view.from = 0; view.to = total; } drawTimeline(); };
  const timeAt = (event) => { const box = chart.getBoundingClientRect(); return view.from + ((((event.clientX - box.left) * width) / box.width - left) / (width - 2 * left)) * (view.to - view.from); };
  chart.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(event.deltaY * 0.0018), timeAt(event)); }, { passive: false });
  let drag = null;
  chart.addEventListener("pointerdown", (event) => { drag = { at: timeAt(event) }; });
  addEventListener("pointermove", (event) => { if (drag) { const shift = drag.at - timeAt(event); view.from += shift; view.to += shift; drawTimeline(); } });
  addEventListener("pointerup", () => { drag = null; });
  chart.addEventListener("keydown", (event) => {
    const span = view.to - view.from, shift = { ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key];
    if (shift) { view.from += shift * span; view.to += shift * span; drawTimeline(); event.preventDefault(); }
    if (event.key === "+" || event.key === "=") zoom(0.7, view.from + span / 2);
    if (event.key === "-") zoom(1.4, view.from + span / 2);
    if (event.key === "0") { view.from = 0; view.to = total; drawTimeline(); }
  });
  drawTimeline();
  more(pad, el("h2", {}, "Timeline"), el("p", { class: "soft" }, "Wheel or + and − zoom, drag or arrows move, 0 shows all."), chart);

  /* roofline */
  const known = steps.filter((event) => event.flops && event.bytes && event.dur > 0);
  if (known.length) more(pad, el("h2", {}, "Roofline"), roofline(known, profile.roof));
  else more(pad, el("h2", {}, "Roofline"), el("p", { class: "soft" }, "No step of this profile has both a number of floating-point operations and one of bytes, so that there is no roofline."));

  /* tables */
  const byOp = new Map();
  for (const event of steps) { const key = event.fused || event.op || event.name; const row = byOp.get(key) || { name: key, count: 0, us: 0, flops: 0 }; row.count++; row.us += event.dur; row.flops += event.flops || 0; byOp.set(key, row); }
  const share = (row) => `${((100 * row.us) / sum).toFixed(1)} %`, rate = (flops, us) => (flops ? quantity(flops / (us / 1e6)) : "");
  more(pad, el("h2", {}, "By operator"), sortedTable([
    ["operator", (row) => row.name, (row) => row.name, "wrap"], ["steps", (row) => row.count, (row) => row.count, "n"], ["time", (row) => micros(row.us), (row) => row.us, "n"], ["share", share, (row) => row.us, "n"], ["FLOP/s", (row) => rate(row.flops, row.us), (row) => row.flops / row.us, "n"],
  ], [...byOp.values()].sort((one, other) => other.us - one.us), 60),
  el("h2", {}, "By step"), sortedTable([
    ["step", (event) => event.name, (event) => event.name, "wrap"], ["operators", (event) => event.fused || event.op || "", (event) => event.op || "", "wrap"], ["provider", (event) => short(event.provider), (event) => event.provider || "", ""],
    ["time", (event) => micros(event.dur), (event) => event.dur, "n"], ["FLOP", (event) => quantity(event.flops), (event) => event.flops || 0, "n"], ["bytes", (event) => (event.bytes ? bytes(event.bytes) : ""), (event) => event.bytes || 0, "n"], ["FLOP/s", (event) => rate(event.flops, event.dur), (event) => (event.flops || 0) / event.dur, "n"],
  ], [...steps].sort((one, other) => other.dur - one.dur), 200));
  return { open() {} };
}
function roofline(events, roof) {
  const width = 1100, height = 420, left = 70, right = 20, top = 16, bottom = 40;
  const points = events.map((event) => ({ event, x: event.flops / event.bytes, y: event.flops / (event.dur / 1e6) })).filter((point) => point.x > 0 && point.y > 0);
  const peak = roof ? roof.flops : Math.max(...points.map((point) => point.y)), band = roof ? roof.bytes : Math.max(...points.map((point) => point.y / point.x));
    const span = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)) + 0.05)];
  const [x0, x1] = span([...points.map((point) => point.x), peak / band]), [y0, y1] = span([...points.map((point) => point.y), peak]);
  const px = (value) => left + ((width - left - right) * (Math.log10(value) - x0)) / Math.max(1, x1 - x0), py = (value) => height - bottom - ((height - top - bottom) * (Math.log10(value) - y0)) / Math.max(1, y1 - y0);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Roofline: operations per second over operations per byte" });
  for (let power = x0; power <= x1; power++) chart.append(svg("line", { class: "grid", x1: px(10 ** power), x2: px(10 ** power), y1: top, y2: height - bottom }), svg("text", { x: px(10 ** power), y: height - bottom + 16, "text-anchor": "middle" }, String(+(10 ** power).toPrecision(1))));
  for (let power = y0; power <= y1; power++) chart.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: py(10 ** power), y2: py(10 ** power) }), svg("text", { x: left - 6, y: py(10 ** power) + 4, "text-anchor": "end" }, quantity(10 ** power)));
  const knee = peak / band, low = 10 ** x0;
  chart.append(svg("path", { class: "roof", d: `M${px(Math.max(low, 10 ** y0 / band))} ${py(Math.max(10 ** y0, low * band))}L${px(knee)} ${py(peak)}L${width - right} ${py(peak)}` }),
    svg("text", { x: left, y: height - 6 }, `line: ${quantity(peak)}FLOP/s, ${quantity(band)}B/s ${roof ? `of this machine, on ${plural(roof.threads, "thread")}, from memory` : "at best in this profile"}`),
    svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, "operations per byte"), svg("text", { x: left + 6, y: top + 12 }, "FLOP/s"));
  const most = Math.max(...points.map((point) => point.event.dur));
  for (const point of points) {
    const dot = svg("circle", { class: "block", cx: px(point.x), cy: py(point.y), r: 3 + 9 * Math.sqrt(point.event.dur / most), style: `fill:${paint((point.event.op || "").split(",")[0])};fill-opacity:.72` });
    dot.addEventListener("mousemove", (mouse) => showTip(mouse, point.event.name, `${point.event.fused || point.event.op} ${micros(point.event.dur)}`, `${quantity(point.y)}FLOP/s, ${point.x.toPrecision(3)} operations per byte`));
    dot.addEventListener("mouseleave", hideTip);
    chart.append(dot);
  }
  return chart;
}
