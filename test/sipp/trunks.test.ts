import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DnsServer } from '../support/dns-server.ts'
import { atOnce, attemptsOf, cents, expectPaid, holdCall, poor } from './call-case.ts'
import { shareTrunks } from './trunk-case.ts'
import { eventually, watchedNodes } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }
const account = { username: 'acme', password: 's3cret' }

const attempts = (call: { readonly attempts: string } | undefined) =>
  attemptsOf(call ?? { attempts: '[]' })

const answers = ['nodes/answers']
const called = '18005551212'
const elsewhere = '13035551212'

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
  nextGateway: { gateways: ['nodes/refuses-503', 'nodes/answers'] },
  rewritten: {
    gateways: ['trunks/gateway-expects-number'],
    number: `9${called}`,
    carrier: { caller_id: { mode: 'fixed', value: '15550009999' } },
    route: { prefix: '91', strip: 1, prepend: '00' },
    seed: () => ({ rates: [{ rate_plan: 'retail', prefix: '9', rate_per_minute: '0.60' }] }),
  },
  identity: {
    gateways: ['trunks/gateway-expects-identity'],
    carrier: { caller_id: { mode: 'pai' } },
  },
  concurrent: { gateways: answers, carrier: { max_calls: 1 } },
  perSecond: { gateways: answers, carrier: { max_cps: 1 } },
  leastCost: {
    gateways: ['nodes/answers', 'nodes/refuses-503'],
    seed: ({ number, ports: [dear = 0, cheap = 0] }) => ({
      rate_plans: ['dear', 'cheap'].map((name) => ({ name, currency: 'USD' })),
      rates: [
        { rate_plan: 'dear', prefix: '1', rate_per_minute: '0.02' },
        { rate_plan: 'cheap', prefix: '1800', rate_per_minute: '0.01' },
        { rate_plan: 'cheap', prefix: '1', rate_per_minute: '0.03' },
      ],
      carriers: [
        { name: 'dear', rate_plan: 'dear', gateways: [{ host: '127.0.0.1', port: dear }] },
        { name: 'cheap', rate_plan: 'cheap', gateways: [{ host: '127.0.0.1', port: cheap }] },
      ].map((carrier) => ({ ...carrier, direction: 'out' })),
      outbound_routes: [number, elsewhere].flatMap((prefix) =>
        ['dear', 'cheap'].map((carrier, index) => ({
          name: `${carrier} to ${prefix}`,
          prefix,
          carrier,
          mode: 'lcr',
          priority: 10 + index,
        })),
      ),
    }),
  },
  unresolvable: {
    gateways: answers,
    seed: ({ number: prefix, ports: [port = 0] }) => ({
      carriers: [
        { name: 'gone', gateways: [{ host: 'gone.invalid' }] },
        { name: 'there', direction: 'out', gateways: [{ host: '127.0.0.1', port }] },
      ],
      outbound_routes: [
        { name: 'first', prefix, carrier: 'gone', priority: 1 },
        { name: 'second', prefix, carrier: 'there', priority: 2 },
      ],
    }),
  },
  blocked: {
    gateways: answers,
    seed: ({ name, number }) => ({
      outbound_routes: [
        { name, prefix: number.slice(0, -1), carrier: name },
        { name: 'premium', prefix: number, mode: 'block' },
      ],
    }),
  },
  emergency: {
    gateways: answers,
    carrier: { max_calls: 1 },
    seed: ({ name, number }) => ({
      outbound_routes: [
        { name, prefix: number, carrier: name },
        { name: 'help', prefix: '112', carrier: name, emergency: true },
      ],
    }),
  },
  registers: {
    gateways: ['trunks/registrar'],
    carrier: { auth: { type: 'register', ...account, from_domain: 'carrier.example' } },
  },
  wrongPassword: {
    gateways: ['trunks/registrar'],
    carrier: {
      auth: { type: 'register', ...account, password: 'wrong', from_domain: 'carrier.example' },
    },
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

test('when a gateway answers 503 the next one takes the call', async () => {
  const { gateways, name, dial, waitForCalls, wallet } = caseOf('nextGateway')
  expect(await dial('inbound/answered')).toEqual(clean)
  const [call] = await waitForCalls(1)
  expect(call?.carrier).toBe(name)
  expect(attempts(call)).toEqual([503, 200])
  expect(call?.attempts).toContain(`127.0.0.1:${gateways[1]?.port}`)
  expect(wallet().balance).toBe(cents(1_000) - expectPaid(call, 1))
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

test('the caller is told in P-Asserted-Identity where the carrier wants that', async () => {
  const { dial } = caseOf('identity')
  expect(await dial('inbound/answered')).toEqual(clean)
})

test('a carrier takes max_calls at once, and the next caller is told to retry', async () => {
  const own = caseOf('concurrent')
  const { tollgate, dial, waitForCalls, wallet } = own
  const hangUp = await holdCall(tollgate, () => dial('inbound/caller-is-hung-up'), own)
  expect(await dial('failover/retry-later')).toEqual(clean)
  await hangUp()
  expect(await dial('inbound/answered')).toEqual(clean)
  const calls = await waitForCalls(3)
  expect(calls.map(({ sip_code, denial_code }) => [sip_code, denial_code])).toEqual([
    [503, 'carrier_limit'],
    [200, null],
    [200, null],
  ])
  const balance = cents(1_000) - expectPaid(calls[1], 1) - expectPaid(calls[2], 1)
  expect(wallet()).toMatchObject({ balance, debits: 2 })
})

test('a carrier takes max_cps new calls in a second; the next one is told to retry, a later one passes', async () => {
  const own = caseOf('perSecond')
  const { dial, waitForCalls, wallet } = own
  let pairs = 0
  const two = await atOnce(own, async () => {
    pairs += 1
    expect(await dial('inbound/answered-or-refused', { calls: 2 })).toEqual(clean)
  })
  expect(await dial('inbound/answered')).toEqual(clean)
  const calls = [...two, ...(await waitForCalls(1 + 2 * pairs)).slice(-1)]
  expect(calls.map(({ sip_code, denial_code }) => [sip_code, denial_code])).toEqual([
    [503, 'carrier_limit'],
    [200, null],
    [200, null],
  ])
  expect(wallet().debits).toBe(2 * pairs)
})

test('least cost: the carrier that is cheapest for the number gets the call, the next one what it refuses', async () => {
  const { dial, get, waitForCalls } = caseOf('leastCost')
  expect(await dial('inbound/answered')).toEqual(clean)
  expect(await dial('inbound/answered', { number: elsewhere })).toEqual(clean)
  const calls = await waitForCalls(2)
  expect(calls.map((call) => [call.carrier, attempts(call)])).toEqual([
    ['dear', [503, 200]],
    ['dear', [200]],
  ])
  const trace = (await get(`/calls/${calls[0]?.call_uuid}/trace`)) as {
    entries: readonly { what?: string; detail?: object }[]
  }
  expect(trace.entries.find(({ what }) => what === 'routed')?.detail).toMatchObject({
    prices: [
      { carrier: 'cheap', price: '0.01' },
      { carrier: 'dear', price: '0.02' },
    ],
  })
})

test('a gateway with an unresolvable name is skipped and leaves nothing behind', async () => {
  const { dial, get, waitForCalls } = caseOf('unresolvable')
  expect(await dial('inbound/answered')).toEqual(clean)
  const [call] = await waitForCalls(1)
  expect(call?.carrier).toBe('there')
  expectPaid(call, 1)
  await eventually(async () => {
    const { calls, engine } = (await get('/metrics/telemetry')) as {
      calls: { active: number }
      engine: { sip_resolving: number; sip_dialogs: number; srf_invites: number }
    }
    const { sip_resolving: resolving, sip_dialogs: dialogs, srf_invites: invites } = engine
    expect([calls.active, resolving, dialogs, invites]).toEqual([0, 0, 0, 0])
  })
})

test('a blocked prefix is refused with 403 and costs nothing', async () => {
  const { dial, waitForCalls, wallet } = caseOf('blocked')
  expect(await dial('inbound/unknown-source')).toEqual(clean)
  const [call] = await waitForCalls(1)
  expect(call).toMatchObject({ sip_code: 403, denial_code: 'destination_blocked', cost_micros: 0 })
  expect(wallet().balance).toBe(cents(1_000))
})

test('an emergency call needs no money and passes the limit of the carrier', async () => {
  const own = caseOf('emergency')
  const { tollgate, name, dial, waitForCalls } = own
  const hangUp = await holdCall(tollgate, () => dial('inbound/caller-is-hung-up'), own)
  expect(await dial('inbound/answered', { number: '112', caller: poor })).toEqual(clean)
  await hangUp()
  const calls = await waitForCalls(2)
  expect(calls[0]).toMatchObject({
    destination_number: '112',
    disposition: 'ANSWERED',
    cost_micros: 0,
    carrier: name,
  })
  expect(tollgate.wallet('poor')).toMatchObject({ balance: 0, debits: 0 })
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

test('a wrong password with a carrier shows as a failed registration', async () => {
  const { shownCarrier } = caseOf('wrongPassword')
  await eventually(async () =>
    expect(await shownCarrier()).toMatchObject({
      registration: 'failed',
      status: { registration: { expires_at: null, last_answer: { status: 403 } } },
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

describe('gateways that are probed all the time', () => {
  const address = { type: 'A', name: 'gw.carrier.test', ttl: 1, data: '127.0.0.1' } as const
  let dns: DnsServer
  beforeAll(async () => {
    dns = await DnsServer.start()
    dns.serve(address)
  })
  afterAll(() => dns.close())
  const two = { gateways: ['nodes/answers', 'nodes/answers'] }
  const probedCase = shareTrunks(
    {
      named: {
        ...two,
        seed: ({ name, ports: [named, other] }) => ({
          carriers: [
            {
              name,
              direction: 'out',
              gateways: [
                { host: 'gw.carrier.test', port: named, priority: 1 },
                { host: '127.0.0.1', port: other, priority: 2 },
              ],
            },
          ],
        }),
      },
      frozen: two,
    },
    () => ({ ...watchedNodes, GATEWAY_PROBE_INTERVAL_MS: '500', SIP_DNS_SERVERS: dns.address }),
  )

  test('a gateway whose name stops resolving gets no more calls, and gets them again when it is back', async () => {
    const { gateways, dial, shownCarrier, waitForCalls } = probedCase('named')
    const usable = async (count: number) =>
      eventually(async () => {
        const shown = (await shownCarrier()) as {
          gateways: { status: { state: string } }[]
        }
        const states = shown.gateways.map(({ status }) => status.state)
        expect(states.filter((state) => state === 'active')).toHaveLength(count)
      })
    await usable(2)
    expect(await dial('inbound/answered')).toEqual(clean)
    dns.serve()
    expect(await dial('inbound/answered')).toEqual(clean)
    await usable(1)
    expect(await dial('inbound/answered')).toEqual(clean)
    dns.serve(address)
    await usable(2)
    expect(await dial('inbound/answered')).toEqual(clean)
    const calls = await waitForCalls(4)
    expect(calls.map(({ disposition }) => disposition)).toEqual(Array(4).fill('ANSWERED'))
    const served = calls.map((call) => {
      const tries = JSON.parse(call.attempts) as { destination: string }[]
      return tries.at(-1)?.destination.replace(/^.*:(\d+);.*$/, '$1')
    })
    const [named, other] = gateways.map(({ port }) => String(port))
    expect(served).toEqual([named, expect.any(String), other, named])
  }, 120_000)

  test('a gateway that stops answering OPTIONS gets no calls until it answers again', async () => {
    const { gateways, dial, shownCarrier, waitForCalls } = probedCase('frozen')
    const states = async () => {
      const { gateways: shown } = (await shownCarrier()) as {
        gateways: { status: { state: string; probes: { answered: number } } }[]
      }
      return shown.map(({ status }) => status)
    }
    await eventually(async () => expect((await states())[0]?.probes.answered).toBeGreaterThan(0))
    gateways[0]?.freeze()
    await eventually(async () =>
      expect((await states()).map(({ state }) => state)).toEqual(['probing', 'active']),
    )
    expect(await dial('inbound/answered')).toEqual(clean)
    gateways[0]?.thaw()
    await eventually(async () => expect((await states())[0]?.state).toBe('active'))
    expect(await dial('inbound/answered')).toEqual(clean)
    const calls = await waitForCalls(2)
    expect(calls.map((call) => attempts(call))).toEqual([[200], [200]])
    const [first, second] = calls
    expect(first?.attempts).toContain(`127.0.0.1:${gateways[1]?.port}`)
    expect(second?.attempts).toContain(`127.0.0.1:${gateways[0]?.port}`)
  })
})
