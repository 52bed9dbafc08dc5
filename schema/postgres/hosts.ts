/** Which of the servers of a URL is used: one of them is the primary; the others may be in a while. */
import type pg from 'pg'
import { ATTRIBUTE, urlsOf } from '../net/server-urls.ts'

/** The servers of a URL, of which one is used at a time. */
export class Hosts {
  readonly #urls: readonly string[]
  readonly #mustWrite: boolean
  #current = 0

  constructor(url: string) {
    this.#urls = urlsOf(url) ?? [url]
    const asked = URL.canParse(url) ? new URL(url).searchParams.get(ATTRIBUTE) : null
    this.#mustWrite = this.#urls.length > 1 || (asked ?? 'any') !== 'any'
  }

  get count(): number {
    return this.#urls.length
  }

  /** Of the one that was used last. */
  get url(): string {
    return this.#urls[this.#current] ?? ''
  }

  /** That one does not answer, or takes no writes: the next one is tried. */
  failed(url: string): void {
    if (url === this.url) this.#current = (this.#current + 1) % this.#urls.length
  }

  /**
   * A new connection is to one that takes writes, if that was asked for.
   *
   * @throws {Error} it is a standby.
   */
  async check(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
    if (!this.#mustWrite) return
    const { rows } = await client.query<{ readonly transaction_read_only: string }>(
      'SHOW transaction_read_only',
    )
    if (rows[0]?.transaction_read_only !== 'off') throw new Error('the server is a standby')
  }
}
