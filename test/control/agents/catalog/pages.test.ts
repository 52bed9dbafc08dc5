/**
 * The cursors of listings: every row comes once, and the answers say how many there are and which
 * is the last.
 */
import { expect, test } from 'vitest'
import type { Trace } from '../../../../schema/contracts/calls.ts'
import { addBinding, openToolRig, storeRecord, type ToolRig } from '../../../support/tools-rig.ts'

const uuid = '00000000-0000-4000-8000-000000000001'
const reason = 'for the test'

const trace = (now: number): Trace => ({
  tenantId: 1,
  legs: ['a-leg'],
  peers: [{ role: 'caller', name: 'acme caller', address: '10.0.0.8:5060' }],
  isComplete: true,
  entries: [0, 1, 2, 3].map((at) => ({
    kind: 'decision',
    at: now + at,
    what: 'routed',
    detail: { step: at },
  })),
})

/** Four rows at least of everything, all of tenant acme, or of the platform. */
async function openRows(): Promise<ToolRig> {
  const rig = await openToolRig()
  const { engine, root } = rig
  const make = async (path: string, body: object) => {
    const answer = await rig.request(`/api/v1${path}`, { token: root, body })
    expect([path, answer.status, answer.text]).toEqual([path, 201, answer.text])
  }
  const change = async (name: string, given: object) => {
    const answer = await rig.tool(name, { reason, ...given })
    expect([name, answer.status, answer.text]).toEqual([name, 200, answer.text])
  }
  const [call] = engine.activeCalls
  if (call === undefined) throw new Error('there is no live call')
  engine.trace = () => Promise.resolve(trace(rig.now()))
  for (const index of [1, 2, 3, 4]) {
    const tenant = 'acme'
    const ofAcme = { tenant_scope: 'tenant', tenant_slug: tenant }
    const host = `192.0.2.${index}`
    const name = `acme ${index}`
    engine.activeCalls.push({ ...call, callUuid: uuid.replace(/1$/, `${index}`) })
    await make('/customers', { name, tenant })
    await make('/routing/carriers', { name, tenant, gateways: [{ host }] })
    await make('/outbound-routes', { name, tenant, prefix: `4${index}`, carrier: name })
    await make('/inbound-routes', { name, tenant, prefix: `3${index}`, set: 1 })
    const phone = { extension: `10${index}`, display_name: name, password: `secret ${name}` }
    await make('/pbx/extensions', { ...phone, tenant })
    await addBinding(rig, index, host)
    await engine.guard.ban(`203.0.113.${index}`, 60_000)
    await rig.key({ name, ...ofAcme })
    await rig.key({ name: `phone ${index}`, kind: 'pbx', ...ofAcme })
    await change('set_spend_guard', { customer: 1, prefix: `4${index}`, action: 'block' })
    const wallet = { amount: '1', reason, kind: 'topup' }
    const adjusted = await rig.request('/api/v1/customers/1/wallet/adjust', {
      token: root,
      body: wallet,
    })
    expect(adjusted.status).toBe(200)
    const limits = { customer: 1, max_cps: 10 + index }
    await change('propose_change', { tool: 'set_customer_limits', arguments: limits })
    await storeRecord(rig, 1, `of prefix ${index}`, { destination_number: `4${index}000123` })
  }
  return rig
}

const period = { start: '2025-12-31', end: '2026-01-02' }

/** The tool, its list, its arguments, and what another tenant is told: nothing, or this status. */
const listings: readonly [
  tool: string,
  list: string,
  given: object,
  foreign: 'nothing' | number,
][] = [
  ['list_active_calls', 'calls', {}, 'nothing'],
  ['list_customers', 'customers', {}, 'nothing'],
  ['get_ledger', 'entries', { customer: 1 }, 400],
  ['list_routes', 'routes', {}, 'nothing'],
  ['list_routes', 'routes', { direction: 'inbound' }, 'nothing'],
  ['list_registrations', 'registrations', {}, 'nothing'],
  ['list_trunks', 'trunks', {}, 'nothing'],
  ['list_bans', 'bans', {}, 403],
  ['list_spend_guards', 'guards', {}, 'nothing'],
  ['list_changes', 'changes', {}, 'nothing'],
  ['list_proposals', 'proposals', {}, 'nothing'],
  ['list_sbc_api_keys', 'apiKeys', { search: 'acme' }, 'nothing'],
  ['list_api_keys', 'apiKeys', {}, 'nothing'],
  ['search_audit', 'entries', { action: 'POST /api/v1/customers' }, 'nothing'],
  ['get_call_ladder', 'steps', { call_uuid: uuid }, 404],
  ['get_dispatcher_status', 'nodes', {}, 'nothing'],
  ['list_sbc_endpoints', 'endpoints', {}, 'nothing'],
  ['summarize_calls', 'groups', { ...period, group_by: 'callee_prefix' }, 'nothing'],
]

type Page = Readonly<Record<string, unknown>> & {
  readonly complete: boolean
  readonly cursor: string | null
}

const rowsIn = (page: Page, list: string) => page[list] as readonly object[]

/** Under whatever name the answer has it. */
const totalIn = ({ total, totalNodes, totalEndpoints, totals }: Page): unknown =>
  total ?? totalNodes ?? totalEndpoints ?? (totals as { readonly groups: number }).groups

test('each listing gives every row once, page by page, and nothing of another tenant', async () => {
  const rig = await openRows()
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other', name: 'stranger' })
  for (const [tool, list, given, foreign] of listings) {
    const ask = async (more: object) => {
      const answer = await rig.tool(tool, { ...given, ...more })
      expect([tool, answer.status, answer.text]).toEqual([tool, 200, answer.text])
      return answer.data<Page>()
    }
    const whole = await ask({ limit: 50 })
    const expected = rowsIn(whole, list)
    expect([tool, whole.complete, whole.cursor]).toEqual([tool, true, null])
    expect([tool, expected.length >= 3]).toEqual([tool, true])
    const seen: object[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await ask({ limit: 2, ...(cursor !== undefined && { cursor }) })
      const rows = rowsIn(page, list)
      seen.push(...rows)
      expect([tool, totalIn(page)]).toEqual([tool, expected.length])
      expect([tool, rows.length]).toEqual([tool, page.cursor === null ? 2 - (seen.length % 2) : 2])
      if (tool !== 'summarize_calls')
        expect([tool, page.complete]).toEqual([tool, seen.length === expected.length])
      cursor = page.cursor
    }
    expect([tool, seen]).toEqual([tool, expected])
    const answer = await rig.tool(tool, { ...given }, other)
    if (foreign !== 'nothing') expect([tool, answer.status]).toEqual([tool, foreign])
    else {
      const page = answer.data<Page>()
      const named = rowsIn(page, list).filter((row) => !JSON.stringify(row).includes('stranger'))
      expect([tool, named]).toEqual([tool, []])
    }
    rig.tick(60_000)
  }
})
