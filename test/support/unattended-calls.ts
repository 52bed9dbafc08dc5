/**
 * Calls through the program between two scripted parties, which go on with them, or hang up, while
 * it is not there.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from './seeded-random.ts'
import { type Leg, type PeerMessage, sdp, SipPeer } from './sip-peer.ts'
import type { TollgateProcess } from './tollgate-process.ts'
import { eventually } from './waiting.ts'

/** Who hangs up while the program is away; `nobody`: the caller does when it is there again. */
export type Leaving = 'caller' | 'callee' | 'both' | 'silently' | 'nobody'

interface Call {
  readonly leaving: Leaving
  readonly legs: Readonly<Record<Side, Leg>>
  readonly answeredAt: number
  /** Who has hung up, and when the first of them did. */
  readonly gone: Set<Side>
  endedAt: number
}

type Side = 'caller' | 'callee'

export interface Sums {
  readonly calls: number
  /** Seconds. */
  readonly talked: number
  readonly charged: number
  /** The calls that went on and are paid for whole. */
  readonly lasting: number
  readonly paidWhole: number
  /** Calls with another number of records than one. */
  readonly wrong: number
}

/** RFC 3261 §17.1.2: a request is repeated until it is answered. */
const REPEATED_MS = [500, 1_000, 2_000, ...Array.from({ length: 7 }, () => 4_000)]
/** A party that says nothing is waited for so long (Timer F), and some more. */
const SILENCE_MS = 50_000
/** How long those that nobody ends go on when the program is there again. */
const LASTING_MS = 6_000

export class UnattendedCalls {
  readonly #calls: Call[] = []
  readonly #peers: Readonly<Record<Side, SipPeer>>
  readonly #random: () => number
  #isOver = false

  private constructor(peers: Readonly<Record<Side, SipPeer>>, seed: number) {
    this.#peers = peers
    this.#random = seededRandom(seed)
  }

  /** `start` gets the port of the node. */
  static async begin(
    start: (nodePort: number) => Promise<TollgateProcess>,
    options: { readonly calls: number; readonly ways: readonly Leaving[]; readonly from: string },
  ) {
    const listener = {
      protocol: 'udp' as const,
      address: '127.0.0.1',
      port: 9,
      advertisedHost: '127.0.0.1',
      advertisedPort: 9,
    }
    const callee = await SipPeer.openPatient(listener)
    callee.always('OPTIONS', 200, { tag: 'probed' })
    const tollgate = await start(callee.port)
    listener.port = tollgate.sipPort
    const caller = await SipPeer.openPatient(tollgate.listener())
    const unattended = new UnattendedCalls({ caller, callee }, 1)
    for (let index = 0; index < options.calls; index += 1) {
      const leaving = options.ways[index % options.ways.length] ?? 'both'
      await unattended.#place(tollgate.sipPort, options.from, leaving)
    }
    for (const side of ['caller', 'callee'] as const) void unattended.#serve(side)
    return { tollgate, unattended }
  }

  stop(): void {
    this.#isOver = true
    for (const peer of Object.values(this.#peers)) peer.close()
  }

  async #place(port: number, from: string, leaving: Leaving): Promise<void> {
    const { caller, callee } = this.#peers
    const plain = caller.leg(`sip:18005551212@127.0.0.1:${port}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${from}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    const invite = await callee.next('INVITE')
    const answeredAt = performance.now()
    callee.reply(invite, 200, { tag: 'b', body: sdp('callee') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await callee.next('ACK')
    const legs = { caller: leg, callee: callee.calledLeg(invite, 'b') }
    this.#calls.push({ leaving, legs, answeredAt, gone: new Set(), endedAt: Infinity })
  }

  /**
   * Answers what comes in the calls: as the party of a call that goes on, or of one that it does
   * not know any more.
   */
  async #serve(side: Side): Promise<void> {
    const peer = this.#peers[side]
    while (!this.#isOver) {
      const request = await peer
        .next(({ method }) => method !== '' && method !== 'ACK')
        .catch(() => undefined)
      const callId = request?.get('Call-ID')
      const call = this.#calls.find(({ legs }) => legs[side].callId === callId)
      if (request !== undefined && call !== undefined) this.#answer(call, side, request)
    }
  }

  #answer(call: Call, side: Side, request: PeerMessage): void {
    const peer = this.#peers[side]
    if (call.leaving === 'silently' && call.gone.has(side)) return
    if (call.gone.has(side)) return peer.reply(request, 481)
    if (request.method === 'BYE') {
      call.gone.add(side)
      call.endedAt = Math.min(call.endedAt, performance.now())
      return peer.reply(request, 200)
    }
    return peer.reply(request, 200, request.method === 'INVITE' ? { body: sdp('here') } : {})
  }

  /** All that leave do within `ms`, at random moments. */
  leave(ms: number): void {
    for (const call of this.#calls)
      if (call.leaving !== 'nobody') setTimeout(() => this.#hangUp(call), this.#random() * ms)
  }

  #hangUp(call: Call): void {
    const { leaving } = call
    call.endedAt = Math.min(call.endedAt, performance.now())
    const sides: readonly Side[] =
      leaving === 'caller' || leaving === 'callee'
        ? [leaving]
        : leaving === 'nobody'
          ? ['caller']
          : ['caller', 'callee']
    for (const side of sides) {
      call.gone.add(side)
      if (leaving !== 'silently') void this.#bye(call, side)
    }
  }

  async #bye({ legs }: Call, side: Side): Promise<void> {
    const { [side]: peer } = this.#peers
    const { callId } = legs[side]
    const text = peer.request('BYE', legs[side])
    for (const ms of REPEATED_MS) {
      await pause(ms)
      const isAnswered = peer.inbox.some(
        (message) => message.get('Call-ID') === callId && message.get('CSeq').endsWith('BYE'),
      )
      if (isAnswered || this.#isOver) return
      peer.send(text)
    }
  }

  /**
   * The program is there again. Those that nobody has ended end after a while; resolves when all
   * are stored.
   */
  async sums(tollgate: TollgateProcess): Promise<Sums> {
    await pause(LASTING_MS)
    const lasting = this.#calls.filter(({ leaving }) => leaving === 'nobody')
    for (const call of lasting) this.#hangUp(call)
    await tollgate.waitForCalls(this.#calls.length, SILENCE_MS).catch(() => undefined)
    const records = tollgate.calls()
    const of = ({ legs }: Call) => records.filter((each) => each.call_id === legs.caller.callId)
    const secondsOf = (call: Call): number => (call.endedAt - call.answeredAt) / 1_000
    const billed = (call: Call): number => of(call).reduce((sum, { billsec }) => sum + billsec, 0)
    const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
    return {
      calls: this.#calls.length,
      talked: sum(this.#calls.map(secondsOf)),
      charged: sum(this.#calls.map(billed)),
      lasting: lasting.length,
      paidWhole: lasting.filter((call) => Math.abs(billed(call) - secondsOf(call)) <= 1.5).length,
      wrong: this.#calls.filter((call) => of(call).length !== 1).length,
    }
  }
}

/** Nothing is live any more. */
export const nothingLeft = (tollgate: TollgateProcess): Promise<void> =>
  eventually(() => {
    if (tollgate.countUnstored() > 0) throw new Error('calls are still live')
  }, SILENCE_MS)
