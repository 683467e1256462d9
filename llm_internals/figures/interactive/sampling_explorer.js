// Temperature and truncation on real logits: four sliders, and what they leave to draw from.
// data: {
//   "prompts": [{"name": its label, "tokens": texts of the likeliest tokens, in order, "head": the largest logits,
//                descending, "step": s, "level": l, "counts": how many of the others are l * s, (l - 1) * s, ...}],
//   "orders": {engine: the four operators in its order, each by the name of its setting},
//   "start": {"prompt": a name, "order": an engine, "temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}
// }
function mount(root, data) {
  const upTo = (last, parts) => Array.from({ length: last + 1 }, (_, index) => index / parts);
  const RANKS = [1, 2, 3, 5, 10, 20, 40, 50, 100, 200, 500, 1000, 5000, 0];
  const KNOBS = {
    temperature: { label: "Temperature", stops: upTo(40, 20), neutral: 1 },
    top_k: { label: "Top-k", stops: RANKS, neutral: 0 },
    top_p: { label: "Top-p", stops: upTo(100, 100), neutral: 1 },
    min_p: { label: "Min-p", stops: upTo(50, 100), neutral: 0 },
  };
  const state = { ...data.start };

  // The arithmetic. Logits stand in descending order, so that every operator keeps the first so many of them.

  const logitsOf = (prompt) => {
    const others = prompt.counts.flatMap((count, down) => Array(count).fill((prompt.level - down) * prompt.step));
    return Float64Array.from([...prompt.head, ...others]);
  };

  // Unnormalised probabilities at temperature t, the largest 1, and their running sums.
  const weigh = (logits, t) => {
    const weights = logits.map((logit, rank) => (t === 0 ? Number(rank === 0) : Math.exp((logit - logits[0]) / t)));
    let sum = 0;
    return { weights, sums: weights.map((weight) => (sum += weight)) };
  };
  const between = ({ sums }, from, to) => (to > from ? sums[to - 1] - (from > 0 ? sums[from - 1] : 0) : 0);

  const KEEP = {
    temperature: (_, kept, t) => (t === 0 ? 1 : kept),
    top_k: (_, kept, k) => Math.min(kept, k),
    top_p: ({ sums }, kept, p) => sums.findIndex((sum) => sum >= p * sums[kept - 1]) + 1,
    min_p: ({ weights }, kept, p) => {
      const first = weights.findIndex((weight) => weight < p);
      return first < 0 ? kept : Math.min(kept, first);
    },
  };

  // What each operator keeps of the tokens that the one before it left, and the share of probability that it removes.
  // Temperature 0 acts last wherever it stands, as in the package.
  const account = (logits, order, settings) => {
    const greedy = settings.temperature === 0;
    const names = greedy ? [...order.filter((name) => name !== "temperature"), "temperature"] : order;
    let mass = weigh(logits, 1);
    let kept = logits.length;
    const steps = names.map((name) => {
      const setting = settings[name];
      const before = kept;
      if (name === "temperature" && !greedy) mass = weigh(logits, setting);
      if (setting !== KNOBS[name].neutral) kept = KEEP[name](mass, kept, setting);
      return { name, setting, kept, removed: between(mass, kept, before) / between(mass, 0, before) };
    });
    return { steps, mass, kept };
  };

  const entropyOf = ({ weights, sums }, kept) => {
    const total = sums[kept - 1];
    return weights.subarray(0, kept).reduce((sum, weight) => {
      const p = weight / total;
      return p > 0 ? sum - p * Math.log(p) : sum;
    }, 0);
  };

  // The page. Colours are those of the book, or of JupyterLab, or of a white page.

  const GROUND = "var(--pst-color-background, var(--jp-layout-color1, Canvas))";
  const INK = "var(--pst-color-text-base, var(--jp-ui-font-color1, CanvasText))";
  const BLUE = "var(--llm-kept, #0072b2)";
  const BOX =
    `padding: .3em .6em; border: 1px solid; border-radius: .3em; font: inherit; background: ${GROUND}; color: ${INK}`;
  const GRID =
    "display: grid; grid-template-columns: repeat(auto-fit, minmax(max(15em, 40%), 1fr)); gap: .6em 2em; margin: .8em 0";
  const CELL = "padding: .15em .6em .15em 0; vertical-align: middle; font-weight: 400; text-align:";

  const element = (tag, style, ...inside) => {
    const made = document.createElement(tag);
    made.style.cssText = style;
    made.append(...inside);
    return made;
  };
  const three = (number) => number.toFixed(3);
  const many = (number) => number.toLocaleString("en-US");
  const spelt = (name, setting) => {
    if (name !== "temperature" && setting === KNOBS[name].neutral) return "off";
    return name === "top_k" ? many(setting) : setting.toFixed(2);
  };

  const choice = (label, names, key) => {
    const options = names.map((name) => new Option(name, name));
    const box = element("select", `display: block; width: 100%; ${BOX}`, ...options);
    Object.assign(box, { name: key, value: state[key] });
    box.addEventListener("change", () => {
      state[key] = box.value;
      update();
    });
    return element("label", "display: block", label, box);
  };

  const sliders = {};
  const slider = (name) => {
    const { label, stops } = KNOBS[name];
    const value = element("span", "font-variant-numeric: tabular-nums");
    const bar = element("input", `display: block; width: 100%; margin: .2em 0; accent-color: ${BLUE}`);
    Object.assign(bar, { type: "range", min: "0", max: String(stops.length - 1), step: "1", name });
    bar.addEventListener("input", () => {
      state[name] = stops[Number(bar.value)];
      update();
    });
    sliders[name] = { bar, value };
    return element("label", "display: block", element("span", "display: flex; gap: .6em", label, value), bar);
  };

  const allOff = element("button", BOX, "Switch all off");
  allOff.type = "button";
  allOff.addEventListener("click", () => {
    for (const [name, { neutral }] of Object.entries(KNOBS)) state[name] = neutral;
    update();
  });

  const table = (caption, heads) => {
    const cells = heads.map(([inside, width], column) => {
      const side = column === 0 || inside === axis ? "left" : "right";
      const cell = element("th", `${CELL} ${side}; vertical-align: bottom; width: ${width}`, inside);
      cell.scope = "col";
      return cell;
    });
    const body = element("tbody", "");
    const made = element(
      "table",
      "width: 100%; min-width: 0; table-layout: fixed; border-collapse: collapse; font-variant-numeric: tabular-nums",
      element("caption", "caption-side: top; text-align: left", caption),
      element("thead", "", element("tr", "", ...cells)),
      body,
    );
    made.className = "llm-table";
    return { made, body };
  };
  const cell = (inside) => element("td", `${CELL} right`, inside);
  const row = (name, cells) => {
    const head = element("th", `${CELL} left; overflow: hidden; text-overflow: ellipsis; min-width: 0`, name);
    head.scope = "row";
    return element("tr", "", head, ...cells);
  };

  // An outline from 0 to 1 for the temperature alone, hatched where it is removed; filled, what is left to draw from.
  const bars = (stays, goes, drawn) => {
    const look = "box-sizing: border-box; border: 1px solid; background:";
    const outline = (width, ground) => (width > 0 ? element("div", `${look} ${ground}; width: ${100 * width}%`) : "");
    const hatched = "repeating-linear-gradient(135deg, currentColor 0 1px, transparent 1px 5px)";
    const place = "position: absolute; left: 0; top: .3em; height: .6em; background:";
    const filled = element("div", `${place} ${BLUE}; width: ${100 * drawn}%`);
    const both = element("div", "position: relative; height: 1.2em; display: flex; border-left: 1px solid");
    both.append(outline(stays, "none"), outline(goes, hatched), filled);
    return element("td", `${CELL} left`, both);
  };

  const ends = ["0", "1"].map((end) => element("span", "", end));
  const axis = element("span", "display: flex; justify-content: space-between", ...ends);
  const tokens = table("Outline: the temperature T alone. Hatched: removed. Filled: what is left to draw from.", [
    ["token", "25%"],
    [axis, "37%"],
    ["T alone", "18%"],
    ["to draw from", "20%"],
  ]);
  const steps = table("The steps in their order, and what each keeps of what it gets", [
    ["step", "31%"],
    ["setting", "21%"],
    ["tokens left", "25%"],
    ["removes", "23%"],
  ]);
  const result = element("output", "display: block; margin: .8em 0; font-weight: 600");
  result.setAttribute("aria-live", "polite");

  let shown = {};
  const prompt = () => {
    if (shown.name !== state.prompt) {
      const found = data.prompts.find(({ name }) => name === state.prompt);
      shown = { ...found, logits: logitsOf(found) };
    }
    return shown;
  };

  const tokenRow = (name, from, to, alone, { mass, kept }) => {
    const edge = Math.max(from, Math.min(to, kept));
    const all = between(alone, 0, alone.sums.length);
    const drawn = between(mass, from, edge) / between(mass, 0, kept);
    const numbers = [cell(three(between(alone, from, to) / all)), cell(edge > from ? three(drawn) : "removed")];
    return row(name, [bars(between(alone, from, edge) / all, between(alone, edge, to) / all, drawn), ...numbers]);
  };

  const update = () => {
    const { tokens: names, logits } = prompt();
    const alone = weigh(logits, state.temperature);
    const run = account(logits, data.orders[state.order], state);
    tokens.body.replaceChildren(
      ...names.map((name, rank) => tokenRow(name, rank, rank + 1, alone, run)),
      tokenRow(`${many(logits.length - names.length)} others`, names.length, logits.length, alone, run),
    );
    steps.body.replaceChildren(
      ...run.steps.map(({ name, setting, kept, removed }) =>
        row(KNOBS[name].label, [cell(spelt(name, setting)), cell(many(kept)), cell(three(removed))]),
      ),
    );
    const removed = 1 - run.steps.reduce((left, step) => left * (1 - step.removed), 1);
    const entropy = entropyOf(run.mass, run.kept);
    result.textContent =
      `${many(run.kept)} of ${many(logits.length)} tokens can be drawn; ` +
      `${three(removed)} of the probability is removed. ` +
      `Entropy ${entropy.toFixed(2)} nats, as of ${many(Number(Math.exp(entropy).toFixed(1)))} equally likely tokens.`;
    for (const [name, { bar, value }] of Object.entries(sliders)) {
      bar.value = String(KNOBS[name].stops.indexOf(state[name]));
      value.textContent = spelt(name, state[name]);
      bar.setAttribute("aria-valuetext", `${spelt(name, state[name])}, tokens left: ${many(run.kept)}`);
    }
  };

  root.append(
    element(
      "div",
      GRID,
      choice("The text so far", data.prompts.map(({ name }) => name), "prompt"),
      choice("Steps in the order of", Object.keys(data.orders), "order"),
    ),
    element("div", GRID, ...Object.keys(KNOBS).map(slider)),
    allOff,
    result,
    tokens.made,
    steps.made,
  );
  update();
}
