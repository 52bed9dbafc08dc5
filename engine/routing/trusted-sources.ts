import { NetworkTable, networkOf } from './network-table.ts'

/** Networks whose requests are trusted (`TRUSTED_SOURCES`). */
export class TrustedSources {
  readonly #table: NetworkTable<true>

  /** @throws {RangeError} for a text that is no network; `config.ts` has checked them before. */
  constructor(networks: readonly string[]) {
    this.#table = new NetworkTable(networks.map((text) => [networkOf(text), true] as const))
  }

  has(address: string): boolean {
    return this.#table.lookup(address).length > 0
  }
}
