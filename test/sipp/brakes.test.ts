/** Fraud brakes at the front door: who goes too far is refused or cut, and the record says why. */
import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { atOnce, cents, expectPaid, holdCall, startCase, untilTalking } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const number = '15550004444'

/** One customer with 10.00 and this brake. */
const braked = (brake: object, rates: readonly object[] = []) =>
  startCase({
    nodes: ['answers'],
    rates,
    customers: [
      { name: 'braked', rate_plan: 'retail', numbers: [number], balance: '10.00', ...brake },
    ],
  })

const caller = { keys: { caller: number } }
const answered = 'inbound/answered.xml'
const refused = 'inbound/no-funds.xml'

test.each([
  [
    'destination_blocked',
    {},
    [{ rate_plan: 'retail', prefix: '1800', rate_per_minute: '0', blocked: true }],
  ],
  ['customer_inactive', { is_active: false }, []],
  ['daily_spend_limit', { max_daily_spend: '0.005' }, []],
  ['no_rate', { rate_plan: null }, []],
])(
  '%s: the call is refused before any node rings, and costs nothing',
  async (code, brake, rates) => {
    const { tollgate } = await braked(brake, rates)
    expect(await callWith(refused, tollgate.sipPort, caller)).toEqual(clean)
    expect(await tollgate.waitForCalls(1)).toMatchObject([
      { sip_code: 402, denial_code: code, cost_micros: 0, node: null, attempts: '[]' },
    ])
  },
)

test('daily spend: what was spent today counts, over calls', async () => {
  // By the minute, so that a call costs 0.01 however long the machine stands still in it.
  const { tollgate } = await braked({ max_daily_spend: '0.02' }, [
    { rate_plan: 'retail', prefix: '1800', rate_per_minute: '0.01', first_increment: 60 },
  ])
  for (const scenario of [answered, answered, refused])
    expect(await callWith(scenario, tollgate.sipPort, caller)).toEqual(clean)
  const [first, second, third] = await tollgate.waitForCalls(3)
  expect([first?.cost_micros, second?.cost_micros]).toEqual([cents(1), cents(1)])
  expect(third).toMatchObject({ denial_code: 'daily_spend_limit', cost_micros: 0 })
})

test('concurrent calls: the second waits for the end of the first', async () => {
  const { tollgate } = await braked({ max_concurrent_calls: 1 })
  const hangUp = await holdCall(tollgate, () =>
    callWith('inbound/caller-is-hung-up.xml', tollgate.sipPort, caller),
  )
  expect(await callWith(refused, tollgate.sipPort, caller)).toEqual(clean)
  await hangUp()
  expect(await callWith(answered, tollgate.sipPort, caller)).toEqual(clean)
  expect((await tollgate.waitForCalls(3)).map((call) => call.denial_code)).toEqual([
    ...['concurrent_limit', null, null],
  ])
})

test('calls per second: of two at once one is let through', async () => {
  const { tollgate } = await braked({ max_cps: 1 })
  const [one, other] = await atOnce(tollgate, async () => {
    const two = { ...caller, calls: 2, rate: 1_000 }
    const result = await callWith('inbound/answered-or-refused.xml', tollgate.sipPort, two)
    expect(result).toEqual(clean)
  })
  expect(new Set([one?.denial_code, other?.denial_code])).toEqual(new Set(['cps_limit', null]))
})

test('a cap per call cuts both legs, however much money is left', async () => {
  const { tollgate } = await braked({ max_call_seconds: 2 })
  const result = await callWith('inbound/hung-up-without-funds.xml', tollgate.sipPort, caller)
  expect(result).toEqual(clean)
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    {
      disposition: 'ANSWERED',
      hangup_by: 'system',
      denial_code: 'max_call_seconds',
      billsec: 2,
      cost_micros: cents(2),
    },
  ])
  expect(tollgate.wallet('braked')).toMatchObject({ balance: cents(998), ledger: cents(998) })
})

test('a customer who is deactivated in mid-call is cut by the next heartbeat, and pays until then', async () => {
  const { tollgate } = await braked({})
  const key = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  const talking = callWith('inbound/caller-is-hung-up.xml', tollgate.sipPort, caller)
  await untilTalking(tollgate)
  const [{ id } = { id: 0 }] = tollgate.query<{ id: number }>(
    "SELECT id FROM customer WHERE name = 'braked'",
  )
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/customers/${id}`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ is_active: false }),
  })
  expect(answer.status).toBe(200)
  expect(await talking).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ hangup_by: 'system', denial_code: 'customer_inactive' })
  expectPaid(call, 1)
})
