/** How long the directory takes to say whose a number is. */
import { NumberDirectory } from '../../engine/numbers/number-directory.ts'
import type { CalledNumber } from '../../engine/routing/number-decision.ts'
import { inSlices } from '../../schema/sql/query.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { optionsOf } from './load/options.ts'

export const describe =
  'µs of CPU to find a number in memory, half of them in blocks; arguments: rows=100000 lookups=2000000'

const BLOCK = 100

export async function run(words: readonly string[] = []): Promise<void> {
  const options = optionsOf(words, { rows: '100000', lookups: '2000000' })
  const [rows, lookups] = [Number(options.rows), Number(options.lookups)]
  const all = Array.from({ length: rows }, (_, index) => rowOf(index))
  const directory = new NumberDirectory({
    load: () => inSlices(all),
    idsOf: () => Promise.resolve([]),
  })
  const loading = performance.now()
  await directory.reload()
  const loadedMs = performance.now() - loading
  const random = seededRandom(1)
  const asked = Array.from({ length: 65_536 }, () => numberOf(random() * rows * 2 * BLOCK))
  const owner = { tenantId: null, customerId: 7 }
  let owned = 0
  const measure = (count: number): number => {
    const start = process.cpuUsage()
    for (let index = 0; index < count; index += 1)
      if (directory.isOwned(asked[index & 65_535] ?? '', owner)) owned += 1
    const { user, system } = process.cpuUsage(start)
    return (user + system) / count
  }
  measure(lookups / 10)
  const micros = measure(lookups)
  console.log(
    `  ${rows} rows, loaded in ${loadedMs.toFixed(0)} ms: ${micros.toFixed(2)} µs a look-up, ` +
      `${((owned * 100) / (lookups * 1.1)).toFixed(0)} % of the numbers are owned`,
  )
  if (micros >= 2) process.exitCode = 1
}

/** Single numbers, and blocks between them. */
function rowOf(index: number): CalledNumber {
  const first = numberOf(index * 2 * BLOCK)
  return {
    id: index + 1,
    first,
    last: index % 2 === 0 ? first : numberOf(index * 2 * BLOCK + BLOCK - 1),
    tenantId: null,
    customerId: 7,
    displayName: '',
    attestation: null,
    isActive: true,
    target: null,
  }
}

const numberOf = (offset: number): string => `+${493_000_000_000 + Math.floor(offset)}`
