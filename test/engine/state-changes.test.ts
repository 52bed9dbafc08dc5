import { describe, expect, test } from 'vitest'
import { changesOf, downSince } from '../../control/observe/causes/state-history.ts'
import { type StateChange, StateChanges } from '../../engine/state-changes.ts'
import type { Store } from '../../schema/storage/store.ts'
import { ManualTime } from '../support/manual-time.ts'
import { eachDatabase } from '../support/shared-database.ts'
import { readValue } from '../support/stored.ts'

const startedAt = Date.UTC(2026, 0, 1)
const node = { kind: 'node', subjectId: 1, tenantId: null, name: 'sip:10.0.0.1' } as const
const down = { from: 'active', to: 'probing', cause: 'probe', reason: 'no answer' } as const
const up = { from: 'probing', to: 'active', cause: 'probe', reason: '200 OK' } as const

function noting(store: Store) {
  const time = new ManualTime(startedAt)
  const logged: string[] = []
  const noter = (name: string) =>
    new StateChanges({
      store,
      wallNow: time.now,
      schedule: time.schedule,
      instance: name,
      log: (_level, message) => void logged.push(message),
    })
  const changes = noter('a')
  const note = (change: Omit<StateChange, 'kind' | 'subjectId' | 'tenantId' | 'name'>): void =>
    changes.add({ ...node, ...change })
  const since = () => downSince({ store, tenantId: null }, 'node', 1)
  return { time, logged, changes, note, noter, since, store }
}

describe.each(eachDatabase)('changes of state on $database', ({ open }) => {
  test('a node is down since the first change of its outage, on whichever instance it was seen', async () => {
    const { time, changes, note, noter, since, store } = noting(await open())
    const other = noter('b')
    note(up)
    time.advance(60_000)
    note(down)
    time.advance(3_000)
    other.add({ ...node, ...down, reason: '503 Service Unavailable' })
    time.advance(3_600_000)
    // Another start of the platform finds it down again.
    note(down)
    await Promise.all([changes.stop(), other.stop()])
    expect(await since()).toEqual({ at: startedAt + 60_000, reason: 'no answer', cause: 'probe' })
    note(up)
    await changes.stop()
    expect(await since()).toBeUndefined()
    const period = { from: startedAt + 60_000, before: startedAt + 70_000, limit: 1 }
    expect(await changesOf({ store, tenantId: null }, 'node', 1, period)).toMatchObject({
      changes: [{ reason: '503 Service Unavailable', seen_by: 'b', by: null }],
      hasOlder: true,
    })
  })

  test('a thousand changes of one node are kept, and ninety days', async () => {
    const { time, changes, note, noter, store } = noting(await open())
    const rows = () => readValue(store, 'SELECT count(*) FROM state_change')
    note(down)
    changes.add({ ...node, ...down, subjectId: 2 })
    await changes.stop()
    for (let index = 0; index < 990; index += 1) note(index % 2 === 0 ? up : down)
    await changes.stop()
    for (let index = 0; index < 60; index += 1) note(index % 2 === 0 ? up : down)
    await changes.stop()
    expect(Number(await rows())).toBe(1_001)
    time.advance(91 * 86_400_000)
    const later = noter('a')
    later.add({ ...node, ...down })
    await later.stop()
    expect(Number(await rows())).toBeLessThanOrEqual(2)
  })

  test('a change that cannot be stored waits, and is stored a second after it can be', async () => {
    const store = await open()
    const failing = Object.create(store, {
      statements: {
        configurable: true,
        value: { transaction: () => Promise.reject(new Error('away')) },
      },
    }) as Store
    const { time, logged, changes, note } = noting(failing)
    note(down)
    await changes.stop()
    expect(logged).toEqual(['changes of state cannot be stored yet'])
    Object.defineProperty(failing, 'statements', { value: store.statements })
    note(up)
    time.advance(1_000)
    await changes.stop()
    expect(Number(await readValue(store, 'SELECT count(*) FROM state_change'))).toBe(2)
  })
})
