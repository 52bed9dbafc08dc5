/** Random decisions that follow from a seed. */
import { seededRandom } from '../../support/seeded-random.ts'

export class Chance {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  is(probability: number): boolean {
    return this.#random() < probability
  }

  /** A whole number, both limits included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  pick<T>(values: readonly [T, ...T[]]): T
  pick<T>(values: readonly T[]): T | undefined
  pick<T>(values: readonly T[]): T | undefined {
    return values[Math.floor(this.#random() * values.length)]
  }

  /** Draws a name by its weight: the sum of all is the whole. */
  weighted<T extends string>(weights: { readonly [name in T]: number }): T {
    const entries = Object.entries<number>(weights) as [T, number][]
    let left = this.#random() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    throw new Error('no weights')
  }
}
