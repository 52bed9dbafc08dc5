/** Whether a measured value opens an alert, or closes it. Pure. */
import type { Measured } from '../../schema/contracts/alert-kinds.ts'

/**
 * `between`: what is, stays. Without this band, a value that trembles at the threshold would open
 * and close alerts all day.
 */
export type AlertVerdict = 'bad' | 'between' | 'good'

export function verdictOn(
  { isBad, margin }: Pick<Measured, 'isBad' | 'margin'>,
  threshold: number,
  value: number,
): AlertVerdict {
  const far = margin(threshold)
  if (isBad === 'below') {
    if (value < threshold) return 'bad'
    return value >= threshold + far ? 'good' : 'between'
  }
  if (value >= threshold) return 'bad'
  return value < threshold - far || far === 0 ? 'good' : 'between'
}
