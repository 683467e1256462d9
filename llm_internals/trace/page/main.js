// The page: which token, which stage, which layer; a change of any of them shows the stage anew.

const recording = readRecording();
const state = { step: 0, stage: 0, layer: null, head: null, source: null, operator: null };
const stages = [tokenizeStage, embedStage, forwardStage, logitsStage, sampleStage, detokenizeStage, loopStage].map(
  (make) => make(recording, go),
);
const text = transcript(recording, go);
const controls = makeControls();
const tabs = stages.map(makeTab);
const panels = stages.map(makePanel);
const showTab = oneOf(tabs, "aria-selected", (stage) => go({ stage }));
let shown = 0;

function go(change) {
  const before = state.step;
  Object.assign(state, change);
  state.step = clamp(state.step, recording.steps.length);
  state.stage = clamp(state.stage, stages.length);
  if (state.step !== before) announce();
  render();
}

function clamp(index, length) {
  return Math.min(Math.max(index, 0), length - 1);
}

function render() {
  const turn = ++shown;
  text.show(state);
  controls.show(state);
  showTab(state.stage);
  panels.forEach((panel, index) => (panel.hidden = index !== state.stage));
  stages[state.stage].show(state, () => turn === shown);
  remember();
}

// On from stage to stage. The prompt is tokenized once, so the next token begins at stage 2.
function onward(direction) {
  const stage = state.stage + direction;
  const first = (step) => (step === 0 ? 0 : 1);
  if (stage >= first(state.step) && stage < stages.length) return go({ stage });
  const step = state.step + direction;
  if (!recording.steps[step]) return;
  go({ step, stage: direction > 0 ? first(step) : stages.length - 1 });
}

function makeControls() {
  const button = (properties, act) => h("button", { type: "button", ...properties, onclick: act });
  const back = button({ "aria-label": "previous token", "aria-keyshortcuts": "ArrowLeft" }, () => go({ step: state.step - 1 }));
  const on = button({ "aria-label": "next token", "aria-keyshortcuts": "ArrowRight" }, () => go({ step: state.step + 1 }));
  const next = button({ class: "next", "aria-keyshortcuts": "Shift+ArrowRight" }, () => onward(1));
  back.textContent = "←";
  on.textContent = "→";
  const where = h("p", { class: "where" });
  return {
    element: h("div", { class: "controls" }, back, where, on, next),
    show() {
      const { steps } = recording;
      const last = state.step === steps.length - 1;
      back.disabled = state.step === 0;
      on.disabled = last;
      where.replaceChildren(`token ${state.step + 1} of ${steps.length} `, chip(recording, steps[state.step].id, "new"));
      const following = stages[state.stage + 1];
      next.disabled = last && !following;
      next.textContent = following ? `Next: ${following.name}` : last ? "The end" : "Next: another token";
    },
  };
}

function makeTab(stage, index) {
  return h(
    "button",
    { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": `panel-${index}` },
    h("span", { class: "disc", "aria-hidden": "true" }, String(index + 1)),
    h("span", { class: "name" }, stage.name),
  );
}

function makePanel(stage, index) {
  return h(
    "section",
    { role: "tabpanel", id: `panel-${index}`, "aria-labelledby": `tab-${index}`, class: "panel" },
    h("h2", {}, `${index + 1}  ${stage.title}`),
    stage.panel,
  );
}

function announce() {
  const step = recording.steps[state.step];
  document.getElementById("announcement").textContent =
    `Token ${state.step + 1} of ${recording.steps.length}: ${recording.spell(step.id)}, ` +
    `probability ${probability(Math.exp(step.logprob))}.`;
}

function summary() {
  const active = recording.steps[0].operators.filter((operator) => operator.top.length);
  const parts = active.map(({ name }) => `${operatorName(name)} ${settingText(recording.params[name])}`);
  if (!active.length) parts.push("temperature 1, nothing removed");
  parts.push(recording.params.seed === null ? "no seed" : `seed ${recording.params.seed}`);
  parts.push(`at most ${some(recording.max_tokens, "token")}`);
  if (recording.stop.length) parts.push(`stop at ${recording.stop.map((stop) => `“${visible(stop)}”`).join(", ")}`);
  const ended = REASONS[recording.steps[recording.steps.length - 1].stop_reason];
  return `${parts.join(" · ")}. It ended because ${ended}.`;
}

// The address says where the reader is, so that a link can point there and a reload comes back.
function remember() {
  const place = new URLSearchParams({ token: state.step + 1, stage: stages[state.stage].name });
  for (const key of ["layer", "head"]) if (state[key] !== null) place.set(key, state[key]);
  try {
    history.replaceState(null, "", `#${place}`);
  } catch {
    return; // inside some frames a page may not change its address
  }
}

function recall() {
  const place = new URLSearchParams(location.hash.slice(1));
  const whole = (key, length) => (/^\d{1,6}$/.test(place.get(key) ?? "") ? clamp(Number(place.get(key)), length) : null);
  const stage = stages.findIndex(({ name }) => name === place.get("stage"));
  go({
    step: (whole("token", recording.steps.length + 1) ?? 1) - 1,
    stage: Math.max(stage, 0),
    layer: whole("layer", recording.layers),
    head: whole("head", recording.heads),
  });
}

function keepTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let wanted = "auto";
  const apply = () => {
    document.documentElement.dataset.theme = wanted === "auto" ? (system.matches ? "dark" : "light") : wanted;
    button.textContent = `Colours: ${wanted}`;
  };
  const following = { auto: "light", light: "dark", dark: "auto" };
  button.addEventListener("click", () => {
    wanted = following[wanted];
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

// Left and right go from token to token, with Shift from stage to stage, unless a control uses the key itself.
function listen(event) {
  const direction = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!direction || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input, .scroller, [role=radio], [role=tab], [role=gridcell]") && !event.shiftKey) return;
  event.preventDefault();
  if (event.shiftKey) onward(direction);
  else go({ step: state.step + direction });
}

document.getElementById("main").append(
  h("p", { class: "summary" }, summary()),
  text.element,
  h(
    "div",
    { class: "bar-of-controls" },
    controls.element,
    h("div", { class: "stages", role: "tablist", "aria-label": "Stages" }, tabs),
  ),
  ...panels,
  h("p", { class: "keys" }, "Keys: ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " token; ", h("kbd", {}, "Shift"), " with them, stage. " +
    "In a group of controls, arrow keys move within it."),
);
keepTheme();
addEventListener("keydown", listen);
addEventListener("hashchange", recall);
recall();
