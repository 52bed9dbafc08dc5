/**
 * The sessions at the relays: by the calls whose legs they join, from the first request to the
 * answer of `delete`.
 */
import type { ActiveCalls } from '../../call/active-calls.ts'
import { callUuidOf } from '../../call/call-machine/leg.ts'
import type { CallMedia, ClosedSession, MediaObserver } from '../call-media.ts'
import { deleteWithStatistics, deleteOf } from './offer-answer.ts'
import { type QueuedRequest, newSession, type RelaySession } from './session.ts'
import type { Parties } from '../parties.ts'
import type { NgAnswer, NgDictionary, NgRequest, Relay, Relays } from '../relay/relays.ts'
import { ReleasingMap } from '../../../schema/sip/index.ts'

export interface SessionsDeps {
  readonly calls: Pick<ActiveCalls, 'call'>
  /** Begins the names of all sessions of this installation. */
  readonly prefix: string
  /** Differs between its processes. */
  readonly run: string
  /** `done` is called once, in a later turn or at once. */
  readonly ask: (relay: Relay, request: NgRequest, done: (answer: NgAnswer) => void) => void
  /** Runs `act` once after `delayMs`; the returned function calls it off. */
  readonly after: (act: () => void, delayMs: number) => () => void
}

const ignore = (): void => undefined

/** How long the end of a call waits for the statistics of its sessions. */
const CLOSED_WAIT_MS = 500
/** After that long without RTP, rtpengine forgets a session itself. */
const DELETE_TRIES = 12
const DELETE_AGAIN_MS = 5_000
/** Calls whose closed sessions nobody has taken. */
const MAX_CALLS = 10_000
/** The most closed sessions of one call. */
const MAX_CLOSED_OF_CALL = 20

export class MediaSessions implements CallMedia {
  readonly #deps: SessionsDeps
  readonly #observers: MediaObserver[] = []
  readonly #ofCall = new ReleasingMap<string, RelaySession[]>()
  /** Sessions that were closed before their call ended, with their statistics. */
  readonly #closed = new ReleasingMap<string, ClosedSession[]>()
  /** Called when the last session of the call is closed. */
  readonly #waiting = new ReleasingMap<string, (() => void)[]>()
  /** Closed sessions that are not deleted at their relays yet. */
  readonly #closing: RelaySession[] = []
  #count = 0

  constructor(deps: SessionsDeps) {
    this.#deps = deps
  }

  begin(relay: Relay, legs: readonly [string, string]): RelaySession {
    const { prefix, run } = this.#deps
    const name = `${prefix}-${callUuidOf(legs[0])}-${run}.${(this.#count++).toString(36)}`
    return this.add(name, relay, legs)
  }

  /** Adds a session of the last process. */
  add(id: string, relay: Relay, legs: readonly [string, string]): RelaySession {
    const callUuids = [...new Set(legs.map(callUuidOf))]
    const session = newSession(id, relay, legs, callUuids)
    for (const callUuid of callUuids) {
      const known = this.#ofCall.get(callUuid)
      if (known) known.push(session)
      else this.#ofCall.set(callUuid, [session])
    }
    return session
  }

  /** The last one of the two. */
  between(one: string, other: string): RelaySession | undefined {
    return this.#ofCall
      .get(callUuidOf(one))
      ?.findLast(({ legs, isClosed }) => !isClosed && legs.includes(one) && legs.includes(other))
  }

  withId(id: string, legId: string): RelaySession | undefined {
    return this.#ofCall.get(callUuidOf(legId))?.find((session) => session.id === id)
  }

  ofLeg(legId: string): readonly RelaySession[] {
    const known = this.#ofCall.get(callUuidOf(legId)) ?? []
    return known.filter(({ legs, isClosed }) => !isClosed && legs.includes(legId))
  }

  /** The requests of one session reach its relay in their order. */
  ask(session: RelaySession, request: NgRequest, done: (answer: NgAnswer) => void = ignore): void {
    this.#ask(session, { request, done, isUrgent: false })
  }

  /** As `ask`, but the answer is a timeout at once if the relay is unavailable. */
  askNow(session: RelaySession, request: NgRequest, done: (answer: NgAnswer) => void): void {
    this.#ask(session, { request, done, isUrgent: true })
  }

  #ask(session: RelaySession, request: QueuedRequest): void {
    session.requests.push(request)
    if (session.requests.length === 1) this.#askNext(session)
  }

  #askNext(session: RelaySession): void {
    const [next] = session.requests
    if (next === undefined) return
    const answered = (answer: NgAnswer): void => {
      next.done(answer)
      session.requests.shift()
      this.#askNext(session)
    }
    if (next.isUrgent && !session.relay.isAlive) answered({ kind: 'timeout' })
    else this.#deps.ask(session.relay, next.request, answered)
  }

  /** Both sides have an answer. */
  connected(session: RelaySession): void {
    if (session.isConnected || session.isClosed) return
    session.isConnected = true
    for (const observer of this.#observers) observer.connected?.(session)
  }

  close(session: RelaySession): void {
    if (session.isClosed) return
    session.isClosed = true
    this.#closing.push(session)
    if (this.#closing.length === 1) this.#deps.after(this.deleteClosed, 0)
  }

  /**
   * Those that were closed since the last tick of the timers, together: the relay and this process
   * wake up once for all of them, which is most of what a request costs.
   */
  readonly deleteClosed = (): void => {
    for (const session of this.#closing.splice(0)) this.#delete(session)
  }

  /** Deletes it after requests under way: an offer that came later would begin it anew. */
  #delete(session: RelaySession): void {
    const request = session.isConnected ? deleteWithStatistics(session) : deleteOf(session.id)
    this.ask(session, request, (answer) => {
      this.#deleted(session, answer.kind === 'ok' ? answer.values : undefined)
      if (answer.kind === 'timeout') this.#deleteLater(session, DELETE_TRIES)
      // The last process may have subscribed to it: the relay then keeps a session that is deleted
      // by a tag.
      else if (!this.#isOfThisProcess(session.id))
        this.#deps.ask(session.relay, deleteOf(session.id), ignore)
    })
  }

  /** The relay may be out of reach, and have it still. */
  #deleteLater(session: RelaySession, tries: number): void {
    this.#deps.after(() => {
      this.#deps.ask(session.relay, deleteOf(session.id), (answer) => {
        if (answer.kind === 'timeout' && tries > 1) this.#deleteLater(session, tries - 1)
      })
    }, DELETE_AGAIN_MS)
  }

  #deleted(session: RelaySession, values: NgDictionary | undefined): void {
    for (const callUuid of session.callUuids) {
      const others = (this.#ofCall.get(callUuid) ?? []).filter((other) => other !== session)
      if (others.length > 0) this.#ofCall.set(callUuid, others)
      else this.#ofCall.delete(callUuid)
      if (session.isConnected) this.#addClosed(callUuid, { session, values })
      if (others.length === 0) for (const done of this.#waiting.get(callUuid) ?? []) done()
    }
    for (const observer of this.#observers) observer.closed?.(session, values)
  }

  #addClosed(callUuid: string, closed: ClosedSession): void {
    if (!this.#waiting.has(callUuid) && this.#deps.calls.call(callUuid) === undefined) return
    const before = this.#closed.get(callUuid) ?? []
    this.#closed.set(callUuid, [...before, closed].slice(-MAX_CLOSED_OF_CALL))
    if (this.#closed.size <= MAX_CALLS) return
    for (const oldest of this.#closed.keys()) return void this.#closed.delete(oldest)
  }

  // CallMedia

  sessionsOf(callUuid: string): readonly RelaySession[] {
    return (this.#ofCall.get(callUuid) ?? []).filter(({ isClosed }) => !isClosed)
  }

  observe(observer: MediaObserver): void {
    this.#observers.push(observer)
  }

  closedSessions(callUuid: string): Promise<readonly ClosedSession[]> | undefined {
    if (this.#ofCall.has(callUuid))
      return this.#emptied(callUuid).then(() => this.#takeClosed(callUuid) ?? [])
    const closed = this.#takeClosed(callUuid)
    return closed && Promise.resolve(closed)
  }

  #takeClosed(callUuid: string): readonly ClosedSession[] | undefined {
    const closed = this.#closed.get(callUuid)
    this.#closed.delete(callUuid)
    return closed
  }

  #emptied(callUuid: string): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#deps.after(() => done(), CLOSED_WAIT_MS)
      const done = (): void => {
        stop()
        const others = (this.#waiting.get(callUuid) ?? []).filter((each) => each !== done)
        if (others.length > 0) this.#waiting.set(callUuid, others)
        else this.#waiting.delete(callUuid)
        resolve()
      }
      this.#waiting.set(callUuid, [...(this.#waiting.get(callUuid) ?? []), done])
    })
  }

  /** Ours by its name, of another process of this installation, and not taken up here. */
  isOrphan(name: string): boolean {
    const { prefix } = this.#deps
    if (!name.startsWith(`${prefix}-`) || this.#isOfThisProcess(name)) return false
    const callUuid = name.slice(prefix.length + 1, name.lastIndexOf('-'))
    return this.#ofCall.get(callUuid)?.some(({ id }) => id === name) !== true
  }

  #isOfThisProcess(name: string): boolean {
    return name.includes(`-${this.#deps.run}.`)
  }

  /** All that are not deleted. */
  get size(): number {
    return new Set([...this.#ofCall.values()].flat()).size
  }
}

/**
 * This number of names fits into one datagram. rtpengine lists them in an order of its own: deleted
 * ones make room for others.
 */
const PAGE = 800
/** The most pages of one pass. */
const MAX_PAGES = 200
/** A relay may be unavailable, or list sessions that still run: retries for over two hours. */
const TRIES = 20
const RETRY_MS = { first: 5_000, most: 600_000 } as const

export function deleteOrphans(
  relays: readonly Relay[],
  sessions: Pick<MediaSessions, 'isOrphan'>,
  after: (act: () => void, delayMs: number) => unknown,
): void {
  for (const relay of relays) void poll(relay, 0)

  async function poll(relay: Relay, tries: number): Promise<void> {
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const names = namesIn(await relay.request({ command: 'list', limit: PAGE }))
      const orphans = names?.filter((name) => sessions.isOrphan(name)) ?? []
      const answers = await Promise.all(orphans.map((id) => relay.request(deleteOf(id))))
      const isDone = answers.every(({ kind }) => kind !== 'timeout')
      if (names !== undefined && names.length < PAGE && isDone) return
      if (orphans.length === 0 || !isDone) break
    }
    const delayMs = Math.min(RETRY_MS.first * 2 ** tries, RETRY_MS.most)
    if (tries + 1 < TRIES) after(() => void poll(relay, tries + 1), delayMs)
  }
}

/** Undefined: the relay has not listed them. */
function namesIn(answer: NgAnswer): readonly string[] | undefined {
  if (answer.kind !== 'ok') return undefined
  const { calls } = answer.values
  return Array.isArray(calls) ? calls.filter((name) => typeof name === 'string') : []
}

/** The parts of the engine that the gate works with. */
export interface GateDeps {
  readonly relays: Pick<Relays, 'pick' | 'byName'>
  readonly sessions: MediaSessions
  readonly parties: Parties
  readonly calls: Pick<ActiveCalls, 'call' | 'leg'>
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Runs `act` once after `delayMs`; the returned function calls it off. */
  readonly after: (act: () => void, delayMs: number) => () => void
}
