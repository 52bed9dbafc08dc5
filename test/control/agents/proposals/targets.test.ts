/** An approved change is made to the row that was shown, however names are given away meanwhile. */
import { expect, test } from 'vitest'
import type { DispatcherPort } from '../../../../schema/contracts/engine.ts'
import { drain, openProposalRig, type ProposalRig } from '../../../support/proposal-rig.ts'
import { readRows, runSql } from '../../../support/stored.ts'

const MANY = 10_000

interface Case {
  readonly tool: string
  readonly about: string
  /** Makes what it is about, and another one beside it; resolves with the arguments. */
  readonly given: (rig: ProposalRig) => Promise<object>
  /** Lets the names in the arguments lead to the other one. */
  readonly swap: (rig: ProposalRig) => Promise<void> | void
}

async function make(rig: ProposalRig, path: string, body: object): Promise<void> {
  const answer = await rig.request(`/api/v1${path}`, { token: rig.root, body })
  expect([answer.status, answer.text]).toEqual([201, answer.text])
}

/** The swap is made in SQL: neither cache nor entry of a change hears of it. */
const swapped =
  (table: string, column: string, one: string, other: string) =>
  async (rig: ProposalRig): Promise<void> => {
    const between = 'in between'
    for (const [from, to] of [
      [one, between],
      [other, one],
      [between, other],
    ])
      await runSql(rig.store, `UPDATE ${table} SET ${column} = '${to}' WHERE ${column} = '${from}'`)
  }

/** An agent of the platform. */
const allSeeing = { name: 'all-seeing', scopes: ['*:read', 'mcp:propose'] }

const twoKeys = async (rig: ProposalRig): Promise<void> => {
  for (const name of ['one', 'two']) await rig.key({ name, scopes: ['calls:read'] })
}
const swapKeys = swapped('application_key', 'name', 'one', 'two')

const twoCustomers = async (rig: ProposalRig): Promise<void> => {
  for (const name of ['one', 'two'])
    await make(rig, '/customers', { name, rate_plan: 'acme plan', tenant: 'acme' })
}
const swapCustomers = swapped('customer', 'name', 'one', 'two')

const block = { action: 'block', prefix: '4990' }

const cases: readonly Case[] = [
  {
    tool: 'set_customer_limits',
    about: 'customer',
    given: async (rig) => {
      await twoCustomers(rig)
      return { customer: 'one', credit_limit: String(MANY) }
    },
    swap: swapCustomers,
  },
  {
    tool: 'add_rate',
    about: 'rate_plan',
    given: async (rig) => {
      for (const name of ['one', 'two']) await make(rig, '/rate-plans', { name, tenant: 'acme' })
      return { rate_plan: 'one', prefix: '4477', rate_per_minute: '0.10' }
    },
    swap: swapped('rate_plan', 'name', 'one', 'two'),
  },
  {
    tool: 'rerate_calls',
    about: 'rate_plan',
    given: async (rig) => {
      await make(rig, '/rate-plans', { name: 'two', tenant: 'acme' })
      return { kind: 'sold', rate_plan: 'acme plan', from: '2025-12-01', to: '2026-01-02' }
    },
    swap: swapped('rate_plan', 'name', 'acme plan', 'two'),
  },
  {
    tool: 'add_number',
    about: 'customer',
    given: async (rig) => {
      await twoCustomers(rig)
      return { customer: 'one', number: '49301234567' }
    },
    swap: swapCustomers,
  },
  {
    tool: 'set_trunk_state',
    about: 'carrier',
    given: async (rig) => {
      for (const [index, name] of ['one', 'two'].entries())
        await make(rig, '/routing/carriers', { name, gateways: [{ host: `10.9.0.${index + 1}` }] })
      return { carrier: 'one', state: 'inactive' }
    },
    swap: swapped('carrier', 'name', 'one', 'two'),
  },
  {
    tool: 'set_spend_guard',
    about: 'customer',
    given: async (rig) => {
      await twoCustomers(rig)
      return { customer: 'one', ...block }
    },
    swap: swapCustomers,
  },
  {
    tool: 'set_spend_guard',
    about: 'extension',
    given: async (rig) => {
      for (const extension of ['201', '202'])
        await make(rig, '/pbx/extensions', {
          extension,
          password: 'long enough',
          display_name: 'x',
          tenant: 'acme',
        })
      return { extension: '201@acme.example', ...block }
    },
    swap: swapped('extension', 'extension', '201', '202'),
  },
  {
    tool: 'set_spend_guard',
    about: 'tenant',
    given: () => Promise.resolve({ tenant: 'acme', ...block }),
    swap: swapped('tenant', 'slug', 'acme', 'other'),
  },
  {
    tool: 'set_dispatcher_state',
    about: 'dispatcher_node',
    given: () => Promise.resolve(drain),
    swap({ engine: { dispatcher } }) {
      const { find } = dispatcher
      const other: DispatcherPort['find'] = (...where) => {
        const node = find(...where)
        return node && { ...node, nodeId: node.nodeId + 100 }
      }
      Object.assign(dispatcher, { find: other })
    },
  },
  ...['revoke_sbc_api_key', 'suspend_api_key'].map((tool) => ({
    tool,
    about: 'api_key',
    swap: swapKeys,
    given: async (rig: ProposalRig) => {
      await twoKeys(rig)
      return { identifier: 'one' }
    },
  })),
  {
    tool: 'resume_api_key',
    about: 'api_key',
    given: async (rig) => {
      await twoKeys(rig)
      for (const identifier of ['one', 'two'])
        await rig.tool('suspend_api_key', { identifier, reason: 'a test' })
      return { identifier: 'one' }
    },
    swap: swapKeys,
  },
]

/** Their arguments are ids, or there are none. */
const withoutNames = [
  'reload_dispatchers',
  'remove_spend_guard',
  'ban_address',
  'hangup_call',
  'undo_change',
]

test('every tool that can be proposed is held to what its names led to', async () => {
  const rig = await openProposalRig()
  expect(new Set([...cases.map(({ tool }) => tool), ...withoutNames])).toEqual(
    new Set(rig.proposals.toolNames()),
  )
})

test.each(cases)(
  '$tool is made to the $about that was shown, or to none: its name leads to another one',
  async ({ tool, about, given, swap }) => {
    const rig = await openProposalRig()
    const agent = await rig.key(allSeeing)
    const arguments_ = await given(rig)
    const proposal = await rig.proposed(tool, arguments_, agent)
    expect(proposal.target).toMatch(new RegExp(`^${about} `))
    await swap(rig)
    const before = await states(rig)
    const answer = await rig.decide('approve', proposal.proposal_id, rig.people.admin)
    expect([answer.status, answer.code]).toEqual([409, 'target_changed'])
    expect(answer.body).toMatchObject({ error: expect.stringContaining(proposal.target ?? '?') })
    expect(await states(rig)).toEqual(before)
    // The shown effect stays: nobody approves the other one by mistake.
    expect(await rig.proposal(proposal.proposal_id)).toEqual(proposal)
    expect((await rig.decide('refuse', proposal.proposal_id, rig.people.admin)).status).toBe(200)
  },
)

/** All that the tools change. */
async function states(rig: ProposalRig) {
  const tables = ['customer', 'carrier', 'application_key', 'spend_guard', 'dispatcher_node']
  const rows = await Promise.all(
    tables.map((table) => readRows(rig.store, `SELECT * FROM ${table}`)),
  )
  return { rows, entries: await readRows(rig.store, 'SELECT * FROM change_entry ORDER BY id') }
}
