/**
 * A relay of media as the gate sees it: it puts itself into descriptions as rtpengine does, and
 * complains of what rtpengine would refuse or what would leave it with something.
 */
import type { NgAnswer, NgDictionary, NgRequest, Relay } from '../../engine/media/relay/relays.ts'

interface RelaySession {
  /** The last offer: with its tags, and whether it waits for an answer. */
  offer: { readonly from: string; readonly to: string; isOpen: boolean }
  /** Ports on the side of each tag, by what they stand for. */
  readonly ports: Map<string, number>
  readonly descriptions: Map<string, string>
}

const timeoutMs = 400

export class MediaRelay implements Relay {
  readonly name: string
  isAlive = true
  /** False: what it is asked gets lost. */
  isAnswering = true
  seenAt = 0
  /** How it answers from now on. */
  mode: 'at once' | 'slowly' | 'not' | 'with an error' | 'with garbage' = 'at once'
  /** Until an answer, where it answers slowly. */
  slowMs = 100
  readonly sessions = new Map<string, RelaySession>()
  readonly requests: NgRequest[] = []
  readonly complaints: string[] = []
  readonly address: string
  readonly #schedule: (act: () => void, ms: number) => unknown
  #port = 30_000

  constructor(name: string, address: string, schedule: (act: () => void, ms: number) => unknown) {
    this.name = name
    this.address = address
    this.#schedule = schedule
  }

  /** The commands that it was asked, without the rest. */
  get commands(): readonly string[] {
    return this.requests.map(({ command }) => command)
  }

  ask(request: NgRequest, done: (answer: NgAnswer) => void): void {
    this.requests.push(request)
    const { mode } = this
    if (mode === 'not' || !this.isAlive || !this.isAnswering)
      return void this.#schedule(() => done({ kind: 'timeout' }), timeoutMs)
    const answer = this.answerTo(request)
    if (mode === 'slowly') return void this.#schedule(() => done(answer), this.slowMs)
    return queueMicrotask(() => done(answer))
  }

  request(request: NgRequest): Promise<NgAnswer> {
    return new Promise((resolve) => this.ask(request, resolve))
  }

  /** Whether what `sender` sends by `told` reaches `receiver`, where `described` says. */
  leadsTo(told: string, sender: string, receiver: string, described: string): boolean {
    if (!told.includes(`c=IN IP4 ${this.address}`)) return false
    const port = Number(/^m=\S+ (\d+)/m.exec(told)?.[1])
    for (const { ports, offer, descriptions } of this.sessions.values())
      if (ports.get(placeOf(receiver, described)) === port)
        return (
          [offer.from, offer.to].includes(sender) &&
          placeOf(receiver, descriptions.get(receiver) ?? '') === placeOf(receiver, described)
        )
    return false
  }

  answerTo(request: NgRequest): NgAnswer {
    const id = text(request, 'call-id')
    switch (request.command) {
      case 'list':
        return ok({ calls: [...this.sessions.keys()] })
      case 'delete':
        if (!this.sessions.delete(id)) return ok({ warning: 'not found' })
        return ok({ totals: {} })
      case 'offer':
      case 'answer':
        if (this.mode === 'with an error') {
          // As rtpengine 10.5: a session may be left all the same.
          if (request.command === 'offer') this.#sessionOf(id)
          return { kind: 'error', reason: 'Error rewriting SDP' }
        }
        if (this.mode === 'with garbage') return ok({ sdp: 'nothing' })
        return request.command === 'offer' ? this.#offer(id, request) : this.#answer(id, request)
      default:
        return ok({})
    }
  }

  #sessionOf(id: string): RelaySession {
    const known = this.sessions.get(id)
    if (known) return known
    const offer = { from: '', to: '', isOpen: false }
    const session: RelaySession = { offer, ports: new Map(), descriptions: new Map() }
    this.sessions.set(id, session)
    return session
  }

  #offer(id: string, request: NgRequest): NgAnswer {
    const [from, to] = [text(request, 'from-tag'), text(request, 'to-tag')]
    if (from === '' || to === '' || from === to)
      this.complaints.push(`tags of an offer: ${from} ${to}`)
    const session = this.#sessionOf(id)
    const known = session.offer
    if (known.from !== '' && ![known.from, known.to].includes(from))
      this.complaints.push(`${id} has an offer of a third party`)
    session.offer = { from, to, isOpen: true }
    return this.#rewritten(session, from, text(request, 'sdp'), text(request, 'address family'))
  }

  #answer(id: string, request: NgRequest): NgAnswer {
    const session = this.sessions.get(id)
    if (session === undefined) {
      this.complaints.push(`an answer in ${id}, which is unknown`)
      return { kind: 'error', reason: 'Unknown call-id' }
    }
    const [from, to] = [text(request, 'from-tag'), text(request, 'to-tag')]
    if (session.offer.from !== from || session.offer.to !== to)
      this.complaints.push(
        `an answer of ${to} to ${from} in ${id}, after an offer of ${session.offer.from}`,
      )
    session.offer.isOpen = false
    return this.#rewritten(session, to, text(request, 'sdp'))
  }

  /** The same port for the same place, as rtpengine keeps it. */
  #rewritten(session: RelaySession, from: string, sdp: string, family = ''): NgAnswer {
    if (!/^v=0\r?\n/.test(sdp) || !readable.test(sdp))
      return { kind: 'error', reason: 'Failed to parse SDP' }
    session.descriptions.set(from, sdp)
    const place = placeOf(from, sdp)
    const port = session.ports.get(place) ?? (this.#port += 2)
    session.ports.set(place, port)
    const rewritten = sdp
      .replace(/^c=IN IP4 \S+/gm, `c=IN IP4 ${this.address}`)
      .replace(/^c=IN IP6 \S+/gm, family === 'IP4' ? `c=IN IP4 ${this.address}` : SIX)
      .replace(/^m=(\S+) (?!0 )\d+/gm, `m=$1 ${port}`)
    return ok({ sdp: rewritten })
  }
}

/** As rtpengine 10.5: lines are lines, and an address is no name. */
const readable = /^(?:(?:c=IN IP(?:4 [\d.]+|6 [\da-f:]+)|[^\W_A-Zc]=[^\r\n]*)\r?\n)*$/

const SIX = 'c=IN IP6 2001:db8::99'

/** The place that a port stands for: there a party wants its media. */
const placeOf = (from: string, sdp: string): string =>
  `${from} ${/^c=.*$/m.exec(sdp)?.[0]} ${/^m=\S+ \d+/m.exec(sdp)?.[0]}`

const ok = (values: NgDictionary): NgAnswer => ({ kind: 'ok', values: { result: 'ok', ...values } })

function text(request: NgRequest, name: string): string {
  const value = request[name]
  return typeof value === 'string' ? value : ''
}

/** Relays in a row: the first that is alive is picked. */
export const relaysOf = (...relays: readonly MediaRelay[]) => ({
  pick: (except: ReadonlySet<string> = new Set()) =>
    relays.find(({ isAlive, name }) => isAlive && !except.has(name)),
  byName: (name: string) => relays.find((relay) => relay.name === name),
  all: () => relays,
})
