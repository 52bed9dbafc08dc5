/**
 * The names of statements that a server keeps prepared: those that are used repeatedly. A server
 * keeps each name on each connection for good, so their number is bounded, and a text that comes
 * once gets none.
 */
const MAX_NAMES = 400
const MAX_COUNTED = 1_000
const USES = 3

export class StatementNames {
  readonly #names = new Map<string, string>()
  readonly #uses = new Map<string, number>()

  /** Undefined for a text that is to be sent as a whole. */
  of(sql: string): string | undefined {
    const name = this.#names.get(sql)
    if (name !== undefined || this.#names.size >= MAX_NAMES) return name
    const uses = (this.#uses.get(sql) ?? 0) + 1
    this.#uses.delete(sql)
    if (uses >= USES) return this.#give(sql)
    this.#uses.set(sql, uses)
    // The text that was used longest ago.
    const [oldest] = this.#uses.keys()
    if (this.#uses.size > MAX_COUNTED && oldest !== undefined) this.#uses.delete(oldest)
    return undefined
  }

  #give(sql: string): string {
    const name = `s${this.#names.size}`
    this.#names.set(sql, name)
    return name
  }
}
