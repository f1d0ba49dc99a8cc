// The page: its questions in their order.

// The places of a record or job: what the report's title does not say already.
function subject(one) {
  const terms = report.kernel ? [joined(one.problem)] : [one.kernel, joined(one.problem)];
  if (report.devices.length > 1) terms.push(one.device);
  if (one.numerics !== 'tolerance') terms.push(one.numerics);
  if (one.namespace) terms.push(`namespace ${one.namespace}`);
  if (report.policies.length > 1) terms.push(one.policy);
  return terms.join(' · ');
}

report.policies = [...new Set(report.records.concat(report.tunings).map((one) => one.policy))];

// A gain with its interval. Over a library it is the latest comparison's.
const overDefault = (record) => ({gain: record.gain_over_default, low: record.gain_low, high: record.gain_high});
const overLibrary = (record) => {
  const {library, gain, gain_low: low, gain_high: high} = (record.over_library || []).at(-1) || {};
  return {gain, low, high, library};
};

const isTie = ({gain, low, high}) => low <= 1 && high >= 1 || Math.abs(gain - 1) <= 0.001;

function heading() {
  const device = report.devices.map((one) => one.label).join(', ');
  const hardware = report.devices.map((one) => `${one.name || one.label}: compute capability ${one.compute_capability}, ` +
    `${one.sm_count} SMs, ${(one.memory_bytes / 2 ** 30).toFixed(0)} GiB, L2 ${(one.l2_bytes / 2 ** 20).toFixed(0)} MiB` +
    (one.power_limit_mw ? `, ${one.power_limit_mw / 1000} W` : ''));
  document.title = `${report.kernel || 'all kernels'} – cubind report`;
  return html('header', {}, html('h1', {}, `${report.kernel || 'All kernels'}${device ? ` on ${device}` : ''}`),
    html('p', {class: 'quiet'}, `Made ${report.created_at.slice(0, 16).replace('T', ' ')} UTC by cubindctl ${report.cubindctl} ` +
      `from a daemon ${report.daemon}, generation ${report.generation.number}. ${hardware.slice(0, 4).join('; ')}`),
    replayed(),
    report.remarks.map(absent));
}

function replayed() {
  const labels = report.devices.filter((one) => one.replayed).map((one) => one.label);
  return labels.length === 0 ? null : html('p', {class: 'banner'},
    `Replayed: what is shown for ${labels.join(', ')} was played from recorded trials and was not measured on this machine.`);
}

function gains() {
  if (report.records.length === 0) return section('gain', 'Was it worth it?', absent('No winner is stored yet.'));
  return section('gain', 'Was it worth it?',
    gainsOver('the default', overDefault, 'Lines are 99 % intervals, where the store has the samples.',
      'No record has a measured default to compare with.'),
    gainsOver('the library', overLibrary, 'Lines are 95 % intervals. Clients that ran both have reported them.',
      'No client has compared a record with a library: `cubind.torch.tune` does.'));
}

function gainsOver(other, over, intervals, none) {
  const order = report.records.map((record) => ({record, other, ...over(record)})).filter((one) => one.gain !== undefined)
    .sort((a, b) => b.gain - a.gain);
  if (order.length === 0) return absent(none);
  const ties = order.filter(isTie).length;
  const losses = order.filter((one) => one.gain < 1 && !isTie(one)).length;
  const text = `The winner beats ${other} for ${order.length - ties - losses} of ${count(order.length, 'record')}` +
    (losses ? ` and loses for ${losses}` : '') + `; ${ties} tie${ties === 1 ? 's' : ''} (grey). ` +
    `The median gain is ${times(median(order.map((one) => one.gain)))}, the largest ${times(order[0].gain)}. ${intervals}` +
    (order.length < report.records.length ? ` Left out: ${count(report.records.length - order.length, 'record')} without that comparison.` : '');
  return [html('p', {}, text), order.length <= 40 ? gainBars(order) : gainCurve(order)];
}

const gainColour = (one) => (isTie(one) ? 'tie' : one.gain < 1 ? 'second' : 'main');
const gainTip = (one) => `${subject(one.record)}: ${one.gain.toFixed(3)} times as fast as ${one.library || one.other}` +
  (one.low ? ` (${one.low.toFixed(3)} to ${one.high.toFixed(3)})` : '');

// From 1, a tie, to the gain.
function gainBars(order) {
  const all = order.flatMap(({gain, low, high}) => [gain, low || 1, high || 1]);
  const [low, high] = [Math.min(1, ...all), Math.max(1.02, ...all)];
  const scale = (gain) => 2 + (96 * (gain - low)) / (high - low);
  return html('div', {class: 'rows'}, order.map((one) => bar(subject(one.record), [
    block(scale(Math.min(1, one.gain)), scale(Math.max(1, one.gain)), {fill: `var(--${gainColour(one)})`}, gainTip(one)),
    svg('line', {class: 'axis', x1: at(scale(1)), x2: at(scale(1)), y1: 0, y2: 18}),
    one.low ? line(scale(one.low), scale(one.high), 'whisker') : null,
    svg('circle', {fill: `var(--${gainColour(one)})`, cx: at(scale(one.gain)), cy: 9, r: 4}, tip(gainTip(one))),
  ], times(one.gain))));
}

function gainCurve(order) {
  const ranked = order.map((one, i) => ({...one, rank: i + 1, colour: `var(--${gainColour(one)})`}));
  const label = `the gain of each record over ${order[0].other}, sorted`;
  return chart(label, 280, () => ({
    x: {label: 'records, by their gain', ticks: 6, tickFormat: String},
    y: {type: 'log', label: `times as fast as ${order[0].other}`, ticks: 5, tickFormat: times,
      domain: [Math.min(0.98, order.at(-1).gain), Math.max(1.1, order[0].gain)]},
    marks: [
      Plot.gridY({ticks: 5}),
      Plot.ruleX(ranked.filter((one) => one.low), {x: 'rank', y1: 'low', y2: 'high', className: 'whisker'}),
      Plot.dot(ranked, {x: 'rank', y: 'gain', r: order.length > 1000 ? 2 : 3.5, fill: 'colour', title: gainTip}),
    ],
  }));
}

const hasEnded = (job) => ['done', 'failed', 'cancelled'].includes(job.state);

function stageTimes(job) {
  const stages = Object.entries(job.stages_ms || {});
  const told = stages.reduce((sum, [, ms]) => sum + ms, 0);
  return job.elapsed_ms - told > 1 ? [...stages, ['other', job.elapsed_ms - told]] : stages;
}

function timeSpent() {
  const question = 'Where did the time go?';
  const jobs = report.jobs.filter((job) => job.elapsed_ms > 0 && hasEnded(job)).sort((a, b) => b.elapsed_ms - a.elapsed_ms);
  if (jobs.length === 0) return section('time', question, absent(report.jobs.length > 0 ? 'A job tells its stages when it ends.' :
    'The daemon lists no job that has run: it keeps jobs for 30 days, and those of records in force.'));
  const totals = new Map();
  for (const [stage, ms] of jobs.flatMap(stageTimes)) totals.set(stage, (totals.get(stage) || 0) + ms);
  const stages = [...totals].sort((a, b) => b[1] - a[1]).map(([stage]) => stage);
  const colour = (stage) => `stage-${stage}`;
  const all = jobs.reduce((sum, job) => sum + job.elapsed_ms, 0);
  const most = stages[0];
  const strip = (job) => {
    let from = 0;
    return stageTimes(job).map(([stage, ms]) => {
      const start = from;
      from += (100 * ms) / jobs[0].elapsed_ms;
      return block(start, from, {class: colour(stage)}, `${stage}: ${duration(1000 * ms)} of job ${job.id}`);
    });
  };
  return section('time', question,
    html('p', {}, `${count(jobs.length, 'job')} took ${duration(1000 * all)}; ${percent(totals.get(most) / all)} of it went to ${most}. ` +
      (jobs.length > 20 ? 'The 20 longest are shown.' : 'Each strip is a job.')),
    legend(stages.map((stage) => [colour(stage), `${stage} ${part(totals.get(stage) / all)}`])),
    html('div', {class: 'rows'}, jobs.slice(0, 20).map((job) => bar(subject(job), strip(job), duration(1000 * job.elapsed_ms)))));
}

function failedJobs() {
  const failed = report.jobs.filter((job) => job.state === 'failed');
  if (failed.length === 0) return null;
  const column = (name, text, more = {}) => ({name, value: text, text, ...more});
  return [html('p', {}, `${count(failed.length, 'job')} failed.`),
    table([column('subject', subject), column('error', (job) => job.error || ''),
      column('command', (job) => job.command || '', {cell: (job) => job.command && command(job.command)}),
      column('job', (job) => job.id)], failed, {cards: true})];
}

function coverage() {
  const question = 'What is covered, and how stable is it?';
  const records = report.records;
  if (records.length === 0) return section('covered', question, absent('No record is stored: `cubindctl tune` makes one.'));
  const width = (record) => (record.time_high_us - record.time_low_us) / record.time_us;
  const marks = (record) => ['provisional', 'throttled', 'contended'].filter((name) => record[name]).join(', ');
  const tools = [...new Set(records.map((record) => record.toolchain))];
  const drivers = [...new Set(records.map((record) => record.driver))];
  const oldest = records.map((record) => record.measured_at).sort()[0];
  const text = (name, get, more = {}) => ({name, value: get, text: get, ...more});
  const number = (name, get, show) => ({name, number: true, value: get, text: (record) => (get(record) === undefined ? '–' : show(get(record)))});
  const gainText = (record) => {
    const {gain, low, high} = overDefault(record);
    return gain ? times(gain) + (low ? ` (${low.toFixed(2)} to ${high.toFixed(2)})` : '') : '–';
  };
  return section('covered', question,
    html('p', {}, `${count(records.length, 'record')}, the oldest ${age(oldest, report.created_at)} old at the time of this report, by ` +
      `${tools.join(' and ')} and driver ${drivers.join(' and ')}. Half of the 95 % intervals are narrower than ` +
      `${percent(median(records.map(width)), 2)} of the time. How a record changed over earlier measurements is left out: a table has the records in force alone.`),
    table([
      text('problem', subject, {wide: true}), text('evidence', (record) => record.evidence),
      number('time, µs', (record) => record.time_us, (us) => us.toFixed(2)),
      number('interval', width, (share) => percent(share, 2)),
      {...number('over the default', (record) => overDefault(record).gain), text: gainText},
      number('samples', (record) => record.samples, String),
      number('SM, MHz', (record) => record.sm_mhz, String), text('marks', marks),
      {...number('age', (record) => -Date.parse(record.measured_at), () => ''), text: (record) => age(record.measured_at, report.created_at)},
      text('toolchain', (record) => record.toolchain), text('driver', (record) => record.driver),
      number('verified at', (record) => record.verified_problems, (problems) => count(problems, 'problem')),
      text('winner', (record) => joined(record.configuration)),
    ], records));
}

// Of the configurations that several problems have timed: their time over the problem's best, best configurations first.
function common() {
  const tried = new Map();
  for (const tuning of report.tunings) {
    for (const trial of tuning.best) {
      const name = joined(trial.configuration);
      if (!tried.has(name)) tried.set(name, {name, cells: []});
      tried.get(name).cells.push({tuning, ratio: trial.time_us / tuning.best[0].time_us});
    }
  }
  const worst = (one) => Math.max(...one.cells.map((cell) => cell.ratio));
  const shared = [...tried.values()].filter((one) => one.cells.length > 1)
    .sort((a, b) => b.cells.length - a.cells.length || worst(a) - worst(b));
  if (shared.length === 0) return null;
  const shown = shared.slice(0, 60).flatMap((one, i) => one.cells.map((cell) => ({...cell, rank: i + 1, name: one.name})));
  const best = shared[0];
  const problems = report.tunings.filter((tuning) => shown.some((cell) => cell.tuning === tuning)).map(subject);
  return section('common', 'Which configurations are good everywhere?',
    html('p', {}, `${best.name} is at most ${percent(worst(best) - 1, 1)} slower than the best of each of ${count(best.cells.length, 'problem')}. ` +
      'Columns are configurations, rows are problems; the darker a cell, the nearer to its row\'s best, and one that is a quarter slower is empty.'),
    chart('the time of each configuration over the best of its problem', 40 + 22 * problems.length + 40, (width) => ({
      x: {label: shared.length > 60 ? 'the 60 best configurations' : 'configurations', type: 'band', tickSize: 0, tickFormat: () => ''},
      y: {label: null, domain: problems, tickFormat: (name) => name.slice(0, width / 40)}, marginLeft: 20 + width / 6, marginRight: 8,
      opacity: {type: 'identity'},
      marks: [Plot.cell(shown, {x: 'rank', y: (cell) => subject(cell.tuning), fill: 'var(--main)', inset: 0.5, className: 'cells',
        fillOpacity: (cell) => Math.max(0, 5 - 4 * cell.ratio),
        title: (cell) => `${subject(cell.tuning)}: ${times(cell.ratio)} its best, ${cell.name}`})],
    })));
}

// The views of one tuning, and a choice among several.
function tuningViews() {
  const views = html('div');
  const show = (tuning) => views.replaceChildren(
    section('best', 'How fast did it find the best?', whyItWon(tuning), bestSoFar(tuning)),
    section('tunables', 'Which tunable matters?', tunables(tuning)),
    section('limit', 'What is the limit?', limit(tuning)),
    section('failed', 'What failed, and why?', failedJobs(), failures(tuning)));
  if (report.tunings.length === 0) {
    const none = 'The trials of a tuning would show it, and this report has none.';
    views.append(section('tunables', 'Which tunable matters?', absent(none)), section('limit', 'What is the limit?', absent(none)),
      section('failed', 'What failed, and why?', failedJobs() || absent('No job has failed. The trials are not in this report.')));
    return views;
  }
  show(report.tunings[0]);
  if (report.tunings.length === 1) return views;
  const choice = html('select', {id: 'tuning', onchange: () => show(report.tunings[choice.selectedIndex])},
    report.tunings.map((tuning) => html('option', {}, subject(tuning))));
  return html('div', {}, html('div', {class: 'tools picker'}, html('label', {for: 'tuning'}, 'Trials of'), choice), views);
}

document.getElementById('report').replaceChildren(
  ...[heading(), gains(), timeSpent(), tuningViews(), common(), coverage()].filter(Boolean));
