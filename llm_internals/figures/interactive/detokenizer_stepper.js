// A stream, one token at a time: what came, what waits, what is shown.
// data: {"streams": [{"name", "steps": [{"id", "bytes": hexadecimal, "piece", "held", "unfinished": hexadecimal}]}]}
function mount(root, data) {
  const element = (tag, style = "", text = "") => {
    const made = document.createElement(tag);
    made.style.cssText = style;
    made.textContent = text;
    return made;
  };
  const marks = { " ": "␣", "\n": "↵", "\t": "⇥", "\u200d": "U+200D" };
  const visible = (text) => [...text].map((character) => marks[character] ?? character).join("");
  let stream = data.streams[0];
  let done = 0;

  const label = element("label", "display: block; margin-bottom: .6em", "Stream: ");
  const select = element("select", "font: inherit; max-width: 100%");
  data.streams.forEach(({ name }, index) => select.append(new Option(name, index)));
  label.append(select);

  const bar = element("div", "display: flex; flex-wrap: wrap; gap: .5em; margin-bottom: .8em");
  const look =
    "font: inherit; padding: .3em .9em; border: 1px solid currentColor; border-radius: .3em;" +
    "background: none; color: inherit; cursor: pointer";
  const button = (text, move) => {
    const made = element("button", look, text);
    made.type = "button";
    made.addEventListener("click", () => {
      done = move();
      update();
    });
    bar.append(made);
    return made;
  };
  const next = button("Next token", () => Math.min(done + 1, stream.steps.length));
  const back = button("Back", () => Math.max(done - 1, 0));
  const restart = button("Start again", () => 0);

  const tokens = element(
    "ol",
    "display: flex; flex-wrap: wrap; gap: .3em; padding: 0; margin: 0 0 .8em; list-style: none; font-family: monospace",
  );
  tokens.setAttribute("role", "list");
  tokens.setAttribute("aria-label", "tokens");

  const rows = element("dl", "display: grid; grid-template-columns: max-content 1fr; gap: .4em 1em; margin: 0");
  const row = (name, style) => {
    const value = element("dd", `margin: 0; min-height: 1.6em; overflow-wrap: anywhere; ${style}`);
    rows.append(element("dt", "margin: 0; font-weight: 600", name), value);
    return value;
  };
  const waits = row("waits", "font-family: monospace");
  const shown = row("shown", "white-space: pre-wrap; border-bottom: 1px solid currentColor");
  const result = element("output", "display: block; margin-top: .8em; min-height: 3em");
  result.setAttribute("aria-live", "polite");

  const drawTokens = () => {
    tokens.replaceChildren(
      ...stream.steps.map((step) => {
        const chip = element("li", "padding: .1em .4em; border-radius: .3em; text-align: center; line-height: 1.3");
        chip.append(element("span", "display: block", step.bytes), element("span", "font-size: .8em", String(step.id)));
        return chip;
      }),
    );
  };

  const sentence = () => {
    if (done === 0) return `Nothing has come yet of ${stream.steps.length} tokens.`;
    const { id, bytes, piece, held, unfinished } = stream.steps[done - 1];
    const waiting = [visible(held), unfinished].filter(Boolean).join(" and ");
    return (
      `Token ${done} of ${stream.steps.length}, id ${id}, bytes ${bytes}. ` +
      `Shown: ${visible(piece) || "nothing"}. Waiting: ${waiting || "nothing"}.`
    );
  };

  const update = () => {
    [...tokens.children].forEach((chip, index) => {
      const current = index === done - 1;
      chip.style.border = current ? "2px solid var(--llm-kept, #0072b2)" : "2px solid rgba(128, 128, 128, .35)";
      chip.style.background = index < done ? "rgba(0, 114, 178, .16)" : "none";
      chip.style.borderStyle = index < done ? "solid" : "dashed";
      if (current) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    const last = stream.steps[done - 1];
    waits.textContent = last ? [visible(last.held), last.unfinished].filter(Boolean).join("  ") : "";
    shown.textContent = stream.steps
      .slice(0, done)
      .map((step) => step.piece)
      .join("");
    result.textContent = sentence();
    // A button that is switched off would lose the focus, so these stay on and do nothing at the ends.
    next.setAttribute("aria-disabled", String(done === stream.steps.length));
    for (const button of [back, restart]) button.setAttribute("aria-disabled", String(done === 0));
    for (const button of bar.children) button.style.opacity = button.getAttribute("aria-disabled") === "true" ? 0.6 : 1;
  };

  select.addEventListener("change", () => {
    stream = data.streams[Number(select.value)];
    done = 0;
    drawTokens();
    update();
  });
  if (data.streams.length > 1) root.append(label);
  root.append(bar, tokens, rows, result);
  drawTokens();
  update();
}
