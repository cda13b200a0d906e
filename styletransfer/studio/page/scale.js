// Where on a slider a number stands: evenly, or by its logarithm.

const NOTCHES = 1000;
// A logarithmic slider that begins at 0 is linear up to about this share of its largest number.
const BEND = 1 / 500;

const rounded = (value) => Number(value.toPrecision(2));

/** Return how a control's numbers and positions from 0 to 1000 stand for each other. */
export function scaleOf({ kind, min, max, step, log }) {
  const whole = kind === "integer" ? Math.round : (value) => value;
  const within = (value) => Math.min(max, Math.max(min, value));
  if (!log) {
    const grid = step || (kind === "integer" ? 1 : (max - min) / 100);
    const even = (value) => Number((min + Math.round((value - min) / grid) * grid).toFixed(6));
    return {
      position: (value) => (NOTCHES * (within(value) - min)) / (max - min),
      value: (position) => within(even(min + (position / NOTCHES) * (max - min))),
    };
  }
  const shift = min > 0 ? 0 : max * BEND;
  const [from, to] = [Math.log(min + shift), Math.log(max + shift)];
  return {
    position: (value) => (NOTCHES * (Math.log(within(value) + shift) - from)) / (to - from),
    value: (position) => {
      if (position <= 0) return min;
      if (position >= NOTCHES) return max;
      const exact = Math.exp(from + (position / NOTCHES) * (to - from)) - shift;
      const nearest =
        kind === "integer" ? Math.round(exact / (step || 1)) * (step || 1) : rounded(exact);
      return within(whole(nearest));
    },
  };
}
