/** The money after power cuts: `outlive` without calls that are held. */
import { numbersOf } from './load/options.ts'
import { run as outlive } from './outlive.ts'

export const describe =
  'kill -9 at random moments under load, books checked; arguments: rounds=20 rate=200 seed=1'

export function run(words: readonly string[] = []): Promise<void> {
  const { rounds, rate, seed } = numbersOf(words, { rounds: 20, rate: 200, seed: 1 })
  return outlive(['calls=0', `kills=${rounds}`, `rate=${rate}`, `seed=${seed}`])
}
