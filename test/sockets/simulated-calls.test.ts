/**
 * Seeded random installations, and calls from each kind of source: what is simulated of a call is
 * what becomes of it a moment later, and to simulate changes nothing. The whole engine, without its
 * process, on real sockets.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { seedFile } from '../../engine/commands/seed.ts'
import { Ocs } from '../../engine/charging/ocs.ts'
import { readConfig } from '../../engine/config.ts'
import { createEngine } from '../../engine/create-engine.ts'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { Simulation, SimulatedSource } from '../../schema/contracts/engine.ts'
import { Rounds } from '../../schema/rounds.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { emptyStore } from '../support/empty-store.ts'
import { freePort } from '../support/free-port.ts'
import { journalOf } from '../support/journals.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const address = '127.0.0.1'
const domain = 'acme.example'
const password = 'correct horse'
const callers = ['4930100', '4930200', '4930300', '4930900'] as const
const callees = ['4940100', '4412345', '112', '700', '101', '102', '999', 'bob', '4940'] as const

interface Places {
  readonly listener: Parameters<typeof SipPeer.open>[0]
  /** They answer calls: 200 to numbers that end with 5, 486 to others. */
  readonly nodes: readonly SipPeer[]
  /** It calls, from the address of a carrier, of a tenant's one, or of none. */
  readonly trunks: readonly SipPeer[]
  readonly phone: DigestPhone
}

async function openPlaces(): Promise<Places> {
  const port = await freePort()
  const advertised = { advertisedHost: address, advertisedPort: port }
  const listener = { protocol: 'udp', address, port, ...advertised } as const
  const open = () => SipPeer.openPatient(listener)
  const nodes = [await open(), await open(), await open()]
  const trunks = [await open(), await open(), await open()]
  const phone = await DigestPhone.open(listener, { user: '101', domain, password })
  for (const node of nodes) void answerCalls(node).catch(() => undefined)
  onTestFinished(() => [...nodes, ...trunks, phone.peer].forEach((peer) => peer.close()))
  return { listener, nodes, trunks, phone }
}

async function answerCalls(node: SipPeer): Promise<void> {
  for (;;) {
    const request = await node.next((message: PeerMessage) => message.method !== '')
    const isTaken = /^sip:\+?\d*5@/.test(request.uri)
    if (request.method !== 'INVITE') {
      if (request.method !== 'ACK') node.reply(request, 200)
    } else if (isTaken) node.reply(request, 200, { tag: randomUUID(), body: sdp('node') })
    else node.reply(request, 486, { tag: randomUUID() })
  }
}

/** A seed file that an operator could have written. */
function seedOf(random: () => number, { nodes, trunks }: Places): object {
  const oneOf = <T>(...choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(random() * choices.length)] ?? choices[0]
  const maybe = (share: number): boolean => random() < share
  const nodePorts = nodes.map(({ port }) => port)
  const isTenantSet = maybe(0.3)
  const gateway = (port: number, more: object = {}) => ({ host: address, port, ...more })
  return {
    tenants: [{ slug: 'acme', name: 'acme', domains: [domain] }],
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [
      { rate_plan: 'retail', prefix: '49', rate_per_minute: oneOf('0.60', '0.00') },
      { rate_plan: 'retail', prefix: '44', rate_per_minute: '0.60', blocked: maybe(0.3) },
      ...(maybe(0.5) ? [{ rate_plan: 'retail', prefix: '', rate_per_minute: '0.10' }] : []),
    ],
    customers: [
      {
        name: 'one',
        rate_plan: 'retail',
        numbers: [callers[0]],
        balance: oneOf('5', '0.01'),
        max_concurrent_calls: oneOf(0, 1),
        is_active: maybe(0.9),
        max_call_seconds: oneOf(0, 30),
      },
      { name: 'two', rate_plan: 'retail', numbers: [callers[1]], balance: oneOf('5', '0.00') },
      {
        name: 'ours',
        tenant: 'acme',
        rate_plan: 'retail',
        numbers: [callers[2]],
        balance: oneOf('5', '0.00'),
      },
    ],
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: oneOf(0, 4, 6, 8, 9),
        ...(isTenantSet ? { tenant: 'acme' } : {}),
        nodes: nodePorts.slice(0, oneOf(1, 2)).map((port) => ({
          host: address,
          internal_port: port,
          priority: oneOf(1, 2),
          weight: oneOf(1, 50),
          max_calls: oneOf(0, 0, 1),
        })),
      },
    ],
    carriers: [
      {
        name: 'big',
        gateways: [gateway(trunks[0]?.port ?? 0)],
        direction: oneOf('both', 'in'),
        is_active: maybe(0.9),
        ...(maybe(0.5) ? { customer: 'one' } : { payer: 'from_number' }),
        ...(maybe(0.3) && !isTenantSet ? { inbound_set: 1 } : {}),
        max_calls: oneOf(0, 0, 1),
      },
      {
        name: 'small',
        tenant: 'acme',
        gateways: [gateway(trunks[1]?.port ?? 0)],
        ...(maybe(0.7) ? { customer: 'ours' } : {}),
      },
      {
        name: 'out',
        direction: oneOf('out', 'out', 'in'),
        max_calls: oneOf(0, 1),
        number_rules: { in: [], out: maybe(0.3) ? [{ match: '^49', replace: '0' }] : [] },
        gateways: [gateway(nodePorts[2] ?? 0, { outbound: maybe(0.9) })],
      },
    ],
    outbound_routes: [
      { name: 'german', prefix: '49', carrier: 'out', strip: oneOf(0, 0, 4), priority: 5 },
      ...(maybe(0.4) ? [{ name: 'no', prefix: '44', mode: 'block' }] : []),
      ...(maybe(0.4) ? [{ name: 'all', prefix: '', carrier: 'out', mode: 'lcr' }] : []),
      ...(maybe(0.5) ? [{ name: 'help', prefix: '112', carrier: 'out', emergency: true }] : []),
      ...(maybe(0.3)
        ? [{ name: 'own', prefix: '494', customer: 'two', tenant: null, carrier: 'out' }]
        : []),
    ],
    extensions: ['101', '102'].map((extension) => ({
      extension,
      password,
      display_name: extension,
      tenant: 'acme',
      domain,
      voicemail_enabled: false,
      ...(maybe(0.5) ? { customer: oneOf('ours', 'one') } : {}),
    })),
    ai_agents: maybe(0.5)
      ? [{ name: 'bot', extension: '700', sip_uri: `sip:bot@${address}:${nodePorts[0] ?? 0}` }]
      : [],
    numbers: [
      ...(maybe(0.4) && !isTenantSet
        ? [{ number: '+4940100', set: 1, is_active: maybe(0.7) }]
        : []),
      ...(maybe(0.3)
        ? [{ number: '+4412345', tenant: 'acme', extension: '102', is_active: maybe(0.7) }]
        : []),
      ...(maybe(0.3) ? [{ number: '+49401000', last_number: '+49401009' }] : []),
    ],
    inbound_routes: [
      ...(maybe(0.5) ? [{ name: 'in', prefix: '49401', tenant: 'acme', extension: '102' }] : []),
      ...(maybe(0.4) && !isTenantSet ? [{ name: 'set', prefix: '4', set: 1 }] : []),
    ].map((route) => ('extension' in route ? { ...route, extension_domain: domain } : route)),
  }
}

async function startEngine(seed: number, random: () => number, places: Places) {
  const store = emptyStore()
  await seedFile(store, JSON.stringify(seedOf(random, places)), Date.now())
  const schedule = (work: () => void, delayMs: number): (() => void) => {
    const stop = new AbortController()
    void pause(delayMs, undefined, { signal: stop.signal }).then(work, () => undefined)
    return () => stop.abort()
  }
  const unknownCaller = random() < 0.3 ? 'allow' : 'deny'
  const trusted = random() < 0.5 ? { TRUSTED_SOURCES: `${address}/32` } : {}
  const config = readConfig({
    SIP_LISTEN: `udp/${address}:${places.listener.port}`,
    ...patientInstances,
    PROBE_INTERVAL_MS: '600000',
    ...trusted,
  })
  const clocks = { now: Date.now, wallNow: Date.now, schedule }
  const problems: unknown[] = []
  const log = (level: string, message: string, fields?: object): void => {
    if (level === 'error') problems.push({ message, ...fields })
  }
  const journal = journalOf(store, schedule)
  const { every } = new Rounds({ schedule, steadyNow: Date.now })
  const ocs = new Ocs({ store, journal, unknownCaller, log, every, ...clocks })
  const records: CallRecord[] = []
  const engine = createEngine({
    instance: { name: 'one' },
    config,
    store,
    ...clocks,
    log,
    randomBytes,
    newUuid: randomUUID,
    databaseId: 'simulated',
    whyClosed: () => undefined,
    // So that the order that is drawn is the one that is foreseen.
    random: () => 0.5,
    foresee: (asked) => ocs.foresee(asked),
    charging: Object.assign(Object.create(null) as object, {
      ...bound(ocs, ['authorize', 'extend', 'begun', 'answered', 'changed', 'resume', 'abandon']),
      ...bound(ocs, ['alive', 'running']),
      report: (record: CallRecord, safe?: () => void) => {
        records.push(record)
        return ocs.report(record, safe)
      },
    }) as unknown as Ocs,
  })
  await ocs.reload()
  await engine.load()
  await engine.start()
  if (random() < 0.3) await engine.dispatcher.setState(1, nodeUri(places, 0), 'inactive')
  if (random() < 0.2) await engine.dispatcher.setState(1, nodeUri(places, 1), 'probing')
  const stop = async () => {
    await engine.stop()
    await ocs.stop()
    store.close()
    expect([seed, problems]).toEqual([seed, []])
  }
  return { engine, ocs, records, stop }
}

const bound = (ocs: Ocs, names: readonly (keyof Ocs)[]) =>
  Object.fromEntries(
    names.map((name) => [name, (ocs[name] as (...given: unknown[]) => unknown).bind(ocs)]),
  )

const nodeUri = ({ nodes }: Places, index: number): string =>
  `sip:${address}:${nodes[index]?.port ?? 0};transport=udp`

/** A call, and what was foreseen of it. */
async function callOnce(
  random: () => number,
  { engine, ocs }: Awaited<ReturnType<typeof startEngine>>,
  { listener, nodes, trunks, phone }: Places,
): Promise<{ readonly callId: string; readonly simulation: Simulation | undefined }> {
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T
  const isFromPhone = random() < 0.3
  const from = isFromPhone ? '101' : pick(callers)
  const to = `${pick(callees)}${random() < 0.3 ? '5' : ''}`
  const peer = isFromPhone ? phone.peer : pick([...trunks, nodes[0]])
  if (peer === undefined) throw new Error('there is a node')
  const source: SimulatedSource = isFromPhone
    ? { kind: 'extension', domain, extension: '101' }
    : { kind: 'address', address, port: peer.port }
  const at = isFromPhone ? domain : address
  const uri = `sip:${to}@${isFromPhone ? domain : `${address}:${listener.port}`}`
  const leg = { ...peer.leg(uri), from: `<sip:${from}@${at}>;tag=${randomUUID()}` }
  const simulate = (callId = leg.callId) =>
    engine.simulate({ source, from, to, callId, at: undefined, tenantId: null })
  const before = [engine.telemetry(), ocs.stats()]
  const simulation = await simulate()
  expect(await simulate()).toEqual(simulation)
  const after = [engine.telemetry(), ocs.stats()]
  expect(withoutClock(after)).toEqual(withoutClock(before))
  peer.request('INVITE', leg, { body: sdp('caller') })
  const final = () =>
    peer.next((message) => message.status >= 200 && message.get('Call-ID') === leg.callId)
  let answer = await final()
  if (answer.status === 407) {
    peer.request('ACK', leg)
    phone.learn(answer)
    const credentials = phone.credentials('INVITE')
    const headers = [`Proxy-Authorization: ${credentials}`]
    peer.request('INVITE', leg, { headers, body: sdp('caller') })
    answer = await final()
  }
  if (answer.status === 200) peer.learn(leg, answer)
  peer.request('ACK', leg)
  if (simulation?.verdict.kind === 'refused')
    expect([source, from, to, answer.status, simulation]).toEqual([
      source,
      from,
      to,
      simulation.verdict.status,
      simulation,
    ])
  return { callId: leg.callId, simulation }
}

/** Leaves out the figures that move by themselves. */
const withoutClock = (figures: readonly object[]): readonly object[] =>
  figures.map((each) =>
    Object.fromEntries(Object.entries(each).filter(([name]) => !/^srf_|^sip_|lag/.test(name))),
  )

/** A record says what the simulation said. */
function expectForeseen(record: CallRecord, simulation: Simulation | undefined): void {
  if (simulation === undefined) throw new Error('the source may call')
  const { verdict, candidates, payment } = simulation
  const told = { to: record.calledNumber, from: record.callerNumber, simulation }
  const first = candidates.find(({ withheld }) => withheld === null)
  const tried = record.attempts.filter(({ status }) => status > 0).map((each) => each.destination)
  if (verdict.kind === 'goes_on') {
    expect({ ...told, code: record.denialCode }).toEqual({ ...told, code: null })
    if (first?.kind !== 'extension') expect([told, tried[0]]).toEqual([told, first?.uri])
    expect(record.direction).toBe(simulation.direction)
  } else {
    const { status, code } = verdict.kind === 'refused' ? verdict : { status: 0, code: 'banned' }
    const outcome = { status: record.sipCode, code: record.denialCode, tried }
    expect({ ...told, ...outcome }).toEqual({ ...told, status, code, tried: [] })
  }
  if (payment.kind !== 'asked') return
  expect([told, record.customerId]).toEqual([told, payment.payer?.customerId ?? null])
  const wasPriced = verdict.kind === 'goes_on' && payment.tariff !== null
  if (wasPriced) expect(record.ratePrefix).toBe(payment.tariff?.prefix)
}

const CALLS = 8

test('what is simulated of a call is what becomes of it; to simulate changes nothing', async () => {
  const places = await openPlaces()
  const kinds = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed)
      const world = await startEngine(seed, random, places)
      try {
        const made: Awaited<ReturnType<typeof callOnce>>[] = []
        if (random() < 0.5) await places.phone.signOn()
        for (let count = 0; count < CALLS; count += 1)
          made.push(await callOnce(random, world, places))
        for (const { callUuid } of world.engine.calls.list())
          world.engine.calls.hangUp(callUuid, 16)
        const isRecorded = ({ simulation }: (typeof made)[number]) =>
          simulation?.origin.kind !== 'unknown'
        const wanted = made.filter(isRecorded)
        const recordOf = (callId: string) => world.records.find((each) => each.callId === callId)
        await eventually(() =>
          expect(wanted.filter(({ callId }) => recordOf(callId) === undefined)).toEqual([]),
        )
        for (const { callId, simulation } of wanted) {
          const record = recordOf(callId)
          if (record !== undefined) expectForeseen(record, simulation)
          const { verdict } = simulation ?? {}
          const code = verdict?.kind === 'refused' ? (verdict.code ?? verdict.status) : 'goes_on'
          kinds.add(`${simulation?.origin.kind ?? ''} ${code}`)
        }
      } finally {
        await world.stop()
      }
    }),
    { numRuns: 40 },
  )
  // So many different ends, by kinds of sources: the installations are no desert.
  expect(kinds.size).toBeGreaterThan(30)
})
