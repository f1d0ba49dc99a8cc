// Charts by Observable Plot, and rows of bars.

const tera = (rate) => (rate < 1e12 ? `${+(rate / 1e9).toPrecision(2)}G` : `${+(rate / 1e12).toPrecision(2)}T`);

// Draws options(width) of Plot as soon as the page has the chart, before any frame is shown, and on every change of the width:
// text keeps its size. The page's style sheet stands in for Plot's, which the page's policy refuses.
function chart(label, height, options) {
  const frame = html('div', {class: 'chart'});
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(frame.clientWidth);
    if (width === drawn || width < 50) return;
    drawn = width;
    const image = Plot.plot({width, height, marginLeft: 60, marginBottom: 40, ariaLabel: label, ...options(width)});
    image.querySelector('style').remove();
    image.setAttribute('class', 'chart');
    image.setAttribute('role', 'img');
    frame.replaceChildren(image);
  };
  queueMicrotask(redraw);
  new ResizeObserver(redraw).observe(frame);
  return frame;
}

// A row of a bar chart as three cells: name, bar, text. Places are percents of the width.
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
