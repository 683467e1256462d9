// Stage 3: what the last position got in every block: the length of its vector, and where its heads looked.

const LINES = [
  ["residual_norms", "residual stream", "kept"],
  ["attn_out_norms", "attention adds", "other"],
  ["mlp_out_norms", "feed-forward adds", "right"],
];

function forwardStage(recording, go) {
  const said = h("p");
  const chart = normChart(recording);
  const atlas = attentionAtlas(recording, go);
  const looked = h("div");
  const block = slider("block", recording.layers, (layer) => go({ layer }));
  const head = slider("head", recording.heads, (chosen) => go({ head: chosen }));
  return {
    name: "forward pass",
    title: "Forward pass: a vector through all blocks",
    panel: [
      said,
      h("div", { class: "pickers" }, block.element, head.element),
      h("div", { class: "columns wide-left" }, h("div", {}, chart.element, atlas.element), looked),
    ],
    async show(state, isCurrent) {
      const ids = recording.read(state.step);
      said.textContent =
        `The last position, ${chipName(recording, ids[ids.length - 1])}, passes ${recording.layers} blocks. In each, ` +
        `${recording.heads} attention heads fetch from earlier positions, then a feed-forward network works on the result.`;
      chart.show(state);
      const levels = await recording.attention(state.step);
      if (!isCurrent()) return;
      const seen = { ids, levels, weight: (layer, headIndex, position) => {
        return levels[(layer * recording.heads + headIndex) * ids.length + position] / 255;
      } };
      const picked = pickedHead(recording, state, seen);
      block.show(picked.layer);
      head.show(picked.head);
      chart.mark(state, picked.layer);
      atlas.show(picked, seen);
      looked.replaceChildren(...lookedAt(recording, picked, seen, go));
      reveal(looked.querySelector(".looked"), looked.querySelector("[aria-checked=true]"));
    },
  };
}

// What the reader has picked; before that, the head that looks hardest at one token other than the first and itself.
function pickedHead(recording, state, { ids, weight }) {
  let { layer, head } = state;
  if (head === null) {
    const layers = layer === null ? [...Array(recording.layers).keys()] : [layer];
    const between = [...ids.keys()].slice(1, -1);
    let most = -1;
    for (const l of layers) {
      for (let k = 0; k < recording.heads; k++) {
        const best = Math.max(0, ...between.map((position) => weight(l, k, position)));
        if (best > most) [most, layer, head] = [best, l, k];
      }
    }
  }
  const row = ids.map((_, position) => weight(layer, head, position));
  const favourite = row.indexOf(Math.max(...row));
  return { layer, head, row, source: Math.min(state.source ?? favourite, ids.length - 1) };
}

function slider(name, length, choose) {
  const input = h("input", { type: "range", min: 0, max: length - 1, step: 1, id: `pick-${name}` });
  const output = h("output", { for: input.id });
  input.addEventListener("input", () => choose(Number(input.value)));
  return {
    element: h("div", { class: "picker" }, h("label", { for: input.id }, name, " ", output), input),
    show(value) {
      input.value = value;
      output.textContent = value;
    },
  };
}

// Three lines over the blocks on one logarithmic scale. The numbers of the block that is picked stand in the legend.
function normChart(recording) {
  const { layers } = recording;
  const drawing = svg("svg", { viewBox: `0 0 ${layers} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const band = h("span", { class: "band" });
  const ticks = h("div", { class: "ticks", "aria-hidden": "true" });
  const legend = h("ul", { class: "lines" });
  return {
    element: h(
      "figure",
      { class: "norms" },
      h("h3", {}, "How long the vector is, block by block"),
      legend,
      h("div", { class: "over-blocks" }, ticks, h("div", { class: "plot" }, band, drawing)),
    ),
    show(state) {
      const step = recording.steps[state.step];
      const all = LINES.flatMap(([key]) => step[key]).filter((norm) => norm > 0);
      const [low, high] = [Math.log10(Math.min(...all)), Math.log10(Math.max(...all))];
      const y = (norm) => 96 - (92 * (Math.log10(Math.max(norm, 10 ** low)) - low)) / (high - low || 1);
      const powers = [-2, -1, 0, 1, 2, 3, 4, 5].filter((power) => power >= low && power <= high);
      const grid = powers.map((power) => svg("line", { class: "grid", x1: 0, x2: layers, y1: y(10 ** power), y2: y(10 ** power) }));
      const lines = LINES.map(([key, , colour]) => {
        const start = step[key].length - layers;
        const points = step[key].map((norm, index) => `${index < start ? 0 : index - start + 0.5},${y(norm)}`);
        return svg("polyline", { class: `line ${colour}`, points: points.join(" ") });
      });
      drawing.replaceChildren(...grid, ...lines.reverse());
      ticks.replaceChildren(...powers.map((power) => h("span", { "--top": `${y(10 ** power)}%` }, count(10 ** power))));
    },
    mark(state, layer) {
      const step = recording.steps[state.step];
      place(band, layer, layers);
      legend.replaceChildren(
        ...LINES.map(([key, name, colour]) => {
          const norm = step[key][layer + step[key].length - layers];
          return h("li", { class: colour }, `${name} `, h("b", {}, length(norm)));
        }),
      );
    },
  };
}

function place(band, layer, layers) {
  band.style.setProperty("--left", `${(100 * layer) / layers}%`);
  band.style.setProperty("--width", `${100 / layers}%`);
}

// A cell a head: how much it looks at one token. Arrow keys walk over blocks and heads.
function attentionAtlas(recording, go) {
  const { layers, heads } = recording;
  const title = h("h3");
  const cells = Array.from({ length: heads }, (_, head) =>
    Array.from({ length: layers }, (_, layer) => {
      return h("button", { type: "button", class: "cell", role: "gridcell", tabindex: -1, onclick: () => go({ layer, head }) });
    }),
  );
  const perGroup = heads / recording.config.num_key_value_heads;
  const rows = cells.map((row, head) => {
    return h("div", { role: "row", class: head % perGroup === 0 ? "row group" : "row" }, row);
  });
  const names = cells.map((_, head) => h("span", {}, String(head)));
  const grid = h("div", { class: "atlas", role: "grid", "--columns": layers }, rows);
  grid.addEventListener("keydown", (event) => walk(event, cells, go));
  const marks = Array.from({ length: layers }, (_, layer) => h("span", {}, layer % 5 === 0 ? String(layer) : ""));
  return {
    element: h(
      "figure",
      { class: "heads" },
      title,
      h("div", { class: "over-blocks" }, h("div", { class: "names", "aria-hidden": "true" }, names), grid),
      h("div", { class: "over-blocks" }, h("span"), h("div", { class: "axis", "aria-hidden": "true", "--columns": layers }, marks)),
      h("p", { class: "legend" }, "across: blocks; down: heads, those that share keys and values together. ", scale()),
    ),
    show({ layer, head, source }, { ids, weight }) {
      title.textContent = `Which heads look at ${chipName(recording, ids[source])} (position ${source})`;
      grid.setAttribute("aria-label", title.textContent);
      cells.forEach((row, headIndex) => {
        row.forEach((cell, layerIndex) => {
          const share = weight(layerIndex, headIndex, source);
          const picked = layerIndex === layer && headIndex === head;
          cell.style.setProperty("--tint", tint(share));
          cell.setAttribute("aria-label", `block ${layerIndex}, head ${headIndex}: ${share.toFixed(2)}`);
          cell.setAttribute("aria-selected", String(picked));
          cell.tabIndex = picked ? 0 : -1;
        });
      });
    },
  };
}

function walk(event, cells, go) {
  const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const move = moves[event.key];
  if (!move || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const head = cells.findIndex((row) => row.includes(event.target));
  const layer = cells[head].indexOf(event.target);
  const target = cells[head + move[0]]?.[layer + move[1]];
  if (!target) return;
  go({ head: head + move[0], layer: layer + move[1] });
  target.focus();
}

function scale() {
  const steps = [0.01, 0.1, 0.3, 1].map((share) => {
    return h("span", { class: "swatch" }, h("i", { "--tint": tint(share) }), String(share));
  });
  return h("span", { class: "scale" }, "attention: ", steps);
}

// The same head the other way round: how much it looks at each token.
function lookedAt(recording, { layer, head, row, source }, { ids }, go) {
  const buttons = ids.map((id, position) => {
    const label = `${recording.spell(id)}, position ${position}: ${row[position].toFixed(2)}`;
    return h(
      "button",
      { type: "button", role: "radio", class: "seen", "aria-label": label, "--tint": tint(row[position]) },
      chip(recording, id),
      h("span", { class: "note" }, row[position] < 0.005 ? "" : row[position].toFixed(2)),
    );
  });
  oneOf(buttons, "aria-checked", (position) => {
    go({ layer, head, source: position });
    document.querySelector(".looked [aria-checked=true]")?.focus();
  })(source);
  return [
    h("h3", {}, `Where block ${layer}, head ${head} looks`),
    h("div", { class: "looked", role: "radiogroup", "aria-label": "Token whose readers the map shows" }, buttons),
    h("p", { class: "legend" }, sentence(recording, head, row, ids)),
  ];
}

function sentence(recording, head, row, ids) {
  const order = row.map((share, position) => ({ share, position })).sort((a, b) => b.share - a.share);
  const most = order.slice(0, 3).filter(({ share }) => share >= 0.01);
  const named = most.map(({ share, position }) => `${recording.spell(ids[position])} ${share.toFixed(2)}`);
  const perGroup = recording.heads / recording.config.num_key_value_heads;
  const first = head - (head % perGroup);
  const shares = perGroup > 1 ? ` Heads ${first} to ${first + perGroup - 1} share keys and values.` : "";
  return `Most of its attention: ${named.join(", ")}.${shares} Pick a token, and the map shows which heads look at it.`;
}
