import { expect, test } from 'vitest'
import { attemptsOf, cents, expectPaid, holdCall } from './call-case.ts'
import { shareTrunks } from './trunk-case.ts'
import { eventually } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }
const account = { username: 'acme', password: 's3cret' }

const attempts = (call: { readonly attempts: string } | undefined) =>
  attemptsOf(call ?? { attempts: '[]' })

const answers = ['nodes/answers']
const called = '18005551212'

const caseOf = shareTrunks({
  'trunks/gateway-challenges': {
    gateways: ['trunks/gateway-challenges'],
    carrier: { auth: { type: 'digest', ...account, realm: 'north' } },
  },
  'trunks/gateway-verifies': {
    gateways: ['trunks/gateway-verifies'],
    carrier: { auth: { type: 'digest', ...account, realm: 'north' } },
  },
  refusesPassword: {
    gateways: ['trunks/gateway-refuses-password'],
    carrier: { auth: { type: 'digest', ...account } },
  },
  rewritten: {
    gateways: ['trunks/gateway-expects-number'],
    number: `9${called}`,
    carrier: { caller_id: { mode: 'fixed', value: '15550009999' } },
    route: { prefix: '91', strip: 1, prepend: '00' },
    seed: () => ({ rates: [{ rate_plan: 'retail', prefix: '9', rate_per_minute: '0.60' }] }),
  },
  registers: {
    gateways: ['trunks/registrar'],
    carrier: { auth: { type: 'register', ...account, from_domain: 'carrier.example' } },
  },
  inbound: {
    gateways: answers,
    isOutside: true,
    seed: ({ name, number, ports: [port], outside }) => ({
      carriers: [
        {
          name,
          direction: 'in',
          customer: name,
          gateways: outside.map((from) => ({ host: '127.0.0.1', port: from })),
          number_rules: { in: [{ match: '^00', replace: '' }] },
        },
      ],
      ai_agents: [
        { name: 'bot', extension: '700', sip_uri: `sip:bot@127.0.0.1:${port}`, max_calls: 1 },
      ],
      inbound_routes: [{ name, prefix: number, agent: 'bot' }],
      outbound_routes: [],
    }),
  },
})

test.each([
  ['a proxy (407)', 'trunks/gateway-challenges'],
  ['the gateway itself (401), which verifies it', 'trunks/gateway-verifies'],
] as const)(
  "%s is told the carrier's user and password, and the call is paid",
  async (_, gateway) => {
    const { tollgate, name, dial, waitForCalls, wallet } = caseOf(gateway)
    expect(await dial('inbound/answered')).toEqual(clean)
    const [call] = await waitForCalls(1)
    expect(call).toMatchObject({ direction: 'outbound', carrier: name })
    expect(attempts(call)).toEqual([200])
    const balance = cents(1_000) - expectPaid(call, 1)
    expect(wallet()).toMatchObject({ balance, debits: 1 })
    expect(tollgate.log.join('\n')).not.toContain('s3cret')
  },
)

test('a gateway that is never content is asked twice, and the caller gets 403, not the challenge', async () => {
  const { dial, waitForCalls } = caseOf('refusesPassword')
  expect(await dial('inbound/unknown-source')).toEqual(clean)
  const [call] = await waitForCalls(1)
  expect(call).toMatchObject({ sip_code: 403, cost_micros: 0 })
  expect(attempts(call)).toEqual([407])
})

test('the number is stripped and prepended, and the caller fixed, as seen on the wire', async () => {
  const { number, caller, dial, waitForCalls } = caseOf('rewritten')
  expect(await dial('inbound/answered')).toEqual(clean)
  const [call] = await waitForCalls(1)
  expect(call).toMatchObject({
    disposition: 'ANSWERED',
    caller_id_number: caller,
    destination_number: number,
  })
})

test('we register with a carrier that challenges us, and the API says so', async () => {
  const { shownCarrier } = caseOf('registers')
  await eventually(async () =>
    expect(await shownCarrier()).toMatchObject({
      registration: 'registered',
      status: { is_usable: true, registration: { last_answer: { status: 200 } } },
    }),
  )
})

test("a call from a carrier's gateway is recognized by its port, rewritten, routed to an agent, and paid by the customer", async () => {
  const own = caseOf('inbound')
  const { tollgate, name, number, gateways, dial, waitForCalls, wallet } = own
  const asSent = { number: `00${number}`, caller: '4930123' }
  const place = () => dial('inbound/caller-is-hung-up', asSent)
  const hangUp = await holdCall(tollgate, place, own)
  expect(await dial('failover/retry-later')).toEqual(clean)
  await hangUp()
  expect(await gateways[0]?.stop()).toBe('')
  const [refused, answered] = await waitForCalls(2)
  expect(refused).toMatchObject({ sip_code: 503, denial_code: 'agent_limit', cost_micros: 0 })
  expect(answered).toMatchObject({
    direction: 'inbound',
    carrier: name,
    destination_number: number,
  })
  const balance = cents(1_000) - expectPaid(answered, 1)
  expect(wallet()).toMatchObject({ balance, debits: 1 })
})
