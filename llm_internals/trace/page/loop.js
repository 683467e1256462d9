// Stage 7: go on or stop; and all steps at a glance.

function loopStage(recording, go) {
  const said = h("p");
  const body = h("div", { class: "columns" });
  return {
    name: "loop",
    title: "Loop: go on, or stop",
    panel: [said, body],
    show(state) {
      const step = recording.steps[state.step];
      said.textContent = step.stop_reason
        ? `The response ends here: ${REASONS[step.stop_reason]}.`
        : "Nothing ends the response yet: the new token goes into the model, and everything from stage 2 on runs again.";
      const table = h("div", { class: "all-steps" }, allSteps(recording, state, go));
      body.replaceChildren(h("div", {}, checks(step), memory(recording, step)), table);
      reveal(table.firstChild, table.querySelector("[aria-current]"));
    },
  };
}

const REASONS = {
  eos: "the model chose an end token",
  stop: "a stop string is complete",
  length: "as many tokens as were asked for are there",
  context: "there is no room for another token",
};

function checks(step) {
  const asked = [
    ["eos", "End token?"],
    ["stop", "Stop string complete?"],
    ["length", "Maximum number of tokens?"],
    ["context", "Context full?"],
  ];
  const items = asked.map(([reason, question]) => {
    const yes = step.stop_reason === reason;
    return h("li", { class: yes ? "yes" : "" }, question, " ", h("b", {}, yes ? "yes: stop" : "no"));
  });
  return [h("h3", {}, "Four questions after each token"), h("ul", { class: "checks" }, items)];
}

function memory(recording, step) {
  const { num_key_value_heads: heads, head_dim: size } = recording.config;
  const bytes = 2 * recording.layers * heads * size * 4;
  const facts = [
    ["positions in the cache", count(step.position)],
    ["bytes for each", `2 × ${recording.layers} × ${heads} × ${size} × 4 = ${count(bytes)}`],
    ["together", `${((bytes * step.position) / 1e6).toFixed(2)} MB`],
  ];
  return [h("h3", {}, "What the cache holds"), definitions(facts)];
}

function allSteps(recording, state, go) {
  const rows = recording.steps.map((step, index) => {
    const jump = h("button", { type: "button", class: "quiet", onclick: () => go({ step: index }) }, String(index + 1));
    const current = index === state.step;
    return h("tr", { class: current ? "picked" : "", "aria-current": current ? "step" : null }, [
      h("td", {}, jump),
      h("td", {}, chip(recording, step.id)),
      h("td", { class: "number" }, probability(Math.exp(step.model_logprob))),
      h("td", { class: "number" }, probability(Math.exp(step.logprob))),
      h("td", { class: "number" }, count(step.n_candidates)),
      h("td", { class: "number" }, step.u === null ? "–" : step.u.toFixed(3)),
    ]);
  });
  const names = ["step", "token", "p of the model", "p drawn from", "candidates", "u"];
  const head = names.map((name, index) => h("th", { scope: "col", class: index > 1 ? "number" : "" }, name));
  const table = h(
    "table",
    { class: "plain" },
    h("caption", {}, "Every step of the response"),
    h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, rows),
  );
  return scroller("Every step of the response", table);
}
