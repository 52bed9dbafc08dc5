/**
 * The part of `media` that is ours alone: what the gate, its sessions, the ng client and the quality of the call take
 * for one anchored call, in process, with a socket that gives the answers of rtpengine 10.5. No kernel, no SIP.
 */
import type { LiveCall, LiveLeg } from '../../engine/call/call-machine/state.ts'
import { Deadlines } from '../../engine/call/deadlines.ts'
import type { Legs } from '../../engine/call/legs.ts'
import type { LegEventData } from '../../engine/call/signalling.ts'
import type { ReceivedRequest } from '../../engine/call/user-agent/requests.ts'
import { MediaGate } from '../../engine/media/gate/media-gate.ts'
import { Sessions } from '../../engine/media/gate/sessions.ts'
import { Parties } from '../../engine/media/parties.ts'
import { measuredQuality } from '../../engine/media/quality/quality.ts'
import { MonitoredRelay } from '../../engine/media/relay/relay-pool.ts'
import type { NgSocketEvents } from '../../engine/media/relay/ng-client.ts'
import { encodeBencode } from '../../engine/media/relay/bencode.ts'
import { median, spread } from './load/figures.ts'

export const describe =
  'CPU of the media gate and its ng client for an anchored call, without sockets; arguments: calls=20000 turns=7'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const count = Number(options.get('calls') ?? 20_000)
  const turns = Number(options.get('turns') ?? 7)
  const rig = new Rig()
  const micros: number[] = []
  // The first turn warms up.
  for (let turn = 0; turn <= turns; turn += 1) {
    const before = process.cpuUsage()
    for (let call = 0; call < count; call += 1) await rig.call()
    const { user, system } = process.cpuUsage(before)
    if (turn > 0) micros.push((user + system) / count)
  }
  rig.stop()
  console.log(`  ${median(micros).toFixed(1)} µs per anchored call ${spread(micros, 1)}`)
  console.log(`  ${rig.sessions.size} sessions are left`)
}

const description = (user: string, port: number): string =>
  [
    'v=0',
    `o=${user} 1 1 IN IP4 127.0.0.1`,
    's=-',
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} RTP/AVP 0 8 101`,
    'a=rtpmap:0 PCMU/8000',
    'a=rtpmap:8 PCMA/8000',
    'a=rtpmap:101 telephone-event/8000',
    'a=fmtp:101 0-16',
    'a=ptime:20',
    'a=sendrecv',
    '',
  ].join('\r\n')

const peer = '127.0.0.1:5070'

class Rig {
  readonly #legs = new Map<string, LiveLeg>()
  readonly #calls = new Map<string, LiveCall>()
  readonly #inner: Legs
  readonly sessions: Sessions
  readonly #deadlines: Deadlines
  readonly #relay: Relay
  #emit: (event: LegEventData) => void = () => undefined
  #count = 0

  constructor() {
    const now = (): number => performance.now()
    const deadlines = new Deadlines({ now, schedule: later })
    this.#deadlines = deadlines
    const after = (act: () => void, delayMs: number): (() => void) => {
      const deadline = deadlines.at(now() + delayMs, act)
      return () => deadlines.cancel(deadline)
    }
    const [legs, calls] = [this.#legs, this.#calls]
    const known = {
      leg: (id: string | undefined) => legs.get(id ?? ''),
      call: (callUuid: string) => calls.get(callUuid),
    }
    this.#relay = new Relay()
    const relay = new MonitoredRelay({
      name: '127.0.0.1:22222',
      host: '127.0.0.1',
      port: 22_222,
      weight: 1,
      open: (_place, events) => this.#relay.open(events),
      newCookie: () => `bench_${(this.#count++).toString(36)}`,
      now,
      schedule: later,
      onChange: () => undefined,
    })
    relay.check(['127.0.0.1'])
    this.sessions = new Sessions({
      calls: known,
      prefix: '0123456789ab',
      run: 'a1b2c3d4',
      after,
      ask: (_relay, request, done) => relay.ask(request, done),
    })
    const parties = new Parties({
      calls: known,
      policy: 'anchor',
      isRecorded: () => false,
      mustBeRecorded: () => false,
      rules: {
        routing: { mediaOf: none },
        dispatcher: { setRecord: none },
        registrar: { extensionAt: none },
      },
    })
    const relays = { pick: () => relay, byName: () => relay }
    this.#inner = new MediaGate(
      { relays, sessions: this.sessions, parties, calls: known, now, after },
      (emit) => {
        this.#emit = emit
        return silent
      },
      () => undefined,
      (_legId, error) => {
        throw error
      },
    )
  }

  /** From INVITE to BYE. */
  async call(): Promise<void> {
    const callUuid = `0190abcd-1111-7222-8333-${String(this.#count).padStart(12, '0')}`
    const [caller, callee] = [`${callUuid}.0`, `${callUuid}.1`]
    const [offer, answer] = [description('caller', 6_000), description('callee', 7_000)]
    const call = {
      start: { callUuid },
      legs: { caller, callee },
      answeredAt: null,
      origin: { kind: 'trusted' },
    } as unknown as { answeredAt: number | null } & LiveCall
    this.#calls.set(callUuid, call)
    this.#legs.set(caller, { id: caller, media: offer, state: 'confirmed' } as unknown as LiveLeg)
    const called = { id: callee, media: '', state: 'calling' } as unknown as {
      media: string
    } & LiveLeg
    this.#legs.set(callee, called)
    const gate = this.#inner
    const request = { protocol: 'udp', sourceAddress: '127.0.0.1', headers: {}, body: offer }
    gate.receive(caller, request as unknown as ReceivedRequest)
    const invite = { uri: 'sip:1@127.0.0.1', nextHop: undefined, headers: {}, body: offer }
    const to = { kind: 'node', setId: 1 } as never
    gate.invite(callee, { ...invite, credentials: undefined }, caller, {
      sdpOwner: caller,
      callee: to,
    })
    await this.#relay.answers()
    const response = { status: 180, reason: 'Ringing', headers: {}, body: undefined, peer }
    this.#emit({ type: 'sent', legId: callee, callId: 'x' })
    this.#emit({ type: 'provisional', legId: callee, response })
    const ids = { callId: 'x', localTag: 'a', remoteTag: 'b', media: answer }
    called.media = answer
    const ok = { ...response, status: 200, reason: 'OK', body: answer }
    this.#emit({ type: 'answered', legId: callee, response: ok, dialog: ids })
    call.answeredAt = 1
    this.#save(caller, callee)
    gate.perform({ type: 'accept', legId: caller, sdp: answer, sdpOwner: callee, headers: {} })
    await this.#relay.answers()
    this.#emit({ type: 'accepted', legId: caller, dialog: ids })
    this.#emit({ type: 'ack', legId: caller, body: undefined })
    this.#save(caller, callee)
    this.#emit({ type: 'bye', legId: caller, headers: {}, isOurs: false })
    gate.perform({ type: 'bye', legId: callee, headers: {} })
    gate.forget(caller)
    gate.forget(callee)
    const quality = measuredQuality(call, this.sessions)
    this.#legs.delete(caller)
    this.#legs.delete(callee)
    this.sessions.deleteClosed()
    await this.#relay.answers()
    await quality
    this.#calls.delete(callUuid)
  }

  #save(...legIds: readonly string[]): void {
    for (const legId of legIds) this.#inner.save(legId)
  }

  stop(): void {
    this.#deadlines.stop()
  }
}

const none = (): undefined => undefined

const silent: Legs = {
  receive: none,
  forget: none,
  answerBye: none,
  invite: none,
  perform: none,
  save: () => ({}),
  restore: () => false,
}

const later = (work: () => void, delayMs: number): (() => void) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

/** The far end of the socket. */
class Relay {
  #events: NgSocketEvents | undefined
  readonly #asked: string[] = []

  open(events: NgSocketEvents) {
    this.#events = events
    return { send: (datagram: string) => void this.#asked.push(datagram), close: none }
  }

  /** Of all that has been asked. */
  async answers(): Promise<void> {
    for (const datagram of this.#asked.splice(0)) {
      const cookie = datagram.slice(0, datagram.indexOf(' ') + 1)
      const answer = datagram.includes('6:delete') ? deleted(datagram) : rewritten
      this.#events?.onDatagram(Buffer.from(cookie + answer))
    }
    for (let turn = 0; turn < 4; turn += 1) await Promise.resolve()
  }
}

const rewritten = encodeBencode({ sdp: description('relay', 30_000), result: 'ok' })

/** With the tags of the session. */
function deleted(datagram: string): string {
  const tag = /8:from-tag38:(\S{36})/.exec(datagram)?.[1] ?? ''
  return deletion.replaceAll('0190abcd-1111-7222-8333-000000000000', tag)
}

const stream = (kind: string, port: number) => {
  const endpoint = { family: 'IPv4', address: '127.0.0.1', port: 6_000 }
  const isRtp = kind === 'RTP'
  return {
    'local port': port,
    'local address': '127.0.0.1',
    family: 'IPv4',
    endpoint,
    'advertised endpoint': endpoint,
    crypto: {},
    'last packet': 1_795_394_075,
    flags: [kind, 'filled', 'confirmed', 'strict source address'],
    ...(isRtp && { SSRC: port * 7_919 }),
    stats: { packets: isRtp ? 500 : 2, bytes: isRtp ? 86_000 : 200, errors: 0 },
  }
}

const party = (tag: string, other: string, port: number) => ({
  tag,
  created: 1_795_394_075,
  subscriptions: [{ tag: other, type: 'offer/answer' }],
  subscribers: [{ tag: other, type: 'offer/answer' }],
  medias: [
    {
      index: 1,
      type: 'audio',
      protocol: 'RTP/AVP',
      codec: 'PCMU/8000',
      streams: [stream('RTP', port), stream('RTCP', port + 1)],
      flags: ['initialized', 'send', 'recv'],
    },
  ],
})

const mos = { MOS: 43, 'packet loss': 0, jitter: 1, 'round-trip time': 800, samples: 2 }

const report = {
  'average MOS': mos,
  'lowest MOS': { ...mos, 'reported at': 4 },
  'highest MOS': { ...mos, 'reported at': 2 },
  'cumulative loss': 0,
  'MOS progression': { interval: 1, entries: [mos, mos, mos] },
}

const [callerTag, calleeTag] = [0, 1].map((n) => `0190abcd-1111-7222-8333-000000000000.${n}`)
const deletion = encodeBencode({
  created: 1_795_394_075,
  created_us: 509_001,
  'last signal': 1_795_394_075,
  SSRC: { [30_000 * 7_919]: report, [30_010 * 7_919]: report },
  tags: {
    [callerTag ?? '']: party(callerTag ?? '', calleeTag ?? '', 30_000),
    [calleeTag ?? '']: party(calleeTag ?? '', callerTag ?? '', 30_010),
  },
  totals: { RTP: { packets: 1_000, bytes: 172_000, errors: 0 }, RTCP: { packets: 4, bytes: 400 } },
  result: 'ok',
})
