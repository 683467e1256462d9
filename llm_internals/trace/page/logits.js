// Stage 4: a score for every token, and what each layer would have said.

function logitsStage(recording, go) {
  const said = h("p");
  const scores = h("div");
  const lens = h("div");
  return {
    name: "logits",
    title: "Logits: a score for every token",
    panel: [said, h("div", { class: "columns" }, scores, lens)],
    show(state) {
      const step = recording.steps[state.step];
      said.textContent =
        `The last vector, of ${count(recording.config.hidden_size)} numbers, becomes ${count(recording.vocabulary)} scores. ` +
        "They aren’t probabilities yet; softmax makes some of them (here at T = 1, the model’s own).";
      scores.replaceChildren(scoreTable(recording, step));
      lens.replaceChildren(h("h3", {}, "Logit lens: if the model ended there"), ...lensTable(recording, step, state.layer, go));
    },
  };
}

function scoreTable(recording, step) {
  const rows = step.top_logits.map(([id, logit]) => {
    const share = recording.share(step, logit);
    return { id, share, cells: [logit.toFixed(2), probability(share)], kind: id === step.id ? "chosen" : "" };
  });
  if (rows.every((row) => row.id !== step.id)) {
    const share = Math.exp(step.model_logprob);
    const logit = step.model_logprob + step.log_normalizer;
    rows.push({ id: step.id, share, cells: [logit.toFixed(2), probability(share)], kind: "chosen apart" });
  }
  return barTable(recording, `The ${step.top_logits.length} largest scores; the token that was chosen is marked`, ["logit", "p"], rows);
}

function lensTable(recording, step, layer, go) {
  const columns = Math.max(...step.lens.map((entry) => entry.top.length));
  const rows = step.lens.map((entry, index) => {
    const name = index === 0 ? "embedding" : `block ${index - 1}`;
    const pick = h("button", { type: "button", class: "quiet", onclick: () => go({ layer: index - 1, head: null }) }, name);
    return h(
      "tr",
      { class: index === (layer ?? -2) + 1 ? "picked" : "" },
      h("th", { scope: "row" }, index === 0 ? name : pick),
      h("td", { class: "number" }, count(entry.rank)),
      entry.top.map(([id, share]) => lensCell(recording, step, id, share)),
    );
  });
  const heads = Array.from({ length: columns }, (_, rank) => h("th", { scope: "col" }, `${rank + 1}`));
  const caption =
    `What each layer would say, likeliest first; rank: where ${recording.spell(step.id)}, the token chosen in the end, ` +
    `stands among ${count(recording.vocabulary)}.`;
  const head = h("tr", {}, h("th", { scope: "col" }, "after"), h("th", { scope: "col", class: "number" }, "rank"), heads);
  return [
    h("p", { class: "legend" }, caption),
    scroller("Logit lens", h("table", { class: "lens", "aria-label": caption }, h("thead", {}, head), h("tbody", {}, rows))),
  ];
}

function lensCell(recording, step, id, share) {
  const chosen = id === step.id ? "hit" : "";
  return h(
    "td",
    { class: chosen, "--tint": tint(share, 0.45), title: `probability ${probability(share)}` },
    chip(recording, id),
    h("span", { class: "unseen" }, ` ${probability(share)}`),
  );
}
