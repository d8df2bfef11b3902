// The player: choose a cell, and step through the greedy episode at its end.

const STAGES = { grid: gridStage, compass: compassStage, acrobot: acrobotStage, hiv: patientStage, chart: chartStage };

function playerSection(data) {
  const host = byId("stage"),
    slider = byId("player-slider"),
    play = byId("player-play");
  const svg = shape("svg", { "aria-hidden": "true" }),
    legend = element("div", { class: "scale legend" });
  host.append(svg, legend);
  let family = null,
    cell = null,
    stage = null,
    move = null,
    step = 0,
    playing = null;

  const draw = keepDrawn(host, (width) => {
    if (!stage) return;
    svg.replaceChildren();
    legend.replaceChildren();
    move = stage.prepare(svg, width, legend);
    svg.append(shape("g", { class: "moving" }));
    go(step);
  });

  function show(newFamily) {
    family = newFamily;
    offer(byId("player-method"), [...new Set(family.cells.map(cellKind))]);
    chooseMethod();
  }

  const cells = () => {
    const kind = byId("player-method").selectedOptions[0]?.textContent;
    return family.cells.filter((one) => cellKind(one) === kind);
  };

  function chooseMethod() {
    offer(byId("player-instance"), [...new Set(cells().map((one) => one.instance))]);
    chooseInstance();
  }

  function chooseInstance() {
    const instance = byId("player-instance").selectedOptions[0]?.textContent;
    offer(
      byId("player-seed"),
      cells()
        .filter((one) => String(one.instance) === instance)
        .map((one) => one.seed),
    );
    chooseCell();
  }

  function chooseCell() {
    const [instance, seed] = ["player-instance", "player-seed"].map((id) => byId(id).selectedOptions[0]?.textContent);
    cell = cells().find((one) => String(one.instance) === instance && String(one.seed) === seed);
    stage = STAGES[family.scene.kind](family.scene, cell, data);
    pause();
    step = 0;
    slider.max = String(cell.actions.length);
    byId("player-caption").textContent = `${cell.instance}: ${stage.caption}. ${outcome(cell)}`;
    const rows = family.scene.parameters.map((name, i) => [
      name,
      family.scene.meanings[name] ?? "",
      shortNumber(cell.theta[i], 5),
    ]);
    byId("player-theta").replaceChildren(
      table(
        null,
        rows.map(([name, meaning, value]) => [element("th", { scope: "row" }, name), value, meaning]),
      ),
    );
    draw();
  }

  /** Show one step. */
  function go(to, aloud = false) {
    step = Math.min(cell.actions.length, Math.max(0, to));
    const layer = svg.querySelector(".moving");
    layer?.replaceChildren();
    if (layer) move(layer, step);
    const action = step > 0 ? (family.scene.actions[cell.actions[step - 1]] ?? cell.actions[step - 1]) : null;
    const place = `step ${step} of ${cell.actions.length}`,
      time = stage.time(step);
    const values = cell.states.map((values, k) => `${family.scene.states[k] ?? k} ${shortNumber(values[step])}`);
    byId("player-readout").textContent = [place, time, action === null ? "start" : `action ${action}`, ...values]
      .filter(Boolean)
      .join(" · ");
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", place);
    if (aloud) say(byId("player-readout").textContent);
  }

  function pause() {
    cancelAnimationFrame(playing);
    playing = null;
    play.textContent = "▶ Play";
  }

  function start() {
    if (step >= cell.actions.length) go(0);
    let last = performance.now();
    const tick = (now) => {
      const each = 1000 / Number(byId("player-speed").value);
      // After a time in the background the episode continues where it was.
      if (now - last > 1000) last = now - each;
      const due = Math.floor((now - last) / each);
      last += due * each;
      if (due > 0) go(step + due);
      if (step >= cell.actions.length) pause();
      else playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
    play.textContent = "❚❚ Pause";
  }

  const toggle = () => (playing === null ? start() : pause());
  function stepTo(to, aloud) {
    pause();
    go(to, aloud);
  }

  play.addEventListener("click", toggle);
  byId("player-back").addEventListener("click", () => stepTo(step - 1, true));
  byId("player-forward").addEventListener("click", () => stepTo(step + 1, true));
  slider.addEventListener("input", () => stepTo(Number(slider.value)));
  byId("player-method").addEventListener("change", chooseMethod);
  byId("player-instance").addEventListener("change", chooseInstance);
  byId("player-seed").addEventListener("change", chooseCell);
  byId("player").addEventListener("keydown", (event) => {
    // Selects and the list of parameters keep their own keys; so does a button its space bar, the slider its arrows.
    const button = event.target.closest("button") !== null;
    if (event.target !== host && event.target !== slider && !button) return;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: cell.actions.length };
    if (event.key === " " && !button) toggle();
    else if (event.key in moves && event.target !== slider) stepTo(moves[event.key], true);
    else return;
    event.preventDefault();
  });
  return { show };
}

/** The method of a cell, with what sets it apart. */
function cellKind(cell) {
  const parts = [cell.method.replaceAll("_", "-")];
  if (cell.variant !== "plain") parts.push(cell.variant);
  if (cell.metrics.seconds.length > 50) parts.push("long run");
  return parts.join(", ");
}

/** How well the policy does that is shown. */
function outcome(cell) {
  const last = (name) => cell.metrics[name]?.at(-1) ?? null;
  const value = last("score") === null ? `return ${shortNumber(last("returns"))}` : `score ${score(last("score"))}`;
  const success = `success ${Math.round(100 * (last("success") ?? 0))} %`;
  return `Policy after ${count(cell.metrics.seconds.length, "episode")}: ${value}, ${success}.`;
}
