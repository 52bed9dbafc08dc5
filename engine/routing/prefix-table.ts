import type { ExitCodes } from '../../schema/contracts/charging.ts'
import {
  ANY_INTERNATIONAL,
  codeLength,
  internationalPrefix,
  withoutPlus as digitsOf,
} from '../../schema/rules/numbers.ts'

/**
 * Finds the longest prefix of a called number: one map look-up per digit, however many prefixes
 * there are.
 */
export class PrefixTable<Value> {
  readonly #values = new Map<string, Value[]>()
  #longest = 0
  readonly #exitCodes: ExitCodes | undefined

  /** @param exitCodes a prefix may begin with one of them. */
  constructor(entries: Iterable<readonly [string, Value]>, exitCodes?: ExitCodes) {
    this.#exitCodes = exitCodes
    for (const [prefix, value] of entries) this.add(prefix, value)
  }

  add(prefix: string, value: Value): void {
    const digits = internationalPrefix(prefix, this.#exitCodes)
    const values = this.#values.get(digits)
    if (values) values.push(value)
    else this.#values.set(digits, [value])
    this.#longest = Math.max(this.#longest, digits.length)
  }

  delete(prefix: string, value: Value): void {
    const digits = internationalPrefix(prefix, this.#exitCodes)
    const values = this.#values.get(digits) ?? []
    const index = values.indexOf(value)
    if (index !== -1) values.splice(index, 1)
    if (values.length === 0) this.#values.delete(digits)
  }

  /** The values under the prefixes of a number, longest first; equal prefixes together. */
  matching(number: string): readonly (readonly Value[])[] {
    const found: (readonly Value[])[] = []
    if (this.#values.size === 0) return found
    const digits = digitsOf(number)
    const abroad = codeLength(number, this.#exitCodes) ?? -1
    const longest = Math.max(abroad, Math.min(digits.length, this.#longest))
    for (let length = longest; length >= 0; length -= 1) {
      const international = length === abroad ? this.#values.get(ANY_INTERNATIONAL) : undefined
      if (international) found.push(international)
      const values = this.#values.get(digits.slice(0, length))
      if (values) found.push(values)
    }
    return found
  }
}
