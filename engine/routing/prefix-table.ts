/** Longest prefix of a called number: one map look-up per digit, however many prefixes there are. */

/** International numbers are stored and called with and without `+`: it never decides a match. */
export const digitsOf = (number: string) => (number.startsWith('+') ? number.slice(1) : number)

export class PrefixTable<Value> {
  readonly #values = new Map<string, Value[]>()
  readonly #longest: number

  constructor(entries: Iterable<readonly [string, Value]>) {
    for (const [prefix, value] of entries) {
      const digits = digitsOf(prefix)
      this.#values.set(digits, [...(this.#values.get(digits) ?? []), value])
    }
    this.#longest = Math.max(0, ...[...this.#values.keys()].map((prefix) => prefix.length))
  }

  /** What is stored under the prefixes of a number, longest first; equal prefixes together. */
  *matching(number: string): Generator<readonly Value[]> {
    const digits = digitsOf(number)
    for (let length = Math.min(digits.length, this.#longest); length >= 0; length -= 1) {
      const values = this.#values.get(digits.slice(0, length))
      if (values) yield values
    }
  }
}
