import { expect, test } from 'vitest'
import { KnownSources } from '../../../engine/guard/guard.ts'

test('each address and port is asked about once in a second', () => {
  const asked: string[] = []
  const known = new KnownSources((address, port) => {
    asked.push(`${address}:${port}`)
    return port === 5_060
  })
  const ask = (port: number, now: number): boolean => known.has('192.0.2.1', port, now)
  expect([ask(5_060, 0), ask(5_062, 1), ask(5_060, 999), ask(5_062, 999)]).toEqual([
    true,
    false,
    true,
    false,
  ])
  expect(asked).toEqual(['192.0.2.1:5060', '192.0.2.1:5062'])
  ask(5_060, 1_000)
  expect(asked).toHaveLength(3)
})

test('a flood of forged sources takes bounded memory', () => {
  let asked = 0
  const known = new KnownSources(() => {
    asked += 1
    return false
  })
  for (let port = 0; port < 20_000; port++) known.has('192.0.2.1', port, 0)
  known.has('192.0.2.1', 0, 0)
  expect(asked).toBe(20_001)
})
