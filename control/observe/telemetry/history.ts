import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type { HistoryView, NodeHistoryView } from './telemetry-view.ts'

/** Interval between samples of the history. */
export const SAMPLE_SECONDS = 5

/** Ten minutes. */
const MAX_SAMPLES = 120

/** Totals since the start of the process, and current values. */
export interface Measurement {
  /** Milliseconds UTC. */
  readonly at: number
  readonly active: number
  readonly started: number
  readonly ended: number
  readonly answered: number
  readonly delays: number
  readonly delaySumMs: number
  /** Debits by currency. */
  readonly spentMicros: ReadonlyMap<string, bigint>
  readonly lagP99Ms: number
  readonly nodes: readonly {
    readonly setId: number
    readonly nodeId: number
    readonly latencyMs: number | null
  }[]
}

interface NodeLatencies {
  readonly setId: number
  /** Oldest first; null where the node was out of reach, or not there yet. */
  readonly values: (number | null)[]
}

/**
 * The last ten minutes, so that a chart is full when it is opened: the counts of each five seconds,
 * and the latency of each node. A sample takes some microseconds, and calls do nothing for it.
 */
export class History {
  readonly #samples: HistoryView['samples'] = []
  #nodes = new Map<number, NodeLatencies>()
  #last: Measurement

  constructor(first: Measurement) {
    this.#last = first
  }

  /** Called every `SAMPLE_SECONDS`. */
  add(measured: Measurement): void {
    this.#samples.push(sampleBetween(this.#last, measured))
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift()
    this.#nodes = new Map(
      measured.nodes.map(({ setId, nodeId, latencyMs }) => {
        const values = this.#nodes.get(nodeId)?.values ?? []
        values.push(latencyMs)
        if (values.length > MAX_SAMPLES) values.shift()
        return [nodeId, { setId, values }]
      }),
    )
    this.#last = measured
  }

  read(): HistoryView {
    return { interval_seconds: SAMPLE_SECONDS, samples: [...this.#samples] }
  }

  /** Reads the nodes of the sets for which `isVisible` holds. */
  readNodes(isVisible: (setId: number) => boolean): NodeHistoryView {
    const nodes = [...this.#nodes]
      .filter(([, { setId }]) => isVisible(setId))
      .map(([nodeId, { values }]) => ({ node_id: nodeId, latencies_ms: [...values] }))
    return { interval_seconds: SAMPLE_SECONDS, nodes }
  }
}

const sampleBetween = (last: Measurement, next: Measurement): HistoryView['samples'][number] => ({
  at: timeToText(next.at),
  active: next.active,
  started: next.started - last.started,
  ended: next.ended - last.ended,
  answered: next.answered - last.answered,
  post_dial_delay: {
    count: next.delays - last.delays,
    sum_ms: next.delaySumMs - last.delaySumMs,
  },
  spent: [...next.spentMicros].flatMap(([currency, micros]) => {
    const moved = micros - (last.spentMicros.get(currency) ?? 0n)
    return moved === 0n ? [] : [{ currency, amount: moneyToDecimal(moved) }]
  }),
  lag_p99_ms: next.lagP99Ms,
})
