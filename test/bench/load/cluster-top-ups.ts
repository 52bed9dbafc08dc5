/** Top-ups by the API while nodes come and go: a client repeats each, at any node, until one has confirmed it. */
import { setTimeout as later } from 'node:timers/promises'

export interface TopUpOptions {
  /** Addresses of the API. */
  readonly urls: readonly string[]
  readonly token: string
  readonly customerIds: readonly number[]
  /** In units of the currency. */
  readonly amount: number
  readonly everyMs: number
}

export interface TopUpCounts {
  readonly placed: number
  readonly confirmed: number
  /** Requests that were not the first of their top-up. */
  readonly repeated: number
}

const PATIENCE_MS = 3_000
const AGAIN_MS = 250

export class TopUps {
  readonly #random: () => number
  readonly #ticking: NodeJS.Timeout | undefined
  #placed = 0
  #confirmed = 0
  #repeated = 0

  constructor(options: TopUpOptions | undefined, random: () => number) {
    this.#random = random
    if (options !== undefined)
      this.#ticking = setInterval(() => void this.#topUp(options), options.everyMs)
  }

  get counts(): TopUpCounts {
    return { placed: this.#placed, confirmed: this.#confirmed, repeated: this.#repeated }
  }

  /** Begins no further one; those that are not confirmed go on. */
  finish(): void {
    clearInterval(this.#ticking)
  }

  async #topUp({ customerIds, ...options }: TopUpOptions): Promise<void> {
    this.#placed += 1
    const key = `top-up-${this.#placed}`
    const customerId = customerIds[this.#placed % customerIds.length] ?? 0
    while (!(await this.#ask(options, key, customerId))) {
      this.#repeated += 1
      await later(AGAIN_MS)
    }
    this.#confirmed += 1
  }

  /** Whether it is confirmed. */
  async #ask(
    { urls, token, amount }: Omit<TopUpOptions, 'customerIds'>,
    key: string,
    customerId: number,
  ): Promise<boolean> {
    const url = urls[Math.floor(this.#random() * urls.length)] ?? ''
    try {
      const response = await fetch(`${url}/api/v1/customers/${customerId}/wallet/adjust`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${token}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': key,
        },
        body: JSON.stringify({ amount, reason: key, kind: 'topup' }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      await response.arrayBuffer()
      return response.ok
    } catch {
      return false
    }
  }
}
