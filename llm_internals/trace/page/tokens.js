// Tokens as chips, the transcript in which one is picked, and tables whose rows are tokens with bars.

function chip(recording, id, kind = "") {
  const special = recording.isSpecial(id) ? " special" : "";
  return h("code", { class: `chip ${kind}${special}` }, recording.spell(id));
}

// Chips in a row, each with a line of small print.
function chipList(recording, ids, note, kind = () => "") {
  const items = ids.map((id, index) => {
    return h("li", {}, chip(recording, id, kind(index)), h("span", { class: "note" }, note(id, index)));
  });
  return h("ol", { class: "chips" }, items);
}

// The text as the model has it: the prompt, then the tokens of the response, of which one is picked.
function transcript(recording, go) {
  const buttons = recording.steps.map((step, index) => {
    return h(
      "button",
      { type: "button", role: "radio", class: "token", "aria-label": `token ${index + 1}, ${recording.spell(step.id)}` },
      flowing(recording, step.id),
    );
  });
  const show = oneOf(buttons, "aria-checked", (index) => go({ step: index }));
  const prompt = recording.prompt_ids.map((id) => {
    return h("span", { class: recording.isSpecial(id) ? "special" : "" }, flowing(recording, id));
  });
  const element = h(
    "section",
    { class: "transcript", "aria-label": "Prompt and response" },
    h("span", { class: "prompt" }, prompt),
    h("span", { role: "radiogroup", "aria-label": "Tokens of the response" }, buttons),
  );
  return {
    element,
    show(state) {
      show(state.step);
      buttons.forEach((button, index) => button.classList.toggle("later", index > state.step));
      reveal(element, buttons[state.step]);
    },
  };
}

// A token in running text: spaces and line ends stay what they are, the rest is spelt out.
function flowing(recording, id) {
  return recording.spell(id).replaceAll("␣", " ").replaceAll("↵", "↵\n");
}

// Scroll a box, and not the page, until something in it can be seen.
function reveal(box, item) {
  const [outer, inner] = [box.getBoundingClientRect(), item.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + box.clientHeight / 3;
}

// A table with a bar in each row. A row: {id, share, before, cells, kind}; `before` draws an outline to compare with.
function barTable(recording, caption, heads, rows) {
  const widest = Math.max(...rows.map((row) => Math.max(row.share, row.before ?? 0)), 1e-9);
  const body = rows.map((row) => {
    return h(
      "tr",
      { class: row.kind ?? "" },
      h("th", { scope: "row" }, chip(recording, row.id)),
      h(
        "td",
        { class: "bar", "aria-hidden": "true" },
        h("span", { class: "fill", "--width": `${(100 * row.share) / widest}%` }),
        row.before === undefined ? null : h("span", { class: "before", "--width": `${(100 * row.before) / widest}%` }),
      ),
      row.cells.map((cell) => h("td", { class: "number" }, cell)),
    );
  });
  return h(
    "table",
    { class: "bars" },
    h("caption", {}, caption),
    h(
      "thead",
      {},
      h("tr", {}, h("th", { scope: "col" }, "token"), h("td", {}), heads.map((head) => h("th", { scope: "col" }, head))),
    ),
    h("tbody", {}, body),
  );
}
