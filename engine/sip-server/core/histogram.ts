/** Observations counted in buckets, as Prometheus has them. */

export class Histogram {
  readonly bounds: readonly number[]
  /**
   * Observations up to each bound and above the one before; the last are those above all bounds.
   */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = [...bounds, Infinity].map(() => 0)
  }

  observe(value: number): void {
    const found = this.bounds.findIndex((bound) => value <= bound)
    const index = found === -1 ? this.bounds.length : found
    this.counts[index] = (this.counts[index] ?? 0) + 1
    this.sum += value
  }
}
