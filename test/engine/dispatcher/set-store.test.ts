import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadSets, saveOperatorState, parseOkCodes } from '../../../engine/dispatcher/set-store.ts'
import type { LocalStore } from '../../../schema/storage/store.ts'
import { execute } from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'

let store: LocalStore

beforeEach(() => {
  store = emptyStore()
})
afterEach(() => store.close())

function insertSet(
  setId: number,
  fields: { probe_ok_codes?: string; probe_interval_ms?: number } = {},
): Promise<unknown> {
  const row = {
    set_id: setId,
    endpoint_name: `set ${setId}`,
    algorithm: 9,
    created_at: 0,
    updated_at: 0,
  }
  return execute(store, store.db.insertInto('dispatcher_set').values({ ...row, ...fields }))
}

function insertNode(
  setRow: number,
  host: string,
  fields: { is_enabled?: 0 | 1 } = {},
): Promise<unknown> {
  const row = { dispatcher_set_id: setRow, host, ...fields }
  return execute(store, store.db.insertInto('dispatcher_node').values(row))
}

test('sets are read in order of their id, each with its enabled nodes and the defaults of SPECIFICATION.md §2.6', async () => {
  await insertSet(20, { probe_interval_ms: 250, probe_ok_codes: '["200-299", 404]' })
  await insertSet(10)
  await insertNode(1, '192.0.2.1')
  await insertNode(1, '192.0.2.2', { is_enabled: 0 })
  await insertNode(2, 'pbx.example.com')
  const [first, second] = await loadSets(store)
  expect(first).toMatchObject({ setId: 10, name: 'set 10', algorithm: 9, probe: {} })
  expect(first?.nodes.map((node) => node.host)).toEqual(['pbx.example.com'])
  expect(second?.probe).toEqual({
    intervalMs: 250,
    okCodes: [
      { from: 200, to: 299 },
      { from: 404, to: 404 },
    ],
  })
  expect(second?.nodes).toEqual([
    {
      nodeId: 1,
      host: '192.0.2.1',
      port: 5060,
      externalPort: 5080,
      transport: 'udp',
      weight: 100,
      priority: 10,
      description: null,
      maxCalls: 0,
      operatorState: 'active',
    },
  ])
})

test('the last node in service is not stored as taken out, whatever memory says', async () => {
  await insertSet(1)
  await insertNode(1, '192.0.2.1')
  await insertNode(1, '192.0.2.2')
  expect(await saveOperatorState(store, 1, 'inactive')).toBe(true)
  expect(await saveOperatorState(store, 1, 'inactive')).toBe(true)
  expect(await saveOperatorState(store, 2, 'inactive')).toBe(false)
  expect((await loadSets(store))[0]?.nodes.map((node) => node.operatorState)).toEqual([
    'inactive',
    'active',
  ])
})

test.each(['', '[]', '{}', '["2xx"]', '[700]', 'null', '["200-"]'])(
  'ok_codes %j fall back to the default',
  (json) => {
    expect(parseOkCodes(json)).toBeUndefined()
  },
)
