/** What a tenant may take by what its key writes: calls of the platform's trunks, and money of others. */
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'

const numbers = { acme: '15550100001', beta: '15550200001', platform: '15550300001' }

/** Two tenants beside the platform; each has a wallet, a node and a carrier. */
async function start() {
  const ports: Record<string, number> = {}
  for (const name of ['silent', 'named', 'acmeTrunk', 'pbx', 'acmePbx'])
    ports[name] = await freePort()
  const { silent, named, acmeTrunk, pbx, acmePbx } = ports
  const gateways = (port: number | undefined) => [{ host: '127.0.0.1', port, outbound: false }]
  const tollgate = await TollgateProcess.start(
    {
      tenants: ['acme', 'beta'].map((slug) => ({ slug, domains: [`${slug}.example`] })),
      rate_plans: [{ name: 'retail' }],
      rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' }],
      customers: Object.entries(numbers).map(([name, number]) => ({
        name,
        numbers: [number],
        rate_plan: 'retail',
        balance: '10.00',
        ...(name === 'platform' ? {} : { tenant: name }),
      })),
      dispatcher: [
        // The tenant's set has the lower number.
        { endpoint_name: 'acme', tenant: 'acme', set_id: 1, algorithm: 8, nodes: nodeAt(acmePbx) },
        { endpoint_name: 'common', set_id: 9, algorithm: 8, nodes: nodeAt(pbx) },
      ],
      carriers: [
        { name: 'silent', gateways: gateways(silent) },
        { name: 'named', payer: 'from_number', gateways: gateways(named) },
        {
          name: 'acme trunk',
          tenant: 'acme',
          payer: 'from_number',
          gateways: gateways(acmeTrunk),
          inbound_set: 'acme',
        },
      ],
    },
    { ...patientNodes, TRUSTED_SOURCES: '192.0.2.0/24' },
  )
  onTestFinished(() => tollgate.stop())
  const peerAt = (port: number | undefined) => SipPeer.open(tollgate.listener(), { port })
  for (const port of [pbx, acmePbx]) {
    const node = await peerAt(port)
    onTestFinished(() => node.close())
    node.always('OPTIONS', 200, { tag: 'probed' })
    node.always('INVITE', 486, { tag: 'b' })
  }
  const tokens = new Map<string | null, Promise<string>>()
  const tokenOf = (tenant: string | null): Promise<string> => {
    const words = ['--name', 'test', '--scopes', '*']
    const known = tokens.get(tenant)
    if (known !== undefined) return known
    const made = tollgate.createKey(...words, ...(tenant === null ? [] : ['--tenant', tenant]))
    tokens.set(tenant, made)
    return made
  }
  let records = 0
  return {
    tollgate,
    /** Calls from a gateway's port; who got the call declines it. Answers status, code and set. */
    call: async (from: 'silent' | 'named' | 'acmeTrunk', caller: string, called: string) => {
      const trunk = await peerAt(ports[from])
      const leg = trunk.leg(`sip:${called}@127.0.0.1:${tollgate.sipPort}`)
      const line = leg.from.replace('sip:peer@', `sip:${caller}@`)
      trunk.request('INVITE', { ...leg, from: line }, { body: sdp('offer') })
      await trunk.next((message) => message.status >= 300)
      trunk.close()
      records += 1
      const record = (await tollgate.waitForCalls(records)).at(-1)
      const [row] = tollgate.query<{ endpoint_name: string }>(
        `SELECT endpoint_name FROM cdr LEFT JOIN dispatcher_set USING (set_id) ORDER BY cdr.id DESC`,
      )
      return [record?.sip_code, record?.denial_code ?? row?.endpoint_name]
    },
    /** A request with a key of a tenant, or with one of the platform. */
    ask: async (tenant: string | null, method: string, path: string, body: object) => {
      const token = await tokenOf(tenant)
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return answer.status
    },
    ports,
  }
}

const nodeAt = (port: number | undefined) => [{ host: '127.0.0.1', internal_port: port }]

test('From spends a wallet only where the operator said so, and of its tenant only', async () => {
  const { call, tollgate } = await start()
  expect(await call('silent', numbers.platform, '1800')).toEqual([403, 'no_payer'])
  expect(await call('named', numbers.platform, '1800')).toEqual([486, 'common'])
  expect(await call('acmeTrunk', numbers.acme, '1800')).toEqual([486, 'acme'])
  // Nothing tells the number of another tenant's customer from one that nobody has.
  for (const victim of [numbers.beta, numbers.platform, '15559990000'])
    expect(await call('acmeTrunk', victim, '1800')).toEqual([402, 'unknown_caller'])
  for (const customer of ['beta', 'platform', 'acme'])
    expect(tollgate.wallet(customer)).toMatchObject({ balance: 10_000_000, debits: 0 })
})

test("what a tenant's key writes takes no call of the platform's trunks but to its own numbers", async () => {
  const { call, ask, ports } = await start()
  const victim = numbers.platform
  // Neither its lower set id nor any of these takes the call.
  expect(await call('named', victim, '18005550000')).toEqual([486, 'common'])
  for (const [index, prefix] of ['', '1800', '18005550000'].entries()) {
    const route = { name: `route ${index}`, prefix, set: 'acme', priority: 1 }
    expect(await ask('acme', 'POST', '/inbound-routes', route)).toBe(201)
  }
  const foreign = { name: 'domain', domain: 'beta.example', set: 'acme' }
  expect(await ask('acme', 'POST', '/inbound-routes', foreign)).toBe(400)
  const agent = { name: 'bot', extension: '18005550000', sip_uri: 'sip:bot@192.0.2.9' }
  expect(await ask('acme', 'POST', '/telephony/ai-agents', agent)).toBe(201)
  for (const gateway of [
    { host: '127.0.0.1', port: ports['named'] },
    { host: '127.0.0.1', port: ports['pbx'] },
    { host: '127.0.0.0', netmask: 24 },
  ])
    expect(
      await ask('acme', 'POST', '/routing/carriers', { name: 'thief', gateways: [gateway] }),
    ).toBe(409)
  const set = { endpoint_name: 'thief', algorithm: 8, nodes: nodeAt(ports['pbx']) }
  expect(await ask('acme', 'POST', '/dispatcher', set)).toBe(409)
  expect(await call('named', victim, '18005550000')).toEqual([486, 'common'])
  // The tenant's own trunk goes where the tenant says; the platform lists a number, and its trunks do too.
  expect(await ask('acme', 'PATCH', '/tenants/1', { numbers: ['1800555'] })).toBe(403)
  expect(await ask(null, 'PATCH', '/tenants/1', { numbers: ['1800555'] })).toBe(200)
  expect(await call('named', victim, '18005550000')).toEqual([486, 'acme'])
  expect(await call('named', victim, '18006660000')).toEqual([486, 'common'])
})
