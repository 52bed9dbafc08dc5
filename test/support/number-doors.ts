/**
 * Every door by which a number comes in, on one database: what a call to it, or of it, would cost,
 * who would pay, and where it would go. Only sockets are missing.
 */
import { seedFile } from '../../engine/commands/seed.ts'
import { inviteFor } from '../../engine/call/dialing/outgoing-invite.ts'
import { rejectionFor, admit, planCall } from '../../engine/call/inbound/admission.ts'
import { forwardingOf } from '../../engine/call/forward.ts'
import {
  readInvite,
  startOf,
  type IncomingInvite,
} from '../../engine/call/inbound/incoming-invite.ts'
import { routeCall, type RouteDeps } from '../../engine/call/inbound/route.ts'
import { simulate } from '../../engine/call/simulate.ts'
import type { HookSources } from '../../engine/call/hooks/call-hooks.ts'
import { HeaderFilter } from '../../engine/call/sip-headers.ts'
import type { Headers, SipRequest } from '../../engine/call/signalling.ts'
import { readRefer } from '../../engine/call/transfer/refer.ts'
import { ExtensionDirectory } from '../../engine/registrar/extension-directory.ts'
import { loadRouting } from '../../engine/routing/routing-store.ts'
import type { Origin } from '../../engine/routing/routing.ts'
import { beginCall } from '../../engine/call/call-machine/call.ts'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import { CallMachine } from './call-machine.ts'
import { candidate } from './call-rig.ts'
import { openResources } from './resources.ts'
import { sampleSet } from '../engine/dispatcher/samples.ts'
import { routingOver } from '../engine/routing/samples.ts'

const domain = 'acme.example'
const open = { size: 0, isDraining: false, unserved: undefined, isCalling: () => false }
const seed = {
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [{ name: 'retail' }],
  rates: [
    { prefix: '', rate_per_minute: '0.50' },
    { prefix: '1', rate_per_minute: '0.10' },
    { prefix: '1900', rate_per_minute: '6.00', connect_fee: '2.00' },
    { prefix: '1976', rate_per_minute: '6.00', blocked: true },
    { prefix: '49', rate_per_minute: '0.20' },
  ].map((rate) => ({ rate_plan: 'retail', ...rate })),
  customers: [
    { name: 'acme', numbers: ['+12025550100'], tenant: 'acme' },
    { name: 'other', numbers: ['12025550199', 'sales'] },
  ].map((customer) => ({ ...customer, rate_plan: 'retail', balance: '1000000.00' })),
  dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes: [{ host: '192.0.2.1' }] }],
  carriers: [
    ...['north', 'south', 'emergency'].map((name, index) => ({
      name,
      direction: 'out',
      gateways: [{ host: `203.0.113.${index + 1}` }],
    })),
    {
      name: 'national',
      direction: 'out',
      gateways: [{ host: '203.0.113.8' }],
      // It wants the whole number of what is dialled within its country.
      number_rules: { out: [{ match: '^([2-9][0-9]{9})$', replace: '1$1' }] },
    },
    {
      name: 'registered',
      gateways: [{ host: '203.0.113.9' }],
      customer: 'other',
      auth: { type: 'register', username: 'acme', password: 'secret' },
    },
  ],
  outbound_routes: [
    { name: 'all', prefix: '', carrier: 'north' },
    { name: 'premium', prefix: '1900', carrier: 'south' },
    { name: 'national', prefix: '900', carrier: 'national' },
    { name: 'outside line', prefix: '9', strip: 1, carrier: 'north' },
    { name: 'none', prefix: '1809', mode: 'block' },
    { name: 'emergency', prefix: '112', carrier: 'emergency', emergency: true },
  ],
  extensions: ['101', '102'].map((extension) => ({
    tenant: 'acme',
    extension,
    password: 'long enough',
    display_name: extension,
    customer: 'acme',
  })),
}

/** As a value to be compared: `refused`, or everything that a call to a number is. */
export type Verdict = Readonly<Record<string, unknown>>

/**
 * @param exitCodes of the installation, the longest first.
 * @param others in place of what is seeded else.
 */
export async function openDoors(
  exitCodes?: readonly string[],
  others: Readonly<Record<string, readonly object[]>> = {},
) {
  const control = await openResources(exitCodes && { exitCodes })
  const { store, ocs, engine } = control
  await seedFile(store, JSON.stringify({ ...seed, ...others }), control.now())
  await ocs.reload()
  const { routing } = routingOver(await loadRouting(store), { exitCodes })
  const directory = new ExtensionDirectory(store)
  await directory.load()
  const deps: RouteDeps = {
    routing,
    registrar: {
      extensionAt: (at, number) => directory.find(at, number),
      tenantOf: (at) => directory.tenantOf(at),
      contactsOf: () => [],
      homeDomain: () => domain,
    },
    gatewayBehind: () => undefined,
    domains: { isOwn: () => true, isAllowed: () => false },
    dispatcher: {
      candidates: () => [candidate(1, 5_060)],
      isAtCapacity: () => false,
      setRecord: () => sampleSet([]),
      reportOutcome: () => undefined,
    },
    voicemailOf: () => undefined,
    retryAfterSeconds: 5,
  }
  const filter = new HeaderFilter({ passX: new Set(), ownHost: () => 'sbc.example' })
  const record = directory.find(domain, '101')
  if (record === undefined) throw new Error('no extension')
  const phone: Origin = { kind: 'extension', ...record }
  const node: Origin = { kind: 'node', nodeId: 1, setId: 1 }
  /** A carrier that Tollgate has registered with. */
  const registered = routing.recognize({ address: '203.0.113.9', port: 5_060 })
  let calls = 0

  const read = (uri: string, origin: Origin, headers: Headers) => {
    const request: SipRequest = {
      method: 'INVITE',
      uri,
      body: '',
      protocol: 'udp',
      headers: { from: '<sip:101@h>;tag=1', 'call-id': 'c', contact: '<sip:1@h>', ...headers },
      sourceAddress: '192.0.2.1',
      sourcePort: 5_060,
    }
    return { request, reading: readInvite(request, `call-${(calls += 1)}`, origin, routing) }
  }

  /** The verdict on an INVITE. */
  async function invite(
    uri: string,
    origin: Origin = phone,
    headers: Headers = {},
  ): Promise<Verdict> {
    const { request, reading } = read(uri, origin, headers)
    const { isEmergency } = planCall('invite', reading, { ...deps, calls: open })
    const rejection = rejectionFor(
      { headers: request.headers, hasUsableContact: true },
      { ...reading, isEmergency },
      {
        retryAfterSeconds: 5,
        calls: open,
      },
    )
    return rejection ? refusal(rejection) : place(reading)
  }

  /** The verdict on a call that may go on. */
  async function place(reading: IncomingInvite): Promise<Verdict> {
    const machine = new CallMachine()
    const start = startOf(reading, 'test', control.now())
    const call = beginCall(machine.world, { start, stampOffsetMs: 0 })
    const free = planCall('invite', reading, { ...deps, calls: open })
    const refused = await admit(call, reading, free, {
      ...deps,
      charging: ocs,
      calls: { started: () => undefined },
      now: control.now,
      dispatch: (event) => void machine.event(event),
    })
    if (refused) return refusal(refused)
    const route = free.route ?? routeCall(reading, call.account, deps)
    if (route.kind === 'refused') return refusal(route.end)
    const sent = route.candidates.map((to) => {
      if (to.kind === 'extension') return to.uri
      const { uri, headers } = inviteFor(to, reading, filter)
      // Parameters pass beside the number, and say nothing about it.
      return [
        uri.replace(/;(?:isub|ext|cic|npdi|rn)(?:=[^;@]*)?|;user=phone/g, ''),
        headers['To'],
        headers['From'],
      ]
    })
    const { customerId, ratePrefix } = call.account ?? {}
    const { costMicros } = ocs.costSoFar(reading.callUuid, 60)
    const { calledNumber, callerNumber } = reading
    return {
      customerId,
      ratePrefix,
      costMicros,
      sent,
      calledNumber,
      callerNumber,
      isFree: call.isFree,
      direction: route.direction,
    }
  }

  /** A call of extension 101, as it goes on after a REFER or a 302. */
  function onward(number: string, user: string): Promise<Verdict> {
    const { reading } = read(`sip:1@${domain}`, phone, {})
    return place({ ...reading, calledNumber: number, calledUser: user })
  }

  const named = {
    carriersNamed: (wanted: number | string) => routing.carriersNamed(wanted),
    agentsNamed: (wanted: number | string) => routing.agentsNamed(wanted),
    extensionsNamed: directory.named.bind(directory),
  }

  /** The verdict of `simulate_call` on a call of extension 101. */
  async function simulated(
    to: string,
    hooks?: HookSources,
    tenantId: number | null = null,
  ): Promise<Verdict> {
    const source = { kind: 'extension', extension: '101', domain } as const
    const {
      verdict,
      payment,
      candidates,
      hooks: asked,
      calledNumber,
    } = (await simulate(
      { source, from: '101', to, callId: undefined, at: undefined, tenantId },
      {
        ...deps,
        routing,
        filter,
        wallNow: control.now,
        ownHost: () => 'sbc.example',
        dispatcher: { ...deps.dispatcher, foreseen: () => [], selection: () => [] },
        calls: open,
        foresee: (asked) => ocs.foresee(asked),
        log: () => undefined,
        hooks: hooks && { ...hooks, records: { ...hooks.records, ...named } },
      },
    )) ?? {}
    const numbers = candidates?.map(({ number }) => number)
    const names = candidates?.map(({ name }) => name)
    return { verdict, payment, numbers, ...(hooks && { asked, names, calledNumber }) }
  }

  const token = await control.key({ rate_limit_rpm: 100_000 })
  const api = async (method: string, path: string, body?: unknown): Promise<Verdict> => {
    const answer = await control.request(path, { token, method, body })
    if (answer.status === 429) throw new Error('the test asks too often')
    const {
      call_uuid: _uuid,
      max_duration_seconds: _seconds,
      ...told
    } = Object(answer.body) as Record<string, unknown>
    return answer.status < 300 ? told : { refused: answer.status, code: answer.code }
  }
  const onwards = '00000000-0000-4000-8000-000000000007'
  let destination: string | undefined
  engine.originate = (request) => {
    destination = request.destination
    return Promise.resolve({ kind: 'originating', callUuid: onwards })
  }
  engine.transfer = (request) => {
    destination = request.destination
    return Promise.resolve({ kind: 'transferring', callUuid: onwards })
  }
  const callUuid = '00000000-0000-4000-8000-000000000001'
  const peers = { caller: null, callee: null }
  // As far as it is read.
  engine.activeCalls.push({
    callUuid,
    state: 'ACTIVE',
    answeredAt: 0,
    tenantId: null,
    peers,
  } as ActiveCall)

  return {
    simulated,
    /** No call of customer acme to such numbers is placed any more. */
    async brake(prefix: string): Promise<void> {
      const body = { customer: 'acme', prefix, action: 'block', reason: 'a test' }
      const answer = await control.request('/api/v1/spend-guards', { token, body })
      if (answer.status !== 201) throw new Error(answer.text)
    },
    /** Dials the user part of a SIP URI. */
    sip: {
      'INVITE of a phone': (user: string) => invite(`sip:${user}@${domain}`),
      'INVITE of a node': (user: string) => invite(`sips:${user}@h;user=phone`, node),
      'P-Called-Party-ID': (user: string) =>
        invite('sip:acme@h', registered, { 'p-called-party-id': `<sip:${user}@h>` }),
      REFER: (user: string) => {
        const refer = readRefer({ 'refer-to': `<sip:${user}@${domain}>`, cseq: '1 REFER' })
        if (refer.kind === 'refused') return Promise.resolve({ refused: refer.status })
        return onward(refer.target.number, refer.target.user)
      },
      'Contact of a 302': (user: string) => {
        const forward = forwardingOf({ contact: `<sip:${user}@${domain}>` })
        if (!forward) return Promise.resolve({ refused: 'not followed' })
        return onward(forward.number, forward.user)
      },
      'INVITE of a trunk': (user: string) =>
        invite(`sip:${user}@h`, { kind: 'trusted' }, { from: '<sip:sales@h>;tag=1' }),
      From: (user: string) =>
        invite('sip:49301@h', { kind: 'trusted' }, { from: `<sip:${user}@h>;tag=1` }),
      'P-Asserted-Identity': (user: string) =>
        invite('sip:49301@h', { kind: 'trusted' }, { 'p-asserted-identity': `<sip:${user}@h>` }),
      'callee of the OCS': (user: string) =>
        api('GET', `/api/ocs/authorize?caller=12025550100&callee=${encodeURIComponent(user)}`),
    },
    /** Gives the number as plain text. */
    text: {
      'tel URI': (text: string) => invite(`tel:${text.replaceAll(' ', '')}`, node),
      originate: async (text: string) => {
        const body = { source_extension: '101', destination_number: text }
        const told = await api('POST', '/api/v1/pbx/calls/originate', body)
        return 'refused' in told ? told : { destination }
      },
      transfer: async (text: string) => {
        const body = { call_uuid: callUuid, destination: text }
        const told = await api('POST', '/api/v1/telephony/transfer', body)
        return 'refused' in told ? told : { destination }
      },
      'look-up of a price': (text: string) =>
        api('GET', `/rates/lookup?rate_plan=retail&number=${encodeURIComponent(text.trimStart())}`),
    },
  }

  function refusal(end: object): Verdict {
    const { status, code } = end as { readonly status?: number; readonly code?: string }
    return { refused: status, code }
  }
}
