/** What a carrier of the platform takes is in no answer that a tenant can get. */
import { expect, test } from 'vitest'
import { execute, first } from '../../../schema/sql/query.ts'
import { endedCall, openToolRig } from '../../support/tools-rig.ts'

/** 9876.543211, a number that nothing else has. */
const taken = 9_876_543_211
const traces = ['9876.54', '9876543', '87654321', '499187']

interface Spec {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

test('in no GET, in no tool and in no report; the platform sees it', async () => {
  const { store, request, key, tool, root } = await openToolRig()
  const row = await first(
    store,
    store.db.selectFrom('cdr').selectAll().where('call_uuid', '=', endedCall),
  )
  await execute(
    store,
    store.db
      .updateTable('cdr')
      .set({
        direction: 'outbound',
        disposition: 'ANSWERED',
        carrier: 'north',
        carrier_cost_micros: taken,
        carrier_currency: row?.currency ?? 'EUR',
        carrier_prefix: '499187',
        carrier_tenant_id: null,
      })
      .where('call_uuid', '=', endedCall),
  )
  const token = await key({ name: 'acme', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const at = row?.start_stamp ?? 0
  const period = `start_date=${iso(at - 3_600_000)}&end_date=${iso(at + 3_600_000)}`
  const times = { start: iso(at - 3_600_000), end: iso(at + 3_600_000) }
  const spec = JSON.parse((await request('/openapi.json', { token: root })).text) as Spec
  const paths = Object.entries(spec.paths)
    .filter(([, operations]) => 'get' in operations)
    .map(([path]) => path.replaceAll(/\{(?:call_uuid|uuid|id)\}/gi, endedCall))
    .filter((path) => !path.includes('{') && !/stream|events$|\/live/.test(path))
  const seen = { tenant: 0, platform: 0 }
  const look = (text: string, as: keyof typeof seen, place: string): void => {
    const trace = traces.find((each) => text.includes(each))
    if (as === 'tenant') expect({ place, trace }).toEqual({ place, trace: undefined })
    if (trace !== undefined) seen[as] += 1
  }
  const forms = ['', '&format=csv', '&format=ndjson', '&group_by=carrier', '&group_by=customer']
  for (const path of paths)
    for (const form of forms)
      for (const [as, each] of [
        ['tenant', token],
        ['platform', root],
      ] as const) {
        const url = `${path.startsWith('/api') ? path : `/api/v1${path}`}?${period}${form}`
        look((await request(url, { token: each })).text, as, url)
      }
  const { tools } = (await request('/api/v1/mcp/tools', { token: root })).data<{
    readonly tools: readonly { readonly name: string }[]
  }>()
  const names = tools.map(({ name }) => name)
  expect(names.length).toBeGreaterThan(20)
  const given = [
    {},
    times,
    { ...times, group_by: 'carrier' },
    { call_uuid: endedCall },
    { uuid: endedCall },
    { query: '49', ...times },
    { start_date: times.start, end_date: times.end },
  ]
  for (const name of names)
    for (const arguments_ of given)
      for (const [as, each] of [
        ['tenant', token],
        ['platform', root],
      ] as const)
        look((await tool(name, arguments_, each)).text, as, `tool ${name}`)
  expect(seen.tenant).toBe(0)
  expect(seen.platform).toBeGreaterThan(4)
})

const iso = (at: number): string => new Date(at).toISOString()
