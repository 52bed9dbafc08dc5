/** The attack families in bounded form; longer with `npm run bench -- attack`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { attacks } from '../support/attacks/index.ts'
import { startWorld, type World } from '../support/attacks/world.ts'
import { seededRandom } from '../support/seeded-random.ts'

let world: World

beforeAll(async () => {
  world = await startWorld(seededRandom(Number(process.env['PROPERTY_SEED'] ?? 1) || 1))
})
afterAll(() => world.stop())

test.each(attacks)('$guarantee ($name)', async ({ run }) => {
  const { breaches } = await run(world, performance.now() + 500)
  expect(breaches).toEqual([])
})
