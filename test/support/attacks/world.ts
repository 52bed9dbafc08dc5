/** A started Tollgate to attack, with one of each kind of party on loopback. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from '../../../engine/sip-server/index.ts'
import { freePort } from '../free-port.ts'
import { sdp, SipPeer, type Content } from '../sip-peer.ts'
import { TollgateProcess } from '../tollgate-process.ts'

export const domain = 'acme.example'
/** Calling numbers of customers: with much money, and with little. */
export const rich = '15550001111'
export const poor = '15550002222'

/** The means of an attack. */
export interface World {
  readonly tollgate: TollgateProcess
  /** May do everything. */
  readonly adminKey: string
  /** Plays a node whose calls go out. */
  readonly fromNode: SipPeer
  /** A peer in a trusted network: its From says who pays. */
  readonly trusted: SipPeer
  /** Numbers (digits only) that have reached the carrier's gateway. */
  readonly dialledOut: string[]
  readonly random: () => number
  /** An answer of the API as JSON. */
  api(method: string, path: string, key: string, body?: object): Promise<ApiAnswer>
  /** Places a call and hangs up as soon as it is answered; its final status, 0 for silence. */
  call(peer: SipPeer, number: string, from: string, content?: Content): Promise<number>
  stop(): Promise<void>
}

export interface ApiAnswer {
  readonly status: number
  readonly body: { readonly data?: unknown; readonly code?: string }
}

const SILENCE_MS = 4_000
const adminPassword = 'attack the castle'

export async function startWorld(random: () => number): Promise<World> {
  const over = new AbortController()
  const open = async (port: number): Promise<SipPeer> =>
    SipPeer.openPatient(listenerAt(port), undefined)
  const [nodePort, silentPort] = [await freePort(), await freePort()]
  const [node, gateway] = [await open(9), await open(9)]
  const dialledOut: string[] = []
  serve(node, over.signal, () => undefined)
  serve(gateway, over.signal, (number) => dialledOut.push(number))
  const seed = seedFor({
    node: node.port,
    gateway: gateway.port,
    nodePort,
    silentPort,
  })
  const tollgate = await TollgateProcess.start(seed, {
    TRUSTED_SOURCES: '127.0.0.1/32',
    LOG_LEVEL: 'info',
    PROBE_FAILURES: '100',
    ADMIN_PASSWORD: adminPassword,
    EXIT_CODES: '00',
  })
  const listener = tollgate.listener()
  const fromNode = await SipPeer.open(listener, { port: nodePort })
  const trusted = await SipPeer.open(listener)
  const adminKey = await makeKey(tollgate)
  const peers = [node, gateway, fromNode, trusted]
  return {
    tollgate,
    adminKey,
    fromNode,
    trusted,
    dialledOut,
    random,
    api: (method, path, token, body) => fetchJson(tollgate, method, path, token, body),
    call: (peer, number, from, content) => call(tollgate, peer, number, from, content),
    stop: async () => {
      over.abort()
      await tollgate.stop()
      for (const peer of peers) peer.close()
    },
  }
}

const listenerAt = (port: number): Listener => ({
  protocol: 'udp',
  address: '127.0.0.1',
  port,
  advertisedHost: '127.0.0.1',
  advertisedPort: port,
})

function seedFor(ports: Readonly<Record<string, number>>): object {
  const host = '127.0.0.1'
  const customer = (name: string, number: string, balance: string) => ({
    name,
    rate_plan: 'retail',
    numbers: [number],
    balance,
  })
  return {
    tenants: [{ slug: 'acme', domains: [domain] }],
    extensions: ['101', '102'].map((extension) => ({
      tenant: 'acme',
      extension,
      password: `secret-${extension}`,
      display_name: extension,
    })),
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [
      { rate_plan: 'retail', prefix: '', rate_per_minute: '0.60', first_increment: 1 },
      { rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60', first_increment: 1 },
      { rate_plan: 'retail', prefix: '1900', rate_per_minute: '600', first_increment: 60 },
      { rate_plan: 'retail', prefix: '1976', rate_per_minute: '0', blocked: true },
    ],
    customers: [customer('rich', rich, '1000'), customer('poor', poor, '1')],
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        nodes: [{ host, internal_port: ports['node'] }],
      },
      {
        endpoint_name: 'callers',
        set_id: 2,
        algorithm: 8,
        nodes: [{ host, internal_port: ports['silentPort'], external_port: ports['nodePort'] }],
      },
    ],
    carriers: [{ name: 'north', direction: 'out', gateways: [{ host, port: ports['gateway'] }] }],
    outbound_routes: [
      { name: 'out', prefix: '', carrier: 'north' },
      { name: 'abroad', prefix: '00', strip: 2, carrier: 'north' },
      { name: 'outside line', prefix: '9', strip: 1, carrier: 'north' },
    ],
  }
}

/** Answers everything at once; `onInvite` hears which number was called. */
function serve(peer: SipPeer, over: AbortSignal, onInvite: (number: string) => void): void {
  const loop = async (method: string): Promise<void> => {
    while (!over.aborted) {
      const request = await peer.next(method).catch(() => undefined)
      if (request === undefined) continue
      if (method === 'INVITE') onInvite(request.uri.replace(/@.*/, '').replace(/\D/g, ''))
      peer.reply(request, 200, method === 'INVITE' ? { tag: 'n', body: sdp('answer') } : {})
    }
  }
  for (const method of ['INVITE', 'BYE', 'OPTIONS']) void loop(method)
}

let lastTag = 0

async function call(
  tollgate: TollgateProcess,
  peer: SipPeer,
  number: string,
  from: string,
  { headers = [] }: Content = {},
): Promise<number> {
  const uri = /^(sips?|tel):/i.test(number) ? number : `sip:${number}@127.0.0.1:${tollgate.sipPort}`
  const fromUri = from.includes('<') ? from : `<sip:${from}@127.0.0.1>`
  const leg = { ...peer.leg(uri), from: `${fromUri};tag=attack-${(lastTag += 1)}` }
  peer.request('INVITE', leg, { headers, body: sdp('offer') })
  const final = peer.next(
    (message) => message.get('Call-ID') === leg.callId && message.status >= 200,
  )
  const answer = await Promise.race([final.catch(() => undefined), sleep(SILENCE_MS, undefined)])
  if (answer === undefined) return 0
  peer.learn(leg, answer)
  peer.request('ACK', leg)
  if (answer.status < 300) {
    peer.request('BYE', leg)
    await peer.next((m) => m.get('Call-ID') === leg.callId && m.get('CSeq').endsWith('BYE'))
  }
  return answer.status
}

async function makeKey(tollgate: TollgateProcess): Promise<string> {
  const post = async (path: string, token: string, body: object) => {
    const made = await fetchJson(tollgate, 'POST', path, token, body)
    return (made.body.data as { token: string }).token
  }
  const login = { username: 'admin', password: adminPassword }
  const session = await post('/api/v1/auth/login', '', login)
  const key = { name: 'attack', scopes: ['*'], rate_limit_rpm: 100_000 }
  return post('/api/v1/application-keys', session, key)
}

async function fetchJson(
  tollgate: TollgateProcess,
  method: string,
  path: string,
  key: string,
  body?: object,
): Promise<ApiAnswer> {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(key !== '' && { authorization: `Bearer ${key}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as ApiAnswer['body'] }
}

/** The result of an attack. */
export interface Verdict {
  /** The attempts, with their count. */
  readonly tried: string
  /** Things that should not have been possible; empty: the guarantee holds. */
  readonly breaches: readonly string[]
}

export interface Attack {
  readonly name: string
  readonly guarantee: string
  /** Tries until `until` (milliseconds of `performance.now()`), and at least once. */
  readonly run: (world: World, until: number) => Promise<Verdict>
}

/** Does `once` again and again until the time is over, at least one time; how often it did. */
export async function repeatUntil(until: number, once: () => Promise<void>): Promise<number> {
  let rounds = 0
  do {
    await once()
    rounds += 1
  } while (performance.now() < until)
  return rounds
}
