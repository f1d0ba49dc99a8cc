// What the trials of one tuning show.

const winnerOf = (tuning) => tuning.best.find((trial) => trial.is_winner);

function whyItWon({winner, remarks}) {
  const text = winner.configuration ? `The winner is ${joined(winner.configuration)}: ${duration(winner.time_us)}` +
    `${overDefault(winner).gain ? `, ${times(overDefault(winner).gain)} over the default` : ''}` +
    `${winner.reason ? `; ${winner.reason}` : ''}.` : null;
  return [text && html('p', {}, text), remarks.filter((remark) => !remark.includes('roofline')).map(absent)];
}

function bestSoFar(tuning) {
  const best = tuning.best.map((trial) => trial.judged_against_us).filter((us) => us > 0).sort((a, b) => b - a);
  if (best.length < 2) return absent('How the best time fell is left out: the store does not say what the trials were judged against.');
  const last = best[best.length - 1];
  const near = best.findIndex((us) => us <= 1.01 * last) + 1;
  return [
    html('p', {}, `After ${near} of ${count(tuning.best.length, 'timed trial')} the best screened time was within 1 % of where it ended, ` +
      `${duration(last)}. Screening takes a few samples of each trial; only the finalists are measured at length, and the winner's time is theirs. ` +
      'Trials that met the same best are in no certain order.'),
    chart('the best screened time so far, in microseconds, by timed trials', 220, () => ({
      x: {label: 'timed trials', ticks: 6, tickFormat: String}, y: {label: 'best screened time, µs', ticks: 5, domain: [Math.min(last, 0.95 * best[0]), best[0]]},
      marks: [Plot.gridY({ticks: 5}), Plot.line(best, {x: (_, i) => i + 1, y: (us) => us, curve: 'step-after', className: 'curve'})],
    }))];
}

function valuesOf(tuning, name) {
  const values = new Map();
  for (const trial of tuning.best) {
    const value = trial.configuration[name];
    if (!values.has(value)) values.set(value, []);
    values.get(value).push(trial.time_us);
  }
  return [...values].sort(([a], [b]) => a - b).map(([value, all]) => {
    const ordered = sorted(all);
    return {value, trials: all.length, low: quantile(ordered, 0.25), middle: quantile(ordered, 0.5), high: quantile(ordered, 0.75)};
  });
}

function tunablePanel(effect, rows, scale, fastest) {
  const most = 16;
  const cells = rows.slice(0, most).map((row) => bar(String(row.value), [
    svg('rect', {class: 'track', width: '100%', y: 2, height: 14}),
    line(scale(row.low), scale(row.high), 'range'),
    svg('circle', {class: 'main', cx: at(scale(row.middle)), cy: 9, r: 5},
      tip(`${effect.name}=${row.value}: median ${duration(row.middle)}, ${count(row.trials, 'trial')}`)),
  ], `${times(row.middle / fastest)} · ${row.trials}`));
  return html('div', {class: 'panel'}, html('h3', {}, `${effect.name} explains ${percent(effect.explained)}`),
    html('div', {class: 'rows'}, cells),
    rows.length > most ? html('p', {class: 'quiet'}, `${rows.length - most} more values`) : null);
}

function tunables(tuning) {
  if (tuning.tunables.length === 0) return absent('No tunable was timed with two values.');
  const rows = tuning.tunables.map((effect) => valuesOf(tuning, effect.name));
  const all = rows.flat();
  const fastest = tuning.best[0].time_us;
  const widest = Math.log(1.02 * Math.max(...all.map((row) => row.high)) / fastest);
  const scale = (us) => 2 + (96 * Math.log(us / fastest)) / widest;
  const first = tuning.tunables[0];
  return [
    html('p', {}, `${first.name} explains the most by itself, ${percent(first.explained)} of the variance of the times. ` +
      'Dots are medians as multiples of the fastest time, bars the middle half, then the number of trials. ' +
      'The search prefers fast configurations, so values that it tried rarely say little, and of tunables that it changed together ' +
      'only one may matter.'),
    html('div', {class: 'panels'}, tuning.tunables.map((effect, i) => tunablePanel(effect, rows[i], scale, fastest))),
    combined(tuning, rows)];
}

// A line per trial through its values; the fastest twentieth, at least five, on top of the others.
function combined(tuning, rows) {
  const trials = tuning.best.slice(0, 600);
  const fast = Math.min(trials.length, Math.max(5, Math.ceil(trials.length / 20)));
  const columns = tuning.tunables.map((effect, i) => ({name: `${i}. ${effect.name}`, effect, values: rows[i].map((row) => row.value)}));
  const slowest = Math.log(1.001 * trials.at(-1).time_us / trials[0].time_us);
  const points = trials.flatMap((trial, i) => [
    ...columns.map(({name, effect, values}) => ({i, name, y: (values.indexOf(trial.configuration[effect.name]) + 0.5) / values.length})),
    {i, name: 'time', y: Math.log(trial.time_us / trials[0].time_us) / slowest}]);
  const values = columns.flatMap((column) => column.values.slice(0, 12).map((value, i) => (
    {name: column.name, y: (i + 0.5) / column.values.length, value: String(value)})));
  const lines = (name, of) => Plot.line(points.filter(of), {x: 'name', y: 'y', z: 'i', className: name});
  return [html('h3', {}, 'Which values go together?'),
    html('p', {}, `Each line is a trial, from its values to its time (low is fast). The ${fast} fastest are coloured.`),
    chart('the values of each trial, and its time', 300, (width) => ({
      x: {type: 'point', label: null, domain: [...columns.map((column) => column.name), 'time'],
        tickFormat: (name) => name.replace(/^\d+\. /, '').slice(0, 12), tickRotate: width / columns.length < 100 ? -30 : 0},
      y: {axis: null, domain: [0, 1]}, marginLeft: 40, marginBottom: 48,
      marks: [Plot.gridX(), lines('slow', ({i}) => i >= fast), lines('fast', ({i}) => i < fast),
        Plot.text(values, {x: 'name', y: 'y', text: 'value', dx: 4, textAnchor: 'start'})],
    }))];
}

const marked = (trial) => (trial.is_winner ? 'winner' : trial.is_default ? 'default' : 'point');
const drawnLast = (trials) => [...trials].sort((a, b) => (a.is_winner || a.is_default || 0) - (b.is_winner || b.is_default || 0));

function limit(tuning) {
  const reached = tuning.best.filter((trial) => trial.roofline_share !== undefined);
  if (reached.length === 0) {
    return absent(tuning.remarks.find((remark) => remark.includes('roofline')) || 'No trial was timed.');
  }
  const one = winnerOf(tuning) || reached[0];
  const {work, peak} = tuning;
  const byMemory = work.bytes / peak.bytes_per_second >= (work.flops || 0) / (peak.flops_per_second || 1);
  const bound = byMemory ? `the memory's peak of ${(peak.bytes_per_second / 1e9).toFixed(0)} GB/s` :
    `the peak of the fastest dense instruction, ${(peak.flops_per_second / 1e12).toFixed(1)} TFLOP/s`;
  const text = one.roofline_share === undefined ? '' :
    `The ${one.is_winner ? 'winner' : 'fastest'} reaches ${percent(one.roofline_share)} of the limit, which is ${bound}. `;
  const cached = reached.some((trial) => trial.roofline_share > 1) ? 'Above 100 % the L2 serves a part of the data. ' : '';
  return [html('p', {}, `${text}${cached}Each point is a trial.`),
    work.bytes > 0 && work.flops > 0 ? roofline(tuning, reached) : shares(reached),
    legend([['winner', 'winner'], ['default', 'default'], ['point', 'other trials'],
      ...(work.bytes > 0 && work.flops > 0 && report.tunings.length > 1 ? [['faint', 'other problems']] : [])])];
}

function shares(reached) {
  const points = drawnLast(reached).map((trial) => svg('circle', {class: marked(trial), r: 5, cy: 9, cx: at(100 * trial.roofline_share)},
    tip(`${percent(trial.roofline_share)}, ${joined(trial.configuration)}`)));
  return html('div', {class: 'rows'}, bar('share of the limit', [svg('rect', {class: 'track', width: '100%', y: 2, height: 14}), points], '100 %'));
}

function roofline(tuning, reached) {
  const {peak} = tuning;
  const others = report.tunings.filter((one) => one !== tuning && one.device === tuning.device && one.work.bytes > 0 && one.work.flops > 0);
  const intensity = (one) => one.work.flops / one.work.bytes;
  const ridge = peak.flops_per_second / peak.bytes_per_second;
  const all = [tuning, ...others].map(intensity);
  const rates = reached.map((trial) => trial.flops_per_second);
  const [left, right] = [Math.min(...all, ridge) / 4, Math.max(...all, ridge) * 4];
  const roof = [[left, left * peak.bytes_per_second], [ridge, peak.flops_per_second], [right, peak.flops_per_second]];
  const points = (trials, name, r) => Plot.dot(trials, {x: 'x', y: 'flops_per_second', r, className: name,
    title: (trial) => `${duration(trial.time_us)}, ${joined(trial.configuration)}`});
  const place = (one, trials) => trials.map((trial) => ({...trial, x: intensity(one)}));
  const own = place(tuning, reached);
  return chart('every trial below the roofs of memory and instructions', 340, (width) => ({
    x: {type: 'log', label: 'FLOP per byte', domain: [left, right], ticks: width / 120, tickFormat: (value) => String(+value.toPrecision(2))},
    y: {type: 'log', label: 'FLOP/s', clamp: true, ticks: 6, tickFormat: tera,
      domain: [Math.min(...rates, roof[0][1]) / 1.5, Math.max(peak.flops_per_second, ...rates) * 1.5]},
    marks: [Plot.gridX({ticks: width / 120}), Plot.gridY({ticks: 6}), Plot.line(roof, {className: 'roof'}),
      points(others.flatMap((one) => place(one, one.best.slice(0, 1))), 'faint', 3),
      ...['point', 'default', 'winner'].map((name) => points(own.filter((trial) => marked(trial) === name), name, 5))],
  }));
}

function outcomes(tuning) {
  const counts = new Map();
  for (const trial of tuning.failed) counts.set(trial.outcome, (counts.get(trial.outcome) || 0) + 1);
  const unverified = tuning.best.filter((trial) => trial.outcome === 'unverified').length;
  const failed = [...counts].sort((a, b) => b[1] - a[1]).map(([name, number]) => `${number} by ${name}`).join(', ');
  return `Of ${count(tuning.trials, 'configuration')}, ${tuning.failed.length || 'none'} failed${failed ? ` (${failed})` : ''}` +
    (unverified > 0 ? ` and ${unverified} were unverified: too slow to win, so their results were not checked.` : '.');
}

function trialColumns(tuning, rows) {
  const figure = (name, key, text) => ({name, number: true, value: (row) => row[key], text: (row) => (row[key] === undefined ? '–' : text(row[key]))});
  const names = Object.keys((rows[0] || {configuration: {}}).configuration);
  const note = (row) => [row.is_winner && 'winner', row.is_default && 'default', row.screened && 'screened'].filter(Boolean).join(', ');
  const message = {name: 'message', value: (row) => row.message || undefined, text: (row) => (row.message || '').split('\n')[0].slice(0, 60)};
  return [
    {name: 'outcome', value: (row) => row.outcome, text: (row) => row.outcome},
    {name: 'note', value: (row) => note(row) || undefined, text: note},
    ...(tuning.failed.length ? [message] : []),
    figure('time, µs', 'time_us', (us) => us.toFixed(2)),
    {name: '× fastest', number: true, value: (row) => row.time_us, text: (row) => (row.time_us ? (row.time_us / tuning.best[0].time_us).toFixed(2) : '–')},
    ...names.map((name) => ({name, number: true, value: (row) => row.configuration[name], text: (row) => String(row.configuration[name])})),
    figure('roofline', 'roofline_share', (share) => percent(share)),
    figure('registers', 'registers', String),
    figure('shared, B', 'shared_bytes', String),
    figure('spilled, B', 'spilled_bytes', String),
    figure('occupancy', 'occupancy', (share) => percent(share)),
  ];
}

function details(chosen, columns, tuning) {
  if (chosen.length === 0) return [];
  const rows = columns.filter((one) => one.name !== 'message').map((one) => {
    const texts = chosen.map(one.text);
    const differs = texts.some((text) => text !== texts[0]) ? 'differs' : '';
    return html('tr', {}, html('th', {scope: 'row'}, one.name), texts.map((text) => html('td', {class: differs}, text)));
  });
  const commands = chosen.map((row) => [
    row.message ? html('pre', {}, row.message) : null,
    html('p', {class: 'quiet'}, row.command ? 'Try this configuration again:' : 'Measure the problem again, with every configuration:'),
    command(row.command || tuning.command)]);
  return [html('h3', {}, chosen.length === 2 ? 'The two side by side' : 'The chosen one'),
    html('div', {class: 'scroll'}, html('table', {}, html('tbody', {}, rows))), commands];
}

function failures(tuning) {
  const special = (trial) => trial.is_winner || trial.is_default;
  const rows = [...tuning.best.filter(special), ...tuning.failed.map((trial) => ({...trial, bad: true})),
    ...tuning.best.filter((trial) => !special(trial))];
  const columns = trialColumns(tuning, rows);
  const chosen = html('div');
  const changed = (picked) => chosen.replaceChildren(...details(picked, columns, tuning).flat(Infinity).filter(Boolean));
  return [html('p', {}, `${outcomes(tuning)} Choose two rows to compare them and to get the command that repeats one.`),
    table(columns, rows, {choose: {limit: 2, changed}}), chosen];
}
