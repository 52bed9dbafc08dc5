import { expect, onTestFinished, test } from 'vitest'
import { DnsServer } from '../support/dns-server.ts'
import { SippNode } from '../support/sipp.ts'
import { atOnce, attemptsOf, cents, expectPaid, holdCall, paying, poor } from './call-case.ts'
import { startTrunks } from './trunk-case.ts'
import { eventually, watchedNodes } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }
const called = '18005551212'
const account = { username: 'acme', password: 's3cret' }

const attempts = (call: { readonly attempts: string } | undefined) =>
  attemptsOf(call ?? { attempts: '[]' })

test.each([
  ['a proxy (407)', 'trunks/gateway-challenges'],
  ['the gateway itself (401), which verifies it', 'trunks/gateway-verifies'],
])("%s is told the carrier's user and password, and the call is paid", async (_, gateway) => {
  const { tollgate, dial } = await startTrunks({
    gateways: [gateway],
    carrier: { auth: { type: 'digest', ...account, realm: 'north' } },
  })
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({
    direction: 'outbound',
    carrier: 'north',
  })
  expect(attempts(call)).toEqual([200])
  const balance = cents(1_000) - expectPaid(call, 1)
  expect(tollgate.wallet('paying')).toMatchObject({ balance, debits: 1 })
  expect(tollgate.log.join('\n')).not.toContain('s3cret')
})

test('a gateway that is never content is asked twice, and the caller gets 403, not the challenge', async () => {
  const { tollgate, dial } = await startTrunks({
    gateways: ['trunks/gateway-refuses-password'],
    carrier: { auth: { type: 'digest', ...account } },
  })
  expect(await dial('inbound/unknown-source', called)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ sip_code: 403, cost_micros: 0 })
  expect(attempts(call)).toEqual([407])
})

test('when a gateway answers 503 the next one takes the call', async () => {
  const { tollgate, gateways, dial } = await startTrunks({
    gateways: ['nodes/refuses-503', 'nodes/answers'],
  })
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call?.carrier).toBe('north')
  expect(attempts(call)).toEqual([503, 200])
  expect(call?.attempts).toContain(`127.0.0.1:${gateways[1]?.port}`)
  expect(tollgate.wallet('paying').balance).toBe(cents(1_000) - expectPaid(call, 1))
})

test('the number is stripped and prepended, and the caller fixed, as seen on the wire', async () => {
  const { tollgate, dial } = await startTrunks({
    gateways: ['trunks/gateway-expects-number'],
    carrier: { caller_id: { mode: 'fixed', value: '15550009999' } },
    route: { prefix: '91', strip: 1, prepend: '00' },
    seed: { rates: [{ rate_plan: 'retail', prefix: '9', rate_per_minute: '0.60' }] },
  })
  expect(await dial('inbound/answered', `9${called}`)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({
    disposition: 'ANSWERED',
    caller_id_number: paying,
    destination_number: `9${called}`,
  })
})

test('the caller is told in P-Asserted-Identity where the carrier wants that', async () => {
  const { dial } = await startTrunks({
    gateways: ['trunks/gateway-expects-identity'],
    carrier: { caller_id: { mode: 'pai' } },
  })
  expect(await dial('inbound/answered', called)).toEqual(clean)
})

test('a carrier takes max_calls at once, and the next caller is told to retry', async () => {
  const { tollgate, dial } = await startTrunks({
    gateways: ['nodes/answers'],
    carrier: { max_calls: 1 },
  })
  const hangUp = await holdCall(tollgate, () => dial('inbound/caller-is-hung-up', called))
  expect(await dial('failover/retry-later', called)).toEqual(clean)
  await hangUp()
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const calls = await tollgate.waitForCalls(3)
  expect(calls.map(({ sip_code, denial_code }) => [sip_code, denial_code])).toEqual([
    [503, 'carrier_limit'],
    [200, null],
    [200, null],
  ])
  const balance = cents(1_000) - expectPaid(calls[1], 1) - expectPaid(calls[2], 1)
  expect(tollgate.wallet('paying')).toMatchObject({ balance, debits: 2 })
})

test('a carrier takes max_cps new calls in a second; the next one is told to retry, a later one passes', async () => {
  const { tollgate, dial } = await startTrunks({
    gateways: ['nodes/answers'],
    carrier: { max_cps: 1 },
  })
  let pairs = 0
  const two = await atOnce(tollgate, async () => {
    pairs += 1
    expect(await dial('inbound/answered-or-refused', called, paying, 2)).toEqual(clean)
  })
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const calls = [...two, ...(await tollgate.waitForCalls(1 + 2 * pairs)).slice(-1)]
  expect(calls.map(({ sip_code, denial_code }) => [sip_code, denial_code])).toEqual([
    [503, 'carrier_limit'],
    [200, null],
    [200, null],
  ])
  expect(tollgate.wallet('paying').debits).toBe(2 * pairs)
})

test('least cost: the carrier that is cheapest for the number gets the call, the next one what it refuses', async () => {
  const { tollgate, dial, get } = await startTrunks({
    gateways: ['nodes/answers', 'nodes/refuses-503'],
    seed: ([dear = 0, cheap = 0]) => ({
      rate_plans: ['retail', 'dear', 'cheap'].map((name) => ({ name, currency: 'USD' })),
      rates: [
        { rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' },
        { rate_plan: 'dear', prefix: '1', rate_per_minute: '0.02' },
        { rate_plan: 'cheap', prefix: '1800', rate_per_minute: '0.01' },
        { rate_plan: 'cheap', prefix: '1', rate_per_minute: '0.03' },
      ],
      carriers: [
        ...[{ name: 'dear', rate_plan: 'dear', gateways: [{ host: '127.0.0.1', port: dear }] }],
        ...[{ name: 'cheap', rate_plan: 'cheap', gateways: [{ host: '127.0.0.1', port: cheap }] }],
      ].map((carrier) => ({ ...carrier, direction: 'out' })),
      outbound_routes: ['dear', 'cheap'].map((carrier, index) => ({
        ...{ name: carrier, prefix: '', carrier, mode: 'lcr', priority: 10 + index },
      })),
    }),
  })
  expect(await dial('inbound/answered', called)).toEqual(clean)
  expect(await dial('inbound/answered', '13035551212')).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
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
  const { tollgate, dial, get } = await startTrunks({
    gateways: ['nodes/answers'],
    seed: ([port = 0]) => ({
      carriers: [
        { name: 'gone', gateways: [{ host: 'gone.invalid' }] },
        { name: 'there', direction: 'out', gateways: [{ host: '127.0.0.1', port }] },
      ],
      outbound_routes: [
        { name: 'first', prefix: '', carrier: 'gone', priority: 1 },
        { name: 'second', prefix: '', carrier: 'there', priority: 2 },
      ],
    }),
  })
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
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

test('a gateway whose name stops resolving gets no more calls, and gets them again when it is back', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const address = { type: 'A', name: 'gw.carrier.test', ttl: 1, data: '127.0.0.1' } as const
  dns.serve(address)
  const { tollgate, gateways, dial, get } = await startTrunks({
    gateways: ['nodes/answers', 'nodes/answers'],
    seed: ([named = 0, other = 0]) => ({
      carriers: [
        {
          ...{ name: 'north', direction: 'out' },
          gateways: [
            { host: 'gw.carrier.test', port: named, priority: 1 },
            { host: '127.0.0.1', port: other, priority: 2 },
          ],
        },
      ],
    }),
    environment: {
      ...{ ...watchedNodes, GATEWAY_PROBE_INTERVAL_MS: '500' },
      SIP_DNS_SERVERS: dns.address,
    },
  })
  const usable = async (count: number) =>
    eventually(async () => {
      const shown = (await get('/routing/carriers/1')) as {
        gateways: { status: { state: string } }[]
      }
      const states = shown.gateways.map(({ status }) => status.state)
      expect(states.filter((state) => state === 'active')).toHaveLength(count)
    })
  await usable(2)
  expect(await dial('inbound/answered', called)).toEqual(clean)
  dns.serve()
  expect(await dial('inbound/answered', called)).toEqual(clean)
  await usable(1)
  expect(await dial('inbound/answered', called)).toEqual(clean)
  dns.serve(address)
  await usable(2)
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const calls = await tollgate.waitForCalls(4)
  expect(calls.map(({ disposition }) => disposition)).toEqual(Array(4).fill('ANSWERED'))
  const served = calls.map((call) => {
    const tries = JSON.parse(call.attempts) as { destination: string }[]
    return tries.at(-1)?.destination.replace(/^.*:(\d+);.*$/, '$1')
  })
  const [named, other] = gateways.map(({ port }) => String(port))
  expect(served).toEqual([named, expect.any(String), other, named])
}, 120_000)

test('a blocked prefix is refused with 403 and costs nothing', async () => {
  const { tollgate, dial } = await startTrunks({
    gateways: ['nodes/answers'],
    seed: {
      outbound_routes: [
        { name: 'out', prefix: '', carrier: 'north' },
        { name: 'premium', prefix: '1800', mode: 'block' },
      ],
    },
  })
  expect(await dial('inbound/unknown-source', called)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ sip_code: 403, denial_code: 'destination_blocked', cost_micros: 0 })
  expect(tollgate.wallet('paying').balance).toBe(cents(1_000))
})

test('an emergency call needs no money and passes the limit of the carrier', async () => {
  const { tollgate, dial } = await startTrunks({
    gateways: ['nodes/answers'],
    carrier: { max_calls: 1 },
    seed: {
      outbound_routes: [
        { name: 'out', prefix: '', carrier: 'north' },
        { name: 'help', prefix: '112', carrier: 'north', emergency: true },
      ],
    },
  })
  const hangUp = await holdCall(tollgate, () => dial('inbound/caller-is-hung-up', called))
  expect(await dial('inbound/answered', '112', poor)).toEqual(clean)
  await hangUp()
  const calls = await tollgate.waitForCalls(2)
  expect(calls[0]).toMatchObject({
    destination_number: '112',
    disposition: 'ANSWERED',
    cost_micros: 0,
    carrier: 'north',
  })
  expect(tollgate.wallet('poor')).toMatchObject({ balance: 0, debits: 0 })
})

test('we register with a carrier that challenges us, and the API says so', async () => {
  const { get } = await startTrunks({
    gateways: ['trunks/registrar'],
    carrier: { auth: { type: 'register', ...account, from_domain: 'carrier.example' } },
  })
  await eventually(async () =>
    expect(await get('/routing/carriers/1')).toMatchObject({
      registration: 'registered',
      status: { is_usable: true, registration: { last_answer: { status: 200 } } },
    }),
  )
})

test('a wrong password with a carrier shows as a failed registration', async () => {
  const { get } = await startTrunks({
    gateways: ['trunks/registrar'],
    carrier: {
      auth: {
        type: 'register',
        username: 'acme',
        password: 'wrong',
        from_domain: 'carrier.example',
      },
    },
  })
  await eventually(async () =>
    expect(await get('/routing/carriers/1')).toMatchObject({
      registration: 'failed',
      status: { registration: { expires_at: null, last_answer: { status: 403 } } },
    }),
  )
})

test('a gateway that stops answering OPTIONS gets no calls until it answers again', async () => {
  const { tollgate, gateways, dial, get } = await startTrunks({
    gateways: ['nodes/answers', 'nodes/answers'],
    environment: { ...watchedNodes, GATEWAY_PROBE_INTERVAL_MS: '500' },
  })
  const states = async () => {
    const { gateways: shown } = (await get('/routing/carriers/1')) as {
      gateways: { status: { state: string; probes: { answered: number } } }[]
    }
    return shown.map(({ status }) => status)
  }
  await eventually(async () => expect((await states())[0]?.probes.answered).toBeGreaterThan(0))
  gateways[0]?.freeze()
  await eventually(async () =>
    expect((await states()).map(({ state }) => state)).toEqual(['probing', 'active']),
  )
  expect(await dial('inbound/answered', called)).toEqual(clean)
  gateways[0]?.thaw()
  await eventually(async () => expect((await states())[0]?.state).toBe('active'))
  expect(await dial('inbound/answered', called)).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map((call) => attempts(call))).toEqual([[200], [200]])
  const [first, second] = calls
  expect(first?.attempts).toContain(`127.0.0.1:${gateways[1]?.port}`)
  expect(second?.attempts).toContain(`127.0.0.1:${gateways[0]?.port}`)
})

test("a call from a carrier's gateway is recognized by its port, rewritten, routed to an agent, and paid by the customer", async () => {
  const agent = await SippNode.start('nodes/answers.xml')
  const { tollgate, dial } = await startTrunks({
    gateways: [],
    seed: {
      ai_agents: [
        { name: 'bot', extension: '700', sip_uri: `sip:bot@127.0.0.1:${agent.port}`, max_calls: 1 },
      ],
      inbound_routes: [{ name: 'in', prefix: '1800', agent: 'bot' }],
      outbound_routes: [],
    },
    inbound: { customer: 'paying', number_rules: { in: [{ match: '^00', replace: '' }] } },
  })
  const hangUp = await holdCall(tollgate, () =>
    dial('inbound/caller-is-hung-up', `00${called}`, '4930123'),
  )
  expect(await dial('failover/retry-later', called)).toEqual(clean)
  await hangUp()
  expect(await agent.stop()).toBe('')
  const [refused, answered] = await tollgate.waitForCalls(2)
  expect(refused).toMatchObject({ sip_code: 503, denial_code: 'agent_limit', cost_micros: 0 })
  expect(answered).toMatchObject({
    direction: 'inbound',
    carrier: 'north',
    destination_number: called,
  })
  const balance = cents(1_000) - expectPaid(answered, 1)
  expect(tollgate.wallet('paying')).toMatchObject({ balance, debits: 1 })
})
