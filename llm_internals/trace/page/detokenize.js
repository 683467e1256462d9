// Stage 6: the id becomes bytes, and the bytes become text as soon as it is certain.

function detokenizeStage(recording) {
  const said = h("p");
  const body = h("div");
  return {
    name: "detokenize",
    title: "Detokenize: the id to text",
    panel: [said, body],
    show(state) {
      const step = recording.steps[state.step];
      const earlier = recording.steps.slice(0, state.step).map((one) => one.piece).join("");
      said.textContent = what(step);
      const bytes = recording.bytes(step.id).map((byte) => h("code", {}, hex(byte)));
      body.replaceChildren(
        h(
          "ol",
          { class: "flow" },
          h("li", {}, h("span", { class: "note" }, "id"), h("b", {}, String(step.id))),
          h("li", {}, h("span", { class: "note" }, "token"), chip(recording, step.id, "new")),
          h("li", {}, h("span", { class: "note" }, some(bytes.length, "byte")), h("span", { class: "bytes" }, bytes)),
          h("li", {}, h("span", { class: "note" }, "text that became certain"), h("code", { class: "chip" }, visible(step.piece) || "nothing yet")),
        ),
        h("h3", {}, "The response so far"),
        h("p", { class: "text" }, earlier, step.piece ? h("mark", {}, step.piece) : null, earlier + step.piece ? null : "…"),
      );
    },
  };
}

function what(step) {
  if (step.stop_reason === "eos") return "An end token ends the response and adds no text of its own.";
  if (step.stop_reason === "stop") return "With this token a stop string is complete: the text ends before it.";
  if (step.piece === "") {
    return "Nothing is certain yet: these bytes are a part of a character, or a stop string may be growing. The text waits.";
  }
  return "The id’s bytes are looked up and read as UTF-8. A leading space belongs to the token: no rule puts it there.";
}
