import { expect, test } from 'vitest'
import { EventLog } from '../../engine/event-log.ts'

const up = { type: 'node.up', tenantId: null, setId: 1, destination: 'd', state: 'active' } as const

test('events are numbered, stamped, and read from where one left off', () => {
  let now = 5
  const log = new EventLog(() => now)
  expect([log.epoch, log.last, log.after(0)]).toEqual([5, 0, []])
  log.add(up)
  now = 7
  log.add({ ...up, type: 'node.down', state: 'probing' })
  expect(log.after(0).map(({ sequence, at, type }) => [sequence, at, type])).toEqual([
    [1, 5, 'node.up'],
    [2, 7, 'node.down'],
  ])
  expect(log.after(1)).toHaveLength(1)
  expect(log.after(2)).toEqual([])
})

test('only the last 20,000 are kept, and what is forgotten is known', () => {
  const log = new EventLog(() => 0)
  for (let event = 0; event < 20_010; event++) log.add(up)
  expect([log.forgotten(null), log.last]).toEqual([10, 20_010])
  expect(log.after(0)).toHaveLength(20_000)
  expect(log.after(0)[0]?.sequence).toBe(11)
})

test('events of other tenants do not make a reader miss its own', () => {
  const log = new EventLog(() => 0)
  for (const tenantId of [1, 2, 1]) log.add({ ...up, tenantId })
  for (let event = 0; event < 20_000; event++) log.add({ ...up, tenantId: 3 })
  expect([1, 2, 3, 4].map((tenantId) => log.forgotten(tenantId))).toEqual([3, 2, 0, 0])
})
