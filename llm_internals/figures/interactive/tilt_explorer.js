// The tilt on real logits: reward one token, set the price of change, and see the best distribution there is.
// uses _explorer.js
// data: {
//   "prompts": [{"name": its label, "tokens": texts of the likeliest tokens, in order, "head": the largest logits,
//                descending, "step": s, "level": l, "counts": how many of the others are l * s, (l - 1) * s, ...}],
//   "start": {"prompt": a name, "token": one of its texts, "reward": 1, "beta": 0.25}
// }
function mount(root, data) {
  const REWARDS = Array.from({ length: 31 }, (_, index) => (index - 10) / 10);
  const BETAS = [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10];
  const state = { ...data.start };

  // The arithmetic, in nats and over the whole vocabulary; tokens stand in the order of their logits.

  const logSumExp = (scores) => {
    const top = scores.reduce((most, score) => Math.max(most, score), -Infinity);
    return top + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - top), 0));
  };
  const logSoftmax = (scores) => {
    const level = logSumExp(scores);
    return scores.map((score) => score - level);
  };
  const entropyOf = (logprobs) => logprobs.reduce((sum, logprob) => sum - Math.exp(logprob) * logprob, 0);

  // The reward of one token divided by beta, added to its log-probability, and what the result is worth.
  const account = (before, rank, reward, beta) => {
    const scores = before.slice();
    scores[rank] += reward / beta;
    const after = logSoftmax(scores);
    const expected = reward * Math.exp(after[rank]);
    const kl = after.reduce((sum, logprob, index) => sum + Math.exp(logprob) * (logprob - before[index]), 0);
    return { after, expected, kl, objective: expected - beta * kl, best: beta * logSumExp(scores) };
  };

  // The page.

  const set = (name) => (value) => {
    state[name] = value;
    if (name === "prompt") state.token = prompt().tokens[0];
    update();
  };
  const plain = (number, digits) => (Math.abs(number) < 0.5 / 10 ** digits ? 0 : number).toFixed(digits);
  const named = (beta) => plain(beta, beta < 1 ? 2 : 1);

  const prompts = data.prompts.map(({ name }) => name);
  const promptChoice = choice("The text so far", "prompt", prompts, state.prompt, set("prompt"));
  const tokenChoice = choice("The token that is rewarded", "token", [], "", set("token"));
  const rewardSlider = slider("Reward r", "reward", REWARDS, set("reward"));
  const betaSlider = slider("Price of change β", "beta", BETAS, set("beta"));
  const tokens = table("Outline: the model. Filled: the best distribution for this reward and this price.", [
    ["token", "25%", "left"],
    [axis(), "37%", "left"],
    ["p", "18%", "right"],
    ["p*", "20%", "right"],
  ]);
  const amounts = table("What it is worth", [
    ["", "52%", "left"],
    ["model p", "24%", "right"],
    ["best p*", "24%", "right"],
  ]);
  const result = resultLine();

  let shown = {};
  const prompt = () => {
    if (shown.name !== state.prompt) {
      const found = data.prompts.find(({ name }) => name === state.prompt);
      shown = { ...found, logprobs: logSoftmax(logitsOf(found)) };
      tokenChoice.box.replaceChildren(...found.tokens.map((text) => new Option(text, text)));
    }
    return shown;
  };

  const mass = (logprobs, from, to) => logprobs.subarray(from, to).reduce((sum, logprob) => sum + Math.exp(logprob), 0);
  const tokenRow = (name, from, to, before, after) => {
    const [was, now] = [mass(before, from, to), mass(after, from, to)];
    return row(name, [bars(was, 0, now), cell(three(was)), cell(three(now))]);
  };

  const update = () => {
    const { tokens: names, logprobs } = prompt();
    const { token, reward, beta } = state;
    const rank = names.indexOf(token);
    const run = account(logprobs, rank, reward, beta);
    const [was, now] = [logprobs, run.after].map((ours) => Math.exp(ours[rank]));
    tokens.body.replaceChildren(
      ...names.map((name, index) => tokenRow(name, index, index + 1, logprobs, run.after)),
      tokenRow(`${many(logprobs.length - names.length)} others`, names.length, logprobs.length, logprobs, run.after),
    );
    amounts.body.replaceChildren(
      ...[
        ["expected reward", plain(reward * was, 3), plain(run.expected, 3)],
        ["KL divergence from the model, nats", "0.000", plain(run.kl, 3)],
        ["objective J = reward − β KL", plain(reward * was, 3), plain(run.objective, 3)],
        ["β ln Z, the best possible J", "", plain(run.best, 3)],
        ["entropy, nats", plain(entropyOf(logprobs), 3), plain(entropyOf(run.after), 3)],
      ].map(([name, ...numbers]) => row(name, numbers.map(cell))),
    );
    result.textContent =
      `A reward of ${plain(reward, 1)} at a price of ${named(beta)} adds ${plain(reward / beta, 2)} to the logit of ` +
      `${token}: from ${three(was)} to ${three(now)}.`;
    tokenChoice.box.value = token;
    rewardSlider.say(reward, plain(reward, 1), `${plain(reward, 1)}, ${token} now ${three(now)}`);
    betaSlider.say(beta, named(beta), `${named(beta)}, ${token} now ${three(now)}`);
  };

  root.append(
    element("div", GRID, promptChoice.made, tokenChoice.made),
    element("div", GRID, rewardSlider.made, betaSlider.made),
    result,
    tokens.made,
    amounts.made,
  );
  update();
}
