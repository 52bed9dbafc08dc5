/**
 * Sums of money in SQL, which end at nine trillion units: a database refuses a sum beyond 64 bits,
 * and a few thousand calls at the dearest prices would so end every report.
 */

const LARGEST_UNITS = '9000000000000'
const LARGEST = `${LARGEST_UNITS}000000`

const bounded = (units: string, exact: string): string =>
  `CASE WHEN ${units} > ${LARGEST_UNITS} THEN ${LARGEST}
    WHEN ${units} < -${LARGEST_UNITS} THEN -${LARGEST} ELSE ${exact} END`

/** @param micros an integer column, or expression, without NULL. */
export function sumOfMoney(micros: string): string {
  const units = `sum((${micros}) / 1000000)`
  return bounded(units, `${units} * 1000000 + sum((${micros}) % 1000000)`)
}

export const addedMoney = (one: string, other: string): string =>
  bounded(`${one} / 1000000 + ${other} / 1000000`, `${one} + ${other}`)
