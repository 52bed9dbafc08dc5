/**
 * What is unusual against the past. Deterministic, and the same for every kind: the value of the period is compared with
 * the values of each of the 14 days before, or of the same hours on them. Unusual is what is at least the floor, several times the mean,
 * and clearly above the greatest of those days: a busy Monday after two quiet Sundays is not. Floors are absolute, so that
 * small installations are not noisy. What has no past at all needs a greater floor.
 */

/** Days that a period is compared with. */
export const PAST_DAYS = 14

export interface Limits {
  /** Less than this is never unusual. */
  readonly floor: number
  /** The same for a subject without a past. */
  readonly newFloor: number
  /** How many times the mean. */
  readonly factor: number
}

/** How far above the greatest value of the past. */
const ABOVE_GREATEST = 1.5

export interface Comparison {
  readonly isUnusual: boolean
  /** Per day of the past. */
  readonly mean: number
  readonly greatest: number
}

/**
 * @param past one value for each day, in any order; days without a value are 0.
 * @param hasPast whether the subject did anything on those days.
 */
export function compared(
  value: number,
  past: readonly number[],
  hasPast: boolean,
  { floor, newFloor, factor }: Limits,
): Comparison {
  const mean = past.reduce((sum, each) => sum + each, 0) / Math.max(1, past.length)
  const greatest = Math.max(0, ...past)
  const isUnusual = hasPast
    ? value >= floor && value >= mean * factor && value > greatest * ABOVE_GREATEST
    : value >= newFloor
  return { isUnusual, mean, greatest }
}
