/** What ended calls add up to since the start, by the names under which telemetry shows it. */
import type { CallRecord } from '../schema/call-record.ts'

export class CallTotals {
  readonly #dispositions = new Map<string, number>()
  #calls = 0
  #billsec = 0
  #progressDelayMs = 0
  #progressDelays = 0

  add(record: CallRecord): void {
    const { disposition, postDialDelayMs } = record
    this.#calls += 1
    this.#billsec += record.billsec
    this.#dispositions.set(disposition, (this.#dispositions.get(disposition) ?? 0) + 1)
    if (postDialDelayMs === null) return
    this.#progressDelayMs += postDialDelayMs
    this.#progressDelays += 1
  }

  snapshot(): Readonly<Record<string, number>> {
    const byDisposition = [...this.#dispositions].map(
      ([name, count]) => [`calls_${name.toLowerCase().replace(' ', '_')}_total`, count] as const,
    )
    return {
      calls_total: this.#calls,
      billed_seconds_total: this.#billsec,
      post_dial_delay_ms_sum: this.#progressDelayMs,
      post_dial_delay_count: this.#progressDelays,
      ...Object.fromEntries(byDisposition),
    }
  }
}
