"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

/* elements: text of the model goes in as text nodes only, never as markup */
function el(tag, props, ...kids) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  for (const kid of kids.flat(9)) if (kid !== null && kid !== undefined && kid !== "") node.append(kid);
  return node;
}
function svg(tag, props, ...kids) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const kid of kids.flat(9)) if (kid !== null && kid !== undefined) node.append(kid);
  return node;
}
/* append, and put in the place of what is there: kids may be lists and may be missing */
const flat = (kids) => kids.flat(9).filter((kid) => kid !== null && kid !== undefined && kid !== "" && kid !== false);
const more = (host, ...kids) => host.append(...flat(kids));
const fill = (host, ...kids) => host.replaceChildren(...flat(kids));
const clip = (text, count) => (text.length > count ? text.slice(0, Math.ceil(count / 2)) + "…" + text.slice(text.length - Math.floor(count / 2) + 1) : text);
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  while (count >= 1024 && index < units.length - 1) { count /= 1024; index++; }
  return `${index && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[index]}`;
}
function quantity(count) {
  if (count === null || count === undefined) return "";
  const units = ["", "k", "M", "G", "T"];
  let index = 0;
  while (Math.abs(count) >= 1000 && index < units.length - 1) { count /= 1000; index++; }
  return `${count >= 100 || (count === Math.round(count) && !index) ? Math.round(count) : count.toPrecision(3)}${units[index]}`;
}
const micros = (us) => (us >= 1e6 ? `${(us / 1e6).toPrecision(4)} s` : us >= 1000 ? `${(us / 1000).toPrecision(4)} ms` : `${us.toPrecision(3)} µs`);
const shapeText = (value) => (value ? `${value.type}${value.shape === null ? "" : `[${value.shape.join(", ")}]`}` : "");
const opName = (op) => (op.startsWith("sardonyx.nhwc.") ? `${op.slice(14)} (NHWC)` : op);
const short = (provider) => (provider || "").replace(/ExecutionProvider$/, "");

const FAMILIES = [
  ["matmul", "products and convolutions", /MatMul|Gemm|Conv|Einsum|Attention|LSTM|GRU|^RNN/],
  ["quantize", "quantization", /Quantize|QLinear|QGemm|QAttention/],
  ["norm", "normalization, reductions, pooling", /Norm|Softmax|Reduce|Pool|ArgM|TopK|CumSum|Sum$|LpN|LRN/],
  ["activation", "activations", /Relu|Elu|Selu|Gelu|Sigmoid|Tanh|Swish|Silu|Mish|Softplus|Softsign|Clip|Erf|HardS|Celu/],
  ["movement", "movement of elements", /Reshape|Transpose|Concat|Split|Slice|Gather|Scatter|queeze|Flatten|Expand|Tile|Pad|Resize|Shape|Size|Identity|Cast|Constant|Range|Where|NonZero|DepthTo|SpaceTo|Compress|Reorder|Upsample/],
  ["control", "control flow, sequences, trees", /^If$|^Loop$|^Scan$|Sequence|Optional|Function|TreeEnsemble|ZipMap|SVM|Linear(C|R)|Normalizer|Imputer|Scaler/],
  ["elementwise", "element-wise", /^(Add|Sub|Mul|Div|Pow|Sqrt|Exp|Log|Neg|Abs|Min|Max|Mean|Mod|Equal|Greater|Less|And|Or|Not|Xor|Sin|Cos|Floor|Ceil|Round|Sign|Reciprocal|Is|Bit|Tan|A(cos|sin|tan)|fused|Fused)/],
];
const familyOf = (op) => { const plain = op.split(".").pop(); const found = FAMILIES.find((item) => item[2].test(plain)); return found ? found[0] : "other"; };
const paint = (op) => `var(--${familyOf(op)})`;

const tip = el("div", { class: "tip", role: "tooltip" });
function showTip(event, ...lines) {
  tip.replaceChildren(...lines.filter(Boolean).map((line) => el("div", {}, line)));
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8))}px`;
}
const hideTip = () => { tip.style.display = "none"; };

/* a table that sorts by a click on a column's head; columns: [title, cell(row), sort key(row) or null, class] */
function sortedTable(columns, rows, most = 500) {
  const body = el("tbody");
  let by = -1, down = true;
  const heads = columns.map(([title, , key, kind], index) =>
    el("th", { class: `${kind || ""} ${key ? "sortable" : ""}`, tabindex: key ? 0 : null, onclick: key && (() => sort(index)), onkeydown: key && ((e) => { if (e.key === "Enter") sort(index); }) }, title));
  function fill() {
    const shown = rows.slice(0, most).map((row) => el("tr", {}, columns.map(([, cell, , kind]) => el("td", { class: kind || "" }, cell(row)))));
    body.replaceChildren(...shown);
    if (rows.length > most) body.append(el("tr", {}, el("td", { colspan: columns.length, class: "soft" }, `and ${plural(rows.length - most, "row")} more`)));
  }
  function sort(index) {
    down = by === index ? !down : true;
    by = index;
    const key = columns[index][2];
    rows = [...rows].sort((one, other) => { const a = key(one), b = key(other); return (a < b ? 1 : a > b ? -1 : 0) * (down ? 1 : -1); });
    fill();
  }
  fill();
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads)), body));
}
function bars(pairs, color) {
  const most = Math.max(1, ...pairs.map((pair) => pair[1]));
  return el("div", {}, pairs.map(([name, count]) =>
    el("div", { class: "bar" }, el("span", { title: name }, name), el("i", { style: `width:${(100 * count) / most}%;background:${color(name)}` }), el("em", {}, count.toLocaleString("en")))));
}
