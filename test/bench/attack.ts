/**
 * The attack families of the tests, for longer and from another seed. One verdict each; exit code 1
 * when one got through.
 */
import { attackByBodies } from './load/body-attack.ts'
import { attacks } from '../support/attacks/index.ts'
import { type Attack, startWorld } from '../support/attacks/world.ts'
import { seededRandom } from '../support/seeded-random.ts'

export const describe =
  'attack families against the started program, a verdict each, and calls beside what a tenant may send to each route ' +
  'that takes a body; arguments: part=all|families|bodies seconds=20 (bodies: 5) seed=1 only=NAME rate=50 (calls a second)'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const seconds = Number(options.get('seconds') ?? 20)
  const seed = Number(options.get('seed') ?? 1)
  const only = options.get('only') ?? ''
  const part = options.get('part') ?? 'all'
  if (part !== 'families') {
    const besides = { seconds: Number(options.get('seconds') ?? 5), only }
    const rate = Number(options.get('rate') ?? 50)
    if (!(await attackByBodies({ ...besides, rate }))) process.exitCode = 1
  }
  if (part === 'bodies') return
  for (const attack of attacks.filter(({ name }) => name.includes(only)))
    await judge(attack, seconds, seed)
}

/** Each in a world of its own: what one breaks is not the other's fault. */
async function judge(attack: Attack, seconds: number, seed: number): Promise<void> {
  const world = await startWorld(seededRandom(seed))
  try {
    const { tried, breaches } = await attack.run(world, performance.now() + seconds * 1_000)
    console.log(`  ${breaches.length === 0 ? 'held  ' : 'BROKEN'}  ${attack.name}: ${tried}`)
    if (breaches.length === 0) return
    process.exitCode = 1
    console.log(`          against: ${attack.guarantee}`)
    for (const breach of breaches.slice(0, 5)) console.log(`          ${breach}`)
    if (breaches.length > 5) console.log(`          and ${breaches.length - 5} more`)
  } finally {
    await world.stop()
  }
}
