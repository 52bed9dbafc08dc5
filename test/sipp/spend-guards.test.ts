/** Spend guards at the front door: what callers are told, what a cap lets through, and that others call on. */
import { expect, test } from 'vitest'
import { callWith, traceCall } from '../support/sipp.ts'
import { eventually } from '../support/waiting.ts'
import { cents, startCase, untilTalking } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const numbers = { acme: '15550005555', rival: '15550006666' }
const [answered, braked] = ['inbound/answered.xml', 'inbound/braked.xml']

test('a block refuses the next call, a cap lets through what it has, and another tenant calls on', async () => {
  const { tollgate } = await startCase({
    nodes: ['answers'],
    tenants: Object.keys(numbers).map((slug) => ({ slug, domains: [`${slug}.example`] })),
    customers: Object.entries(numbers).map(([name, number]) => ({
      name,
      tenant: name,
      rate_plan: 'retail',
      numbers: [number],
      balance: '10.00',
    })),
    // 0.06 a call, however long the machine stands still in it.
    rates: [
      {
        rate_plan: 'retail',
        prefix: '1800',
        rate_per_minute: '0.06',
        first_increment: 60,
        increment: 60,
      },
    ],
  })
  const { sipPort, apiPort } = tollgate
  const key = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  const post = (path: string, body: object) =>
    fetch(`http://127.0.0.1:${apiPort}/api/v1${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  const guard = async (body: object) => {
    const given = { tenant: 'acme', prefix: '1800', reason: 'a test', ...body }
    expect((await post('/spend-guards', given)).status).toBe(201)
  }
  /** What would become of a call now. */
  const verdict = async (): Promise<string> => {
    const asked = { from: numbers.acme, to: '18005551212', source: '127.0.0.1:5060' }
    const answer = await post('/telephony/simulate', asked)
    return ((await answer.json()) as { data: { verdict: string } }).data.verdict
  }
  const call = (scenario: string, caller = numbers.acme, more = {}) =>
    callWith(scenario, sipPort, { keys: { caller }, ...more })
  const expireAt = (at: number) =>
    tollgate.change('UPDATE spend_guard SET expires_at = ? WHERE expires_at IS NULL', at)

  await guard({ action: 'block' })
  for (const service of ['18005551212', '0018005551212', '01118005551212'])
    expect(await call(braked, numbers.acme, { service })).toEqual(clean)
  expect(await call(answered, numbers.rival)).toEqual(clean)
  const [refused] = await tollgate.waitForCalls(4)
  expect(refused).toMatchObject({
    sip_code: 403,
    denial_code: 'spend_guard',
    cost_micros: 0,
    node: null,
    attempts: '[]',
  })

  // Three calls, and no fourth one.
  await guard({ action: 'cap', amount: '0.18' })
  const atOnce = call('inbound/answered-or-braked.xml', numbers.acme, { calls: 5, rate: 50 })
  expect(await atOnce).toEqual(clean)
  const capped = (await tollgate.waitForCalls(9)).slice(4)
  expect(capped.filter(({ denial_code: code }) => code === 'spend_guard')).toHaveLength(2)
  expect(capped.filter(({ denial_code: code }) => code === null)).toHaveLength(3)
  expect(tollgate.wallet('acme')).toMatchObject({ balance: cents(1_000 - 18), debits: 3 })
  expect(await call(braked)).toEqual(clean)
  expect(await call(answered, numbers.rival)).toEqual(clean)

  // A live call ends when a block says so, or with what a cap leaves.
  const options = { keys: { caller: numbers.acme }, service: '16005551212' }
  const ended = traceCall('inbound/caller-is-hung-up.xml', sipPort, options)
  await untilTalking(tollgate)
  const expiry = Date.now() + 1_500
  expireAt(expiry)
  await guard({ prefix: '1600', action: 'block', end_live_calls: true })
  await guard({ prefix: '1700', action: 'cap', amount: '0.02' })
  const cut = call('inbound/hung-up-without-funds.xml', numbers.acme, { service: '17005551212' })
  await eventually(async () => expect(await verdict()).toBe('goes_on'))
  expect(Date.now()).toBeGreaterThan(expiry)
  expect(await call(answered)).toEqual(clean)
  expect(await cut).toEqual(clean)
  const { messages, ...result } = await ended
  expect(result).toEqual(clean)
  const bye = messages.find(({ text }) => text.startsWith('BYE '))
  expect(bye?.text).toContain('Reason: Q.850;cause=52;text="OUTGOING CALL BARRED"')
  const records = await tollgate.waitForCalls(14)
  const stopped = records.filter(({ destination_number }) => /^1[67]/.test(destination_number))
  expect(stopped).toHaveLength(2)
  for (const record of stopped)
    expect(record).toMatchObject({ disposition: 'ANSWERED', denial_code: 'spend_guard' })
  expect(tollgate.faults).toEqual([])
})
