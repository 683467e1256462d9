// One question at every temperature: how likely the right answer is, and the likeliest one, and whether they are one.
// uses _explorer.js
// data: {
//   "temperatures": the stops of the slider, ascending from 0,
//   "questions": [{"prompt": its label, "tokens": texts, the likeliest first, "right": which of them is right, "place": the
//                  right token's place in the vocabulary, "probs": a row a token, a column a temperature}],
//   "all": {"asked": n, "greedy": how many of them greedy decoding gets right,
//           "sampled": mean p(right) at each temperature, "confidence": mean of the largest p}
// }
function mount(root, data) {
  const GREEN = "var(--llm-right, #00795a)";
  const VERMILION = "var(--llm-chosen, #c24e00)";
  const FRAME = { width: 440, height: 240, left: 34, right: 8, top: 12, bottom: 44 };
  const stops = data.temperatures;
  const state = { question: data.questions[0].prompt, temperature: 1 };

  // The chart: p(right) as a line, the likeliest token, if it is wrong, as dashes, and the slider's place.

  const draw = (tag, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const across = (t) =>
    FRAME.left + ((FRAME.width - FRAME.left - FRAME.right) * t) / stops[stops.length - 1];
  const down = (p) => FRAME.top + (FRAME.height - FRAME.top - FRAME.bottom) * (1 - p);
  const line = (x1, y1, x2, y2, look) => draw("line", { x1, y1, x2, y2, stroke: "currentColor", ...look });
  const write = (x, y, anchor, text, look = {}) =>
    draw("text", { x, y, "text-anchor": anchor, "font-size": 14, fill: "currentColor", ...look }, text);
  const curve = (probs, look) => {
    const points = stops.map((t, at) => `${across(t).toFixed(1)},${down(probs[at]).toFixed(1)}`).join(" ");
    return draw("polyline", { points, fill: "none", "stroke-width": 3, ...look });
  };
  const chart = draw("svg", { viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: "img" });
  chart.style.cssText = "display: block; width: 100%; max-width: 36em; margin: .6em 0";

  const redraw = ({ tokens, right, probs }, t, at) => {
    const end = across(stops[stops.length - 1]);
    const grid = [0, 0.5, 1].flatMap((p) => [
      line(FRAME.left, down(p), end, down(p), { opacity: 0.25 }),
      write(FRAME.left - 6, down(p) + 5, "end", String(p)),
    ]);
    const ticks = [0, 0.5, 1, 1.5, 2].map((tick) => write(across(tick), down(0) + 18, "middle", String(tick)));
    const title = write((FRAME.left + end) / 2, FRAME.height - 6, "middle", "temperature");
    const needle = line(across(t), down(1.04), across(t), down(0), { "stroke-width": 2 });
    const wrong = curve(probs[0], { stroke: VERMILION, "stroke-dasharray": "8 5" });
    const green = curve(probs[right], { stroke: GREEN });
    const dots = [[right, GREEN], ...(right === 0 ? [] : [[0, VERMILION]])].map(([token, fill]) =>
      draw("circle", { cx: across(t), cy: down(probs[token][at]).toFixed(1), r: 6, fill }),
    );
    const names = [
      write(end, down(0.92), "end", `${tokens[right]} (right)`, { fill: GREEN }),
      ...(right === 0 ? [] : [write(end, down(0.8), "end", `${tokens[0]} (wrong)`, { fill: VERMILION })]),
    ];
    chart.replaceChildren(...grid, ...ticks, title, needle, ...(right === 0 ? [] : [wrong]), green, ...dots, ...names);
    const drawn = names.map(({ textContent }) => textContent).join(" and ");
    chart.setAttribute("aria-label", `Probability of ${drawn} against temperature`);
  };

  // The verdict.

  const ordinal = (n) => ({ 1: "first", 2: "second", 3: "third" })[n] ?? `${n}th`;
  const trend = (curve, at) => {
    if (at === 0) return "";
    const gain = curve[at - 1] - curve[at];
    if (Math.abs(gain) < 5e-4) return "One step down changes next to nothing.";
    return gain > 0 ? "One step down makes it likelier." : "One step down makes it less likely.";
  };
  const verdict = ({ tokens, right, place, probs }, at) => {
    const p = three(probs[right][at]);
    const drawn = at === 0 ? `${tokens[0]} for certain` : `${tokens[right]} with probability ${p}`;
    const first = `At T = ${stops[at].toFixed(2)} the model says ${drawn}. `;
    if (right === 0) return `${first}It is right, and first at every temperature. ${trend(probs[0], at)}`.trim();
    const best = stops[probs[right].indexOf(Math.max(...probs[right]))].toFixed(2);
    return (
      `${first}The right answer is ${tokens[right]}, ${ordinal(place)} at every temperature above 0, ` +
      `so greedy decoding is wrong. It is likeliest at T = ${best}. ${trend(probs[right], at)}`
    ).trim();
  };
  const everyone = ({ asked, greedy, sampled, confidence }, at) =>
    `All ${asked} questions at this temperature: a sample is right with probability ${three(sampled[at])} ` +
    `on average, and the likeliest token has ${three(confidence[at])}. ` +
    `The likeliest token is right in ${greedy}, at every temperature.`;

  // The page.

  const set = (name) => (value) => {
    state[name] = value;
    update();
  };
  const prompts = data.questions.map(({ prompt }) => prompt);
  const question = choice("The question", "question", prompts, state.question, set("question"));
  const groups = [
    ["Right answer likeliest", ({ place }) => place === 1],
    ["Right answer second", ({ place }) => place === 2],
    ["Right answer further down", ({ place }) => place > 2],
  ].map(([label, belongs]) => {
    const options = data.questions.filter(belongs).map(({ prompt }) => new Option(prompt, prompt));
    const group = element("optgroup", "", ...options);
    group.label = label;
    return group;
  });
  question.box.replaceChildren(...groups);
  question.box.value = state.question;
  const knob = slider("Temperature", "temperature", stops, set("temperature"));
  const result = resultLine();
  const tokens = table("What can come next", [
    ["token", "40%", "left"],
    [axis(), "40%", "left"],
    ["p", "20%", "right"],
  ]);
  const means = element("p", "margin: .8em 0");

  const tokenRow = (name, p) => row(name, [bars(0, 0, p), cell(three(p))]);
  const update = () => {
    const at = stops.indexOf(state.temperature);
    const shown = data.questions.find(({ prompt }) => prompt === state.question);
    redraw(shown, state.temperature, at);
    const others = Math.max(0, 1 - shown.probs.reduce((sum, row) => sum + row[at], 0));
    tokens.body.replaceChildren(
      ...shown.tokens.map((name, token) => tokenRow(token === shown.right ? `${name} ✓` : name, shown.probs[token][at])),
      tokenRow("all others", others),
    );
    result.textContent = verdict(shown, at);
    means.textContent = everyone(data.all, at);
    const t = state.temperature.toFixed(2);
    knob.say(state.temperature, t, `${t}, right answer ${three(shown.probs[shown.right][at])}`);
  };

  root.append(element("div", GRID, question.made, knob.made), chart, result, tokens.made, means);
  update();
}
