// The page of a verdict: `report` is the verdict.

const problemText = ({dims, types, flags}) => joined({...dims, ...types, ...flags});
const gainText = (one) => (one.gain === undefined ? '–' : `${times(one.gain)} (${times(one.gain_low)} to ${times(one.gain_high)})`);
const digest = (text) => html('code', {title: text}, text.slice(0, 12));

function outcome() {
  document.title = `${report.outcome} – cubind verdict`;
  return html('header', {}, html('h1', {}, `${report.task.name}: ${report.outcome}`),
    html('p', {class: 'quiet'}, `Judged ${report.judged_at.slice(0, 16).replace('T', ' ')} UTC on ${report.device}` +
      `${report.toolchain ? ` with ${report.toolchain} and driver ${report.driver}` : ''}, policy ${report.policy}.`),
    report.gain === undefined ? null : html('p', {}, `The baseline takes ${gainText(report)} times as long as the source, ` +
      'with its 95 % interval, as the geometric mean over the problems.'));
}

const finals = (trial) => trial.blocks.filter((block) => block.stage === 'final' && block.samples_us.length > 0)
  .map((block) => ({round: block.index, us: median(block.samples_us)}));

function timed(problem) {
  const trials = [['main', 'the source', problem.source], ['second', 'the baseline', problem.baseline]];
  const rounds = trials.flatMap(([name, , trial]) => (trial ? finals(trial).map((one) => ({...one, name})) : []));
  if (rounds.length === 0) return absent('It was not timed.');
  return [
    legend(trials.map(([name, text]) => [name, text])),
    chart(`times of each round, in microseconds, for ${problemText(problem.problem)}`, 220, () => ({
      x: {label: 'round', ticks: 6, tickFormat: String}, y: {label: 'µs', ticks: 5, zero: true},
      marks: [Plot.gridY({ticks: 5}), trials.map(([name]) =>
        Plot.dot(rounds.filter((one) => one.name === name), {x: 'round', y: 'us', r: 3, className: name}))],
    }))];
}

function verified(problem) {
  const launches = ((problem.source || {}).verifications || []).map((one) => html('li', {},
    `${one.after_timing ? 'after' : 'before'} timing: ${one.outcome}, ${one.worst_excess.toPrecision(3)} of the tolerance` +
    `${one.launches ? `, ${one.launches} launches` : ''}${one.same_bits ? ', the same bits' : ''}`));
  return launches.length > 0 ? html('ul', {}, launches) : null;
}

const judged = (problem, i) => section(`problem-${i}`, `${problemText(problem.problem)}: ${problem.outcome}, ${gainText(problem)}`,
  problem.detail ? html('pre', {}, problem.detail) : null, problem.note ? html('p', {}, problem.note) : null, verified(problem), timed(problem));

const files = (list) => html('ul', {}, list.map((file) => html('li', {}, file.path, ' ', digest(file.sha256))));

document.getElementById('report').replaceChildren(outcome(), ...report.problems.map(judged),
  section('files', 'What was judged against what?', html('h3', {}, 'The source'), files(report.source),
    html('h3', {}, `The task${report.task.from ? ` (from the ${report.task.from})` : ''}, whose reference, tolerances and baseline these are`), files(report.task.files)));
