/** The conservation property of the tests, many more times: `npm run bench -- money`. */
import fc from 'fast-check'
import { conserved, steps } from '../support/money-world.ts'

export const describe =
  'money: 10,000 random histories of calls, top-ups and crashes, books checked'

const numRuns = 10_000

export async function run(): Promise<void> {
  const before = performance.now()
  await fc.assert(fc.asyncProperty(steps, conserved), { numRuns, seed: 1 })
  const seconds = (performance.now() - before) / 1_000
  console.log(
    `  ${numRuns.toLocaleString('en')} histories, no micro-unit lost, ${seconds.toFixed(0)} s`,
  )
}
