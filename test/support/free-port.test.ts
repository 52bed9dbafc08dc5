import { expect, test } from 'vitest'
import { freePort } from './free-port.ts'

test('no port is given twice before all others were, and each leaves room for three more', async () => {
  const ports: number[] = []
  for (let count = 0; count < 200; count++) ports.push(await freePort())
  const sorted = ports.toSorted((a, b) => a - b)
  const distances = sorted.slice(1).map((port, index) => port - (sorted[index] ?? port))
  expect(Math.min(...distances)).toBeGreaterThanOrEqual(4)
  // Whose turn it is hangs on the process: no share holds one that `fetch` calls bad.
  expect(sorted[0]).toBeGreaterThan(10_080)
})
