/** Calls from a carrier to numbers of `/numbers`: the whole engine, without its process. */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { Ocs } from '../../engine/charging/ocs.ts'
import { seedFile } from '../../engine/commands/seed.ts'
import { readConfig } from '../../engine/config.ts'
import { createEngine } from '../../engine/create-engine.ts'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { Rounds } from '../../schema/rounds.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { emptyStore } from '../support/empty-store.ts'
import { freePort } from '../support/free-port.ts'
import { journalOf } from '../support/journals.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { runSql } from '../support/stored.ts'
import { patientInstances } from '../support/waiting.ts'

const address = '127.0.0.1'
const domain = 'acme.example'
const password = 'correct horse'

interface Places {
  readonly port: number
  readonly trunk: SipPeer
  readonly tenantTrunk: SipPeer
  readonly byCarrier: SipPeer
  readonly byNumber: SipPeer
  readonly agent: SipPeer
  readonly phone: DigestPhone
}

async function openPlaces(): Promise<Places> {
  const port = await freePort()
  const advertised = { advertisedHost: address, advertisedPort: port }
  const listener = { protocol: 'udp', address, port, ...advertised } as const
  const open = () => SipPeer.openPatient(listener)
  const phone = await DigestPhone.open(listener, { user: '101', domain, password })
  const peers = [await open(), await open(), await open(), await open(), await open()] as const
  const [trunk, tenantTrunk, byCarrier, byNumber, agent] = peers
  for (const peer of [byCarrier, byNumber, agent, phone.peer])
    void answerCalls(peer).catch(() => undefined)
  onTestFinished(() => [...peers, phone.peer].forEach((peer) => peer.close()))
  return { port, trunk, tenantTrunk, byCarrier, byNumber, agent, phone }
}

async function answerCalls(peer: SipPeer): Promise<void> {
  for (;;) {
    const request = await peer.next((message: PeerMessage) => message.method !== '')
    if (request.method === 'INVITE')
      peer.reply(request, 200, { tag: randomUUID(), body: sdp('callee') })
    else if (request.method !== 'ACK') peer.reply(request, 200)
  }
}

const seedOf = ({ trunk, tenantTrunk, byCarrier, byNumber, agent }: Places) => ({
  tenants: [
    { slug: 'acme', name: 'acme', domains: [domain] },
    { slug: 'other', name: 'other', domains: ['other.example'] },
  ],
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '0.60' }],
  customers: [
    { name: 'trunk', rate_plan: 'retail', balance: '5' },
    { name: 'other', tenant: 'other', rate_plan: 'retail', balance: '5' },
  ],
  dispatcher: [byCarrier, byNumber].map(({ port }, index) => ({
    endpoint_name: `pbx ${index + 1}`,
    set_id: index + 1,
    algorithm: 8,
    nodes: [{ host: address, internal_port: port }],
  })),
  carriers: [
    {
      name: 'big',
      gateways: [{ host: address, port: trunk.port }],
      customer: 'trunk',
      inbound_set: 1,
      number_rules: { in: [{ match: '^00', replace: '+' }], out: [] },
    },
    {
      name: 'small',
      tenant: 'other',
      customer: 'other',
      gateways: [{ host: address, port: tenantTrunk.port }],
    },
  ],
  extensions: [{ extension: '101', password, display_name: '101', tenant: 'acme', domain }],
  ai_agents: [{ name: 'bot', extension: '700', sip_uri: `sip:bot@${address}:${agent.port}` }],
  inbound_routes: [{ name: 'all', prefix: '49', set: 1 }],
  numbers: [
    { number: '+4930100', tenant: 'acme', extension: '101' },
    { number: '+4930200', set: 2 },
    { number: '+4930300', agent: 'bot' },
    { number: '+4930400', set: 2, is_active: false },
    { number: '+4930500' },
    { number: '+4930610', last_number: '+4930689', set: 2 },
  ],
})

async function startEngine(store: ReturnType<typeof emptyStore>, port: number) {
  const schedule = (work: () => void, delayMs: number): (() => void) => {
    const stop = new AbortController()
    void pause(delayMs, undefined, { signal: stop.signal }).then(work, () => undefined)
    return () => stop.abort()
  }
  const config = readConfig({
    SIP_LISTEN: `udp/${address}:${port}`,
    ...patientInstances,
    PROBE_INTERVAL_MS: '600000',
  })
  const clocks = { now: Date.now, wallNow: Date.now, schedule }
  const log = () => undefined
  const journal = journalOf(store, schedule)
  const { every } = new Rounds({ schedule, steadyNow: Date.now })
  const ocs = new Ocs({ store, journal, unknownCaller: 'deny', log, every, ...clocks })
  const records: CallRecord[] = []
  const { report } = ocs
  Object.assign(ocs, {
    report: (record: CallRecord, safe?: () => void) => {
      records.push(record)
      return report.call(ocs, record, safe)
    },
  })
  const engine = createEngine({
    instance: { name: 'one' },
    config,
    store,
    ...clocks,
    log,
    randomBytes,
    newUuid: randomUUID,
    databaseId: 'numbers',
    whyClosed: () => undefined,
    random: () => 0.5,
    foresee: (asked) => ocs.foresee(asked),
    charging: ocs,
  })
  await ocs.reload()
  await engine.load()
  await engine.start()
  const stop = async () => {
    await engine.stop()
    await ocs.stop()
  }
  return { engine, records, stop }
}

/** Calls, hangs up, and resolves with the status. */
async function call(peer: SipPeer, to: string, port: number): Promise<number> {
  const leg = {
    ...peer.leg(`sip:${to}@${address}:${port}`),
    from: `<sip:+441@a>;tag=${randomUUID()}`,
  }
  peer.request('INVITE', leg, { body: sdp('caller') })
  const answer = await peer.next(
    (message) => message.status >= 200 && message.get('Call-ID') === leg.callId,
  )
  if (answer.status === 200) peer.learn(leg, answer)
  peer.request('ACK', leg)
  if (answer.status === 200) peer.request('BYE', leg)
  return answer.status
}

test('a called number decides where a call goes, before its carrier and the routes', async () => {
  const places = await openPlaces()
  const { port, trunk, tenantTrunk, byCarrier, byNumber, agent } = places
  const store = emptyStore()
  await seedFile(store, JSON.stringify(seedOf(places)), Date.now())
  const first = await startEngine(store, port)
  onTestFinished(() => store.close())
  await places.phone.signOn()

  const reached = async (
    { engine, records }: Awaited<ReturnType<typeof startEngine>>,
    to: string,
    peer = trunk,
  ) => {
    const { length } = records
    const simulation = await engine.simulate({
      source: { kind: 'address', address, port: peer.port },
      from: '+441',
      to,
      callId: 'a',
      at: undefined,
      tenantId: null,
    })
    const status = await call(peer, to, port)
    await expect.poll(() => records.length, { timeout: 5_000 }).toBe(length + 1)
    const record = records[length]
    const { attempts = [], denialCode = null } = record ?? {}
    const places = [
      [byCarrier.port, 'by carrier'],
      [byNumber.port, 'by number'],
      [agent.port, 'agent'],
    ] as const
    const uri = attempts[0]?.destination ?? ''
    const place = places.find(([there]) => uri.includes(`:${there}`))?.[1]
    const isPhone = uri !== '' && place === undefined
    const decided = simulation?.decidedByNumber?.first ?? null
    return [status, denialCode ?? place ?? (isPhone ? 'phone' : 'nowhere'), decided]
  }

  expect(await reached(first, '+4930100')).toEqual([200, 'phone', '+4930100'])
  expect(await reached(first, '4930200')).toEqual([200, 'by number', '+4930200'])
  // After the number rules of the carrier.
  expect(await reached(first, '004930200')).toEqual([200, 'by number', '+4930200'])
  expect(await reached(first, '4930300')).toEqual([200, 'agent', '+4930300'])
  expect(await reached(first, '4930400')).toEqual([404, 'number_inactive', '+4930400'])
  // Without a target, and beside a block, the carrier decides.
  expect(await reached(first, '4930500')).toEqual([200, 'by carrier', null])
  expect(await reached(first, '4930609')).toEqual([200, 'by carrier', null])
  expect(await reached(first, '4930610')).toEqual([200, 'by number', '+4930610'])
  expect(await reached(first, '4930689')).toEqual([200, 'by number', '+4930610'])
  expect(await reached(first, '4930690')).toEqual([200, 'by carrier', null])
  expect(await reached(first, '493061')).toEqual([200, 'by carrier', null])
  // The carrier of another tenant does not reach a tenant's number.
  expect(await reached(first, '4930100', tenantTrunk)).toEqual([200, 'by carrier', null])

  await runSql(store, "UPDATE phone_number SET is_active = 1 WHERE number = '+4930400'")
  await runSql(store, "UPDATE phone_number SET is_active = 0 WHERE number = '+4930610'")
  expect(await reached(first, '4930400')).toEqual([404, 'number_inactive', '+4930400'])
  const rows = await first.engine.ownedNumbers.reload({ of: 'number', ids: [4, 6] })
  expect(rows).toEqual([])
  expect(await reached(first, '4930400')).toEqual([200, 'by number', '+4930400'])
  expect(await reached(first, '4930650')).toEqual([404, 'number_inactive', '+4930610'])
  await first.stop()

  const second = await startEngine(store, port)
  expect(await reached(second, '4930650')).toEqual([404, 'number_inactive', '+4930610'])
  expect(await reached(second, '4930200')).toEqual([200, 'by number', '+4930200'])
  await second.stop()
}, 60_000)
