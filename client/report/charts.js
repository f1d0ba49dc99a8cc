// Charts in SVG. Text keeps its size: a chart is drawn for the width that it gets, and again when that changes.

const wide = {left: 64, right: 16, top: 10, bottom: 34};

function linear(low, high, from, to) {
  const scale = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const step = niceStep((high - low) / 5 || 1);
  scale.ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) scale.ticks.push(i * step);
  return scale;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) || 10);
}

function logarithmic(low, high, from, to) {
  const inner = linear(Math.log(low), Math.log(high), from, to);
  const scale = (value) => inner(Math.log(value));
  if (high / low < 2) {
    scale.ticks = linear(low, high, 0, 1).ticks;
    return scale;
  }
  const decades = Math.log10(high / low);
  const factors = decades > 3 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  scale.ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) scale.ticks.push(tick);
    }
  }
  return scale;
}

// Draws with draw(width, height, svg element) as soon as the page has it, before any frame is shown, and on every change of the
// width.
function chart(label, height, draw) {
  const image = svg('svg', {class: 'chart', height, role: 'img', 'aria-label': label});
  const frame = html('div', {class: 'chart'}, image);
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(frame.clientWidth);
    if (width === drawn || width < 50) return;
    drawn = width;
    image.replaceChildren();
    draw(width, height, image);
  };
  queueMicrotask(redraw);
  new ResizeObserver(redraw).observe(frame);
  return frame;
}

function axes(image, width, height, x, y, names) {
  const bottom = height - wide.bottom;
  let free = -Infinity;
  for (const tick of x.ticks) {
    image.append(svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: wide.top, y2: bottom}));
    const text = names.x(tick);
    if (x(tick) - 3.6 * text.length < free) continue;
    free = x(tick) + 3.6 * text.length + 8;
    image.append(svg('text', {x: x(tick), y: bottom + 15, 'text-anchor': 'middle'}, text));
  }
  for (const tick of y.ticks) {
    image.append(
      svg('line', {class: 'grid', x1: wide.left, x2: width - wide.right, y1: y(tick), y2: y(tick)}),
      svg('text', {x: wide.left - 6, y: y(tick) + 4, 'text-anchor': 'end'}, names.y(tick)));
  }
  image.append(svg('text', {x: width - wide.right, y: height - 3, 'text-anchor': 'end'}, names.below));
}

// A row of a bar chart as three cells: name, bar, text. `scale` gives percent of the width.
function bar(name, image, text) {
  return [html('span', {class: 'name'}, name), svg('svg', {}, image), html('span', {}, text)];
}

const at = (share) => `${Math.min(100, Math.max(0, share)).toFixed(3)}%`;

function block(from, to, attributes, title) {
  return svg('rect', {x: at(from), width: at(to - from), y: 2, height: 14, ...attributes}, tip(title));
}

function line(from, to, name, y = 9) {
  return svg('line', {class: name, x1: at(from), x2: at(to), y1: y, y2: y});
}

function legend(entries) {
  return html('div', {class: 'legend'}, entries.map(([name, text]) =>
    html('span', {}, svg('svg', {viewBox: '0 0 12 12'}, svg('circle', {class: name, cx: 6, cy: 6, r: 5})), text)));
}
