// Stage 5: what each operator leaves, and the number that draws one of the rest.

const NARROW = 0.02;

function sampleStage(recording, go) {
  const said = h("p");
  const names = recording.steps[0].operators.map((operator) => operator.name);
  const rows = [null, ...names].map((name) => funnelRow(name));
  const showRow = oneOf(rows.map((row) => row.element), "aria-checked", (index) => go({ operator: index }));
  const survivors = h("div");
  const drawn = h("div", { class: "drawn" });
  const funnel = h("div", { class: "funnel", role: "radiogroup", "aria-label": "Operators, in the order in which they act" });
  funnel.append(...rows.map((row) => row.element));
  return {
    name: "sample",
    title: "Sample: from scores to one id",
    panel: [
      said,
      h("div", { class: "columns" }, h("div", {}, h("h3", {}, "What each operator leaves"), funnel), survivors),
      drawn,
    ],
    show(state) {
      const step = recording.steps[state.step];
      const active = step.operators.filter((operator) => operator.top.length);
      said.textContent = active.length
        ? `${count(recording.vocabulary)} tokens could come next; ` +
          `${LIST.format(active.map((one) => operatorName(one.name)))} left ${some(step.n_candidates, "candidate")}.`
        : `No operator is on: all ${count(recording.vocabulary)} tokens stay, with the model’s own probabilities.`;
      rows.forEach((row, index) => row.show(recording, step, index));
      const picked = state.operator ?? lastActive(step);
      showRow(picked);
      survivors.replaceChildren(survivorTable(recording, step, picked));
      drawn.replaceChildren(...draw(recording, step));
    },
  };
}

function lastActive(step) {
  return step.operators.reduce((last, operator, index) => (operator.top.length ? index + 1 : last), 0);
}

// Row 0 stands for the model's own distribution, before any operator.
function funnelRow(name) {
  const title = h("span", { class: "what" });
  const shape = h("span", { class: "shape", "aria-hidden": "true" });
  const left = h("span", { class: "left" });
  const element = h("button", { type: "button", role: "radio", class: "operator" }, title, shape, left);
  return {
    element,
    show(recording, step, index) {
      const operator = name === null ? null : step.operators[index - 1];
      const off = operator !== null && operator.top.length === 0;
      const [before, after] = operator ? [operator.before, operator.after] : [recording.vocabulary, recording.vocabulary];
      const setting = off || !operator ? "" : settingText(recording.params[operator.name]);
      title.replaceChildren(operator ? operatorName(operator.name) : "softmax", " ", h("b", {}, setting));
      element.classList.toggle("off", off);
      shape.style.setProperty("--top", funnelWidth(recording, before));
      shape.style.setProperty("--bottom", funnelWidth(recording, after));
      left.textContent = off ? "off" : leftText(operator, after);
    },
  };
}

// Widths go with the logarithm of the count, so that 50,000 and 5 fit into one picture.
function funnelWidth(recording, tokens) {
  return Math.max(0.03, Math.log(tokens) / Math.log(recording.vocabulary)).toFixed(4);
}

function leftText(operator, after) {
  if (!operator) return some(after, "token");
  if (operator.before === after) return `keeps ${count(after)}`;
  return `keeps ${count(after)}, removes ${(100 * operator.removed_mass).toPrecision(2)}\u00a0%`;
}

function survivorTable(recording, step, picked) {
  const own = step.top_logits.map(([id, logit]) => [id, recording.share(step, logit)]);
  const earlier = step.operators.slice(0, Math.max(picked - 1, 0)).filter((operator) => operator.top.length);
  const before = new Map(earlier.length ? earlier[earlier.length - 1].top : own);
  const operator = picked ? step.operators[picked - 1] : null;
  const isOff = operator !== null && operator.top.length === 0;
  const top = !operator ? own.slice(0, 10) : isOff ? [...before].slice(0, 10) : operator.top;
  const acted = operator !== null && !isOff;
  const rows = top.map(([id, share]) => {
    const was = acted ? before.get(id) : undefined;
    const cells = acted ? [was === undefined ? "" : probability(was), probability(share)] : [probability(share)];
    return { id, share, before: was, cells, kind: id === step.id ? "chosen" : "" };
  });
  if (!operator) return barTable(recording, "The model’s own distribution, before any operator", ["p"], rows);
  const name = operatorName(operator.name);
  if (isOff) return barTable(recording, `${name} is off: what it gets, it passes on`, ["p"], rows);
  return barTable(recording, `After ${name}: the likeliest of the rest; outlined: before it`, ["before", "after"], rows);
}

// The interval from 0 to 1, cut into a bin for each candidate, and the number that fell into one of them.
function draw(recording, step) {
  const title = h("h3", {}, "The draw");
  if (step.u === null) {
    const margin = step.margin === null ? "There is no other candidate." : `It leads by ${step.margin.toFixed(2)} logits.`;
    return [title, h("p", {}, "Temperature 0: nothing is drawn, the largest score wins. ", chip(recording, step.id), ` ${margin}`)];
  }
  const [low, high] = step.bin;
  const parts = [
    title,
    h(
      "p",
      {},
      `The random number ${step.u.toFixed(4)} fell into [${low.toFixed(4)}, ${high.toFixed(4)}), the bin of `,
      chip(recording, step.id),
      `. Nearest other bin: ${step.margin < 1 ? `${step.margin.toFixed(4)} away` : "none"}.`,
    ),
    numberLine(recording, step, 0, 1),
  ];
  if (high - low < NARROW) {
    const around = Math.max((high - low) * 6, 1e-6);
    const middle = (low + high) / 2;
    const [from, to] = [Math.max(0, middle - around), Math.min(1, middle + around)];
    parts.push(h("p", { class: "legend" }, "Enlarged around the number:"), numberLine(recording, step, from, to));
  }
  return parts;
}

function numberLine(recording, step, from, to) {
  const at = (x) => (100 * (x - from)) / (to - from);
  const [low, high] = step.bin;
  const others = step.bins.filter(([id]) => id !== step.id);
  const bins = [...others, [step.id, low, high]]
    .filter(([, left, right]) => right > from && left < to)
    .map(([id, left, right]) => {
      const [start, end] = [at(Math.max(left, from)), at(Math.min(right, to))];
      const wide = end - start > 1.2 * recording.spell(id).length + 1;
      const kind = id === step.id ? "bin chosen" : "bin";
      return h("span", { class: kind, "--left": `${start}%`, "--width": `${end - start}%` }, wide ? recording.spell(id) : "");
    });
  const digits = to - from < 0.01 ? 5 : to - from < 0.5 ? 3 : 0;
  const label = `Number line from ${from.toFixed(digits)} to ${to.toFixed(digits)}; ${step.u.toFixed(4)} lies in the marked bin.`;
  return h(
    "div",
    { class: "line01", role: "img", "aria-label": label },
    h("div", { class: "bins" }, bins, h("span", { class: "pin", "--left": `${at(step.u)}%` })),
    h("div", { class: "ends" }, h("span", {}, from.toFixed(digits)), h("span", {}, to.toFixed(digits))),
  );
}
