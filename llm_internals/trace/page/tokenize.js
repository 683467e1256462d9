// Stage 1: the prompt as tokens and ids.

function tokenizeStage(recording) {
  const said = h("p");
  const body = h("div");
  return {
    name: "tokenize",
    title: "Tokenize: text to ids",
    panel: [said, body],
    show(state) {
      const { prompt_ids: prompt, steps } = recording;
      said.textContent =
        state.step === 0
          ? `The prompt's ${some([...recording.prompt].length, "character")} become ${some(prompt.length, "token")}. ` +
            "From here on the model sees the ids, and no letters."
          : `This happened once, before the first step. What was chosen since then is an id already: ` +
            `${some(state.step, "token")} of the response follow the prompt.`;
      const ids = recording.read(state.step);
      const kind = (index) => (index < prompt.length ? "" : index === ids.length - 1 ? "new" : "own");
      body.replaceChildren(
        h("h3", {}, `What the model reads to choose ${chipName(recording, steps[state.step].id)}`),
        chipList(recording, ids, (id) => String(id), kind),
        h("p", { class: "legend" }, legendOf(recording, ids, prompt.length)),
        byteTable(recording, ids),
      );
    },
  };
}

function chipName(recording, id) {
  return `“${recording.spell(id)}”`;
}

function legendOf(recording, ids, fromPrompt) {
  const parts = ["The number below a token is its id; ␣ is a space, ↵ a line feed."];
  if (ids.some(recording.isSpecial)) parts.push("Dashed: special tokens, which come from the chat template and never from text.");
  if (ids.length > fromPrompt) parts.push("Coloured: tokens of the response, the newest in orange.");
  return parts.join(" ");
}

function byteTable(recording, ids) {
  const rows = ids.map((id, position) => {
    const bytes = recording.bytes(id).map(hex).join(" ");
    return h("tr", {}, [
      h("td", { class: "number" }, String(position)),
      h("td", {}, chip(recording, id)),
      h("td", { class: "number" }, String(id)),
      h("td", {}, h("code", {}, bytes)),
    ]);
  });
  const head = ["position", "token", "id", "bytes"].map((name) => h("th", { scope: "col" }, name));
  const table = h("table", { class: "plain" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  return h("details", {}, h("summary", {}, "Positions and bytes"), scroller("Positions and bytes", table));
}
