// Temperature and truncation on real logits: four sliders, and what they leave to draw from.
// uses _explorer.js
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

  // The page.

  const spelt = (name, setting) => {
    if (name !== "temperature" && setting === KNOBS[name].neutral) return "off";
    return name === "top_k" ? many(setting) : setting.toFixed(2);
  };
  const set = (name) => (value) => {
    state[name] = value;
    update();
  };

  const prompts = data.prompts.map(({ name }) => name);
  const promptChoice = choice("The text so far", "prompt", prompts, state.prompt, set("prompt"));
  const orders = Object.keys(data.orders);
  const orderChoice = choice("Steps in the order of", "order", orders, state.order, set("order"));
  const sliders = Object.fromEntries(
    Object.entries(KNOBS).map(([name, { label, stops }]) => [name, slider(label, name, stops, set(name))]),
  );
  const allOff = button("Switch all off", () => {
    for (const [name, { neutral }] of Object.entries(KNOBS)) state[name] = neutral;
    update();
  });
  const tokens = table("Outline: the temperature T alone. Hatched: removed. Filled: what is left to draw from.", [
    ["token", "25%", "left"],
    [axis(), "37%", "left"],
    ["T alone", "18%", "right"],
    ["to draw from", "20%", "right"],
  ]);
  const steps = table("The steps in their order, and what each keeps of what it gets", [
    ["step", "31%", "left"],
    ["setting", "21%", "right"],
    ["tokens left", "25%", "right"],
    ["removes", "23%", "right"],
  ]);
  const result = resultLine();

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
    for (const [name, { say }] of Object.entries(sliders)) {
      const setting = spelt(name, state[name]);
      say(state[name], setting, `${setting}, tokens left: ${many(run.kept)}`);
    }
  };

  root.append(
    element("div", GRID, promptChoice.made, orderChoice.made),
    element("div", GRID, ...Object.values(sliders).map(({ made }) => made)),
    allOff,
    result,
    tokens.made,
    steps.made,
  );
  update();
}
