/** The money after power cuts: `outlive` without calls that are held. */
import type { Leaving } from '../support/unattended-calls.ts'
import { numbersOf } from './load/options.ts'
import { run as outlive } from './outlive.ts'

export const describe =
  'kill -9 at random moments under load, books checked; parties that hang up while the process is away; arguments: ' +
  'rounds=20 rate=200 seed=1 away=60'

export function run(words: readonly string[] = []): Promise<void> {
  const usual = { rounds: 20, rate: 200, seed: 1, away: 60 }
  const { rounds, rate, seed, away } = numbersOf(words, usual)
  const ways: readonly Leaving[] = ['both', 'caller', 'callee', 'silently']
  return outlive(
    ['calls=0', `kills=${rounds}`, `rate=${rate}`, `seed=${seed}`, `away=${away}`],
    ways,
  )
}
