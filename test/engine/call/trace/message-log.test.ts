import { expect, test } from 'vitest'
import { MessageLog } from '../../../../engine/call/trace/trace.ts'

const pause = () => Promise.resolve()

const own = {
  address: '192.0.2.1',
  port: 5060,
  advertisedHost: 'sbc.example',
  advertisedPort: 5080,
}
const flow = { address: 'h', port: 1, listener: { protocol: 'udp', ...own } } as const
const head = 'received|udp|h|1\r\n'

test('messages are found by any of their Call-IDs, from a time on, oldest first', async () => {
  let now = 0
  const log = new MessageLog(() => now)
  for (const [at, text] of [
    [1, 'a-leg one'],
    [2, 'other'],
    [3, 'b-leg two'],
    [4, 'a-leg three'],
  ] as const) {
    now = at
    log.add('received', flow, text)
  }
  const found = await log.find(['a-leg', 'b-leg'], 2, pause)
  expect(found).toEqual([
    { at: 3, payload: `${head}b-leg two` },
    { at: 4, payload: `${head}a-leg three` },
  ])
})

test('the memory is bounded: the oldest messages go, the others stay whole', async () => {
  let now = 0
  const log = new MessageLog(() => now, 1_000)
  const text = (n: number): string => `${String(n).padStart(3, '0')} ${'ü'.repeat(n % 40)} x`
  for (; now < 500; now++) log.add('received', flow, text(now))
  const found = await log.find(['x'], 0, pause)
  expect(found).toHaveLength(log.size)
  expect(found.map(({ at, payload }) => payload === head + text(at))).not.toContain(false)
  expect(found.at(-1)?.at).toBe(499)
  expect(log.since).toBe(500 - log.size)
  const bytes = found.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0)
  expect(bytes).toBeGreaterThan(500)
  expect(bytes).toBeLessThanOrEqual(1_000)
})

test('a search yields to other work, and ignores messages that are overwritten meanwhile', async () => {
  const log = new MessageLog(() => 0, 300)
  log.add('received', flow, 'wanted')
  let pauses = 0
  const found = await log.find(['wanted'], 0, () => {
    pauses += 1
    for (let message = 0; message < 60; message++) log.add('received', flow, 'another')
    return Promise.resolve()
  })
  expect([pauses, found]).toEqual([1, []])
})
