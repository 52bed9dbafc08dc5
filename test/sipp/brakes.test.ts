/** Fraud brakes at the front door: who goes too far is refused or cut, and the record says why. */
import { expect, test } from 'vitest'
import { callWith, type SippResult } from '../support/sipp.ts'
import { atOnce, cents, expectPaid, holdCall, shareProgram, untilTalking } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const nodes = ['answers']

/** One customer with 10.00 and a brake each. */
const caseOf = shareProgram({
  destination_blocked: { nodes, rates: [{ prefix: '1800', rate_per_minute: '0', blocked: true }] },
  customer_inactive: { nodes, customer: { is_active: false } },
  daily_spend_limit: { nodes, customer: { max_daily_spend: '0.005' } },
  no_rate: { nodes, customer: { rate_plan: null } },
  spentToday: {
    nodes,
    customer: { max_daily_spend: '0.02' },
    // By the minute, so that a call costs 0.01 however long the machine stands still in it.
    rates: [{ prefix: '1800', rate_per_minute: '0.01', first_increment: 60 }],
  },
  concurrent: { nodes, customer: { max_concurrent_calls: 1 } },
  perSecond: { nodes, customer: { max_cps: 1 } },
  capped: { nodes, customer: { max_call_seconds: 2 } },
  deactivated: { nodes },
})

type Braked = ReturnType<typeof caseOf>

const call = ({ tollgate, options }: Braked, scenario: string, calls = 1): Promise<SippResult> =>
  callWith(scenario, tollgate.sipPort, { ...options, calls, rate: 1_000 })

const answered = 'inbound/answered.xml'
const refused = 'inbound/no-funds.xml'

test.each(['destination_blocked', 'customer_inactive', 'daily_spend_limit', 'no_rate'] as const)(
  '%s: the call is refused before any node rings, and costs nothing',
  async (code) => {
    const braked = caseOf(code)
    expect(await call(braked, refused)).toEqual(clean)
    expect(await braked.waitForCalls(1)).toMatchObject([
      { sip_code: 402, denial_code: code, cost_micros: 0, node: null, attempts: '[]' },
    ])
  },
)

test('daily spend: what was spent today counts, over calls', async () => {
  const braked = caseOf('spentToday')
  for (const scenario of [answered, answered, refused])
    expect(await call(braked, scenario)).toEqual(clean)
  const [first, second, third] = await braked.waitForCalls(3)
  expect([first?.cost_micros, second?.cost_micros]).toEqual([cents(1), cents(1)])
  expect(third).toMatchObject({ denial_code: 'daily_spend_limit', cost_micros: 0 })
})

test('concurrent calls: the second waits for the end of the first', async () => {
  const braked = caseOf('concurrent')
  const place = () => call(braked, 'inbound/caller-is-hung-up.xml')
  const hangUp = await holdCall(braked.tollgate, place, braked)
  expect(await call(braked, refused)).toEqual(clean)
  await hangUp()
  expect(await call(braked, answered)).toEqual(clean)
  expect((await braked.waitForCalls(3)).map(({ denial_code }) => denial_code)).toEqual([
    'concurrent_limit',
    null,
    null,
  ])
})

test('calls per second: of two at once one is let through', async () => {
  const braked = caseOf('perSecond')
  const [one, other] = await atOnce(braked, async () =>
    expect(await call(braked, 'inbound/answered-or-refused.xml', 2)).toEqual(clean),
  )
  expect(new Set([one?.denial_code, other?.denial_code])).toEqual(new Set(['cps_limit', null]))
})

test('a cap per call cuts both legs, however much money is left', async () => {
  const braked = caseOf('capped')
  expect(await call(braked, 'inbound/hung-up-without-funds.xml')).toEqual(clean)
  expect(await braked.waitForCalls(1)).toMatchObject([
    {
      disposition: 'ANSWERED',
      hangup_by: 'system',
      denial_code: 'max_call_seconds',
      billsec: 2,
      cost_micros: cents(2),
    },
  ])
  expect(braked.wallet()).toMatchObject({ balance: cents(998), ledger: cents(998) })
})

test('a customer who is deactivated in mid-call is cut by the next heartbeat, and pays until then', async () => {
  const braked = caseOf('deactivated')
  const { tollgate, customer } = braked
  const key = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  const talking = call(braked, 'inbound/caller-is-hung-up.xml')
  await untilTalking(braked)
  const [{ id } = { id: 0 }] = tollgate.query<{ id: number }>(
    'SELECT id FROM customer WHERE name = ?',
    customer,
  )
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/customers/${id}`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ is_active: false }),
  })
  expect(answer.status).toBe(200)
  expect(await talking).toEqual(clean)
  const [cut] = await braked.waitForCalls(1)
  expect(cut).toMatchObject({ hangup_by: 'system', denial_code: 'customer_inactive' })
  expectPaid(cut, 1)
})
