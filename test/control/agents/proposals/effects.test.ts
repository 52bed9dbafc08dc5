/**
 * The effects that a person reads before approving: each field that costs or grants something,
 * exactly.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allTools } from '../../../../control/agents/catalog/index.ts'
import type { ProposalView } from '../../../../control/agents/proposals/proposal-store.ts'
import { moneyToDecimal } from '../../../../schema/columns.ts'
import { liveCall } from '../../../support/tools-rig.ts'
import { openProposalRig, type ProposalRig } from '../../../support/proposal-rig.ts'

interface Case {
  /**
   * The arguments, each with what the effect says of it; null: it names the target only, or costs
   * and grants nothing.
   */
  readonly fields: Readonly<Record<string, readonly [given: unknown, shown: string | null]>>
  /** Makes the target. Fields whose value is known only then. */
  readonly before?: (rig: ProposalRig) => Promise<Readonly<Record<string, unknown>>>
}

const key = async ({ request, key: made, root }: ProposalRig, body: object) => {
  await made({ name: 'dialler', scopes: ['calls:read', 'calls:originate'], ...body })
  const listed = await request('/api/v1/application-keys?search=dialler', { token: root })
  const [{ uuid } = { uuid: '' }] = listed.data<{ uuid: string }[]>()
  return uuid
}

const reason = 'a test'

const cases: Readonly<Record<string, readonly Case[]>> = {
  add_rate: [
    {
      fields: {
        rate_plan: ['acme plan', 'the rate plan "acme plan"'],
        customer: [undefined, null],
        prefix: ['44', 'numbers that begin with 44'],
        rate_per_minute: ['0.0149', 'cost 0.0149 USD a minute, by the second'],
        connect_fee: ['2.5', '2.50 USD for each answered call'],
        duration: [86_400, 'for 24 h'],
      },
    },
    {
      fields: {
        rate_plan: [undefined, null],
        customer: ['acme customer', 'the rate plan "acme plan"'],
        prefix: ['', 'every number'],
        rate_per_minute: ['0.000001', '0.000001 USD a minute'],
        connect_fee: [undefined, '0.00 USD for each answered call'],
        duration: [undefined, 'from the next call.'],
      },
    },
  ],
  add_number: [
    {
      fields: {
        customer: ['acme customer', 'The customer "acme customer" pays'],
        number: ['4930199', 'calls from "4930199"'],
        duration: [5_400, 'for 90 min'],
      },
    },
  ],
  set_customer_limits: [
    {
      fields: {
        customer: ['acme customer', 'the customer "acme customer"'],
        credit_limit: ['1000.0149', 'it may owe 1000.0149 USD, was 0.00 USD'],
        max_concurrent_calls: [7, 'calls at once 7, was without a limit'],
        max_cps: [3, 'calls per second 3, was without a limit'],
        max_daily_spend: ['0.0051', 'spend per day 0.0051 USD, was without a limit'],
        duration: [3_600, 'for 1 h'],
      },
    },
    {
      before: async ({ request, root }) => {
        const limits = {
          max_concurrent_calls: 2,
          max_cps: 2,
          max_daily_spend: '5',
          credit_limit: 1,
        }
        await request('/api/v1/customers/1', { method: 'PATCH', token: root, body: limits })
        return {}
      },
      fields: {
        customer: [1, null],
        credit_limit: [0, 'it may owe 0.00 USD, was 1.00 USD'],
        max_concurrent_calls: [0, 'calls at once without a limit, was 2'],
        max_cps: [0, 'calls per second without a limit, was 2'],
        max_daily_spend: [0, 'spend per day without a limit, was 5.00 USD'],
        duration: [undefined, null],
      },
    },
  ],
  rerate_calls: [
    {
      fields: {
        kind: ['sold', 'as they are sold'],
        rate_plan: ['acme plan', 'by the rate plan "acme plan"'],
        from: ['2025-12-01', 'from 2025-12-01T00:00:00.000Z'],
        to: ['2026-01-02T01:00:00+01:00', 'until before 2026-01-02T00:00:00.000Z'],
        customer: ['acme customer', 'of the customer "acme customer"'],
        carrier: [undefined, null],
        prefix: ['49', 'numbers that begin with 49'],
        prices: ['now', 'at the prices that it has now'],
      },
    },
  ],
  set_spend_guard: [
    {
      fields: {
        customer: ['acme customer', 'customer "acme customer"'],
        extension: [undefined, null],
        tenant: [undefined, null],
        prefix: ['1900', 'numbers that begin with "1900"'],
        action: ['cap', 'may cost'],
        amount: ['12.3456', '12.3456 USD'],
        per: ['day', 'on each day (UTC)'],
        end_live_calls: [true, 'Answered calls are ended within 5 s'],
        duration: [90, 'for 90 s'],
      },
    },
    {
      fields: {
        customer: [undefined, null],
        extension: [undefined, null],
        tenant: ['acme', 'tenant "acme"'],
        prefix: ['', 'all numbers'],
        action: ['block', 'are refused'],
        amount: [undefined, null],
        per: [undefined, null],
        end_live_calls: [undefined, null],
        duration: [undefined, null],
      },
    },
  ],
  remove_spend_guard: [
    {
      before: async ({ tool }) => {
        const guard = { customer: 1, prefix: '1900', action: 'cap', amount: '0.0149', per: 'day' }
        const made = await tool('set_spend_guard', { ...guard, reason })
        return made.data<{ guard: { guard_id: string } }>().guard
      },
      fields: { guard_id: [undefined, 'let them cost 0.0149 USD on each day (UTC)'] },
    },
  ],
  ban_address: [
    { fields: { address: ['203.0.113.9', '"203.0.113.9"'], duration: [undefined, 'for 24 h'] } },
    { fields: { address: ['203.0.113.9', '"203.0.113.9"'], duration: [600, 'for 10 min'] } },
  ],
  hangup_call: [
    // The cause is what the phones show.
    { fields: { call_uuid: [liveCall, '"4930100" to "4940200"'], cause: [17, null] } },
  ],
  suspend_api_key: [
    {
      before: async (rig) => ({ identifier: await key(rig, {}) }),
      fields: {
        identifier: [undefined, 'The key "dialler"'],
        confirm_self: [undefined, null],
        duration: [7_200, 'for 2 h'],
      },
    },
  ],
  resume_api_key: [
    {
      before: async (rig) => {
        const identifier = await key(rig, {})
        await rig.tool('suspend_api_key', { identifier, reason })
        return { identifier }
      },
      fields: { identifier: [undefined, 'Its scopes are calls:read, calls:originate'] },
    },
  ],
  revoke_sbc_api_key: [
    {
      before: async (rig) => ({ identifier: await key(rig, {}) }),
      fields: {
        identifier: [undefined, 'The key "dialler" is revoked permanently'],
        confirm_self: [undefined, null],
      },
    },
  ],
  set_dispatcher_state: [
    {
      fields: {
        state: ['inactive', 'to inactive'],
        setId: [1, 'of set 1'],
        destination: ['sip:10.0.0.2:5060;transport=udp', '"sip:10.0.0.2:5060;transport=udp"'],
        // It refuses the change, and makes no other.
        expected_state: ['active', 'from active'],
        duration: [60, 'for 1 min'],
      },
    },
  ],
  reload_dispatchers: [{ fields: {} }],
  set_trunk_state: [
    {
      before: async ({ request, root }) => {
        const body = { name: 'transit', gateways: [{ host: '192.0.2.9' }] }
        await request('/api/v1/routing/carriers', { token: root, body })
        return {}
      },
      fields: {
        carrier: ['transit', 'The carrier "transit"'],
        state: ['inactive', 'gets no new calls'],
        duration: [61, 'for 61 s'],
      },
    },
  ],
  undo_change: [
    {
      before: async ({ request, root, tool }) => {
        const limits = { credit_limit: '0.0149', email: null }
        await request('/api/v1/customers/1', { method: 'PATCH', token: root, body: limits })
        const listed = await tool('list_changes')
        return listed.data<{ changes: { change_id: string }[] }>().changes[0] ?? {}
      },
      fields: { change_id: [undefined, 'credit limit 0.0149 USD, was 0.00 USD'] },
    },
  ],
}

const proposable = allTools.filter(({ effect }) => effect === 'changes' || effect === 'destroys')

test('every tool that can be proposed, and every field of it, has a case here', () => {
  const fieldsOf = (schema: Readonly<Record<string, unknown>>) =>
    Object.keys(Object(schema['properties']) as object).filter(
      (name) => !/^(?:dry_run|reason)$/.test(name),
    )
  const told = proposable.map(({ name, listing }) => [
    name,
    fieldsOf(listing.inputSchema).toSorted(),
  ])
  const covered = Object.entries(cases).map(([name, [first]]) => [
    name,
    Object.keys(first?.fields ?? {}).toSorted(),
  ])
  expect(Object.fromEntries(covered)).toEqual(Object.fromEntries(told))
})

test.each(Object.entries(cases).flatMap(([name, all]) => all.map((each) => [name, each] as const)))(
  'the effect of %s says what its arguments cost and grant',
  async (name, { fields, before }) => {
    const rig = await openProposalRig()
    const made = (await before?.(rig)) ?? {}
    const given = Object.fromEntries(
      Object.entries(fields).map(([field, [value]]) => [field, value ?? made[field]]),
    )
    const scopes = ['*:read', 'mcp:propose', 'calls:originate']
    const agent = await rig.key({ scopes })
    const answer = await rig.propose(name, given, agent)
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
    const { proposal_id } = answer.data<ProposalView>()
    const { effect } = await rig.proposal(proposal_id)
    for (const [field, [, shown]] of Object.entries(fields))
      if (shown !== null) expect([field, effect]).toEqual([field, expect.stringContaining(shown)])
    // An effect that was read can be approved, also some minutes later.
    rig.tick(240_000)
    const approved = await rig.decide('approve', proposal_id, rig.people.admin)
    expect([approved.status, approved.text]).toEqual([200, expect.any(String)])
  },
)

test('an amount of any size is shown to its last decimal', async () => {
  const rig = await openProposalRig()
  const micros = fc.oneof(fc.integer({ min: 1, max: 99_999 }), fc.integer({ min: 1, max: 1e12 }))
  await fc.assert(
    fc.asyncProperty(micros, micros, async (price, fee) => {
      const [minute, connect] = [moneyToDecimal(price), moneyToDecimal(fee)]
      const rate = { rate_plan: 'acme plan', prefix: '44', rate_per_minute: minute, dry_run: true }
      const added = await rig.tool('add_rate', { ...rate, connect_fee: connect, reason })
      const limits = { customer: 1, credit_limit: minute, max_daily_spend: connect, dry_run: true }
      const limited = await rig.tool('set_customer_limits', { ...limits, reason })
      const guard = { customer: 1, prefix: '44', action: 'cap', amount: minute, dry_run: true }
      const guarded = await rig.tool('set_spend_guard', { ...guard, reason })
      for (const [answer, amounts] of [
        [added, [minute, connect]],
        [limited, [minute, connect]],
        [guarded, [minute]],
      ] as const)
        for (const amount of amounts)
          expect(answer.data<{ effect: string }>().effect).toContain(` ${amount} USD`)
    }),
    { numRuns: 40 },
  )
})
