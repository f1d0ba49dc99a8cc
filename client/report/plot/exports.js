// What the pages draw with.
export {cell, dot, gridX, gridY, line, link, plot, ruleX, ruleY, text} from '@observablehq/plot';
