/** Follows the events of the other instances, while this one has readers. */
import { parseJson } from '../../http/body.ts'
import type { Peer } from '../../instances/membership.ts'
import { bodyOf } from '../../instances/instance-client.ts'
import type { OtherInstances } from '../../instances/other-instances.ts'
import { feedHead, type LogPart, logPart, type EventPosition, sharedEvent } from './event-view.ts'
import { PeerLog } from './peer-log.ts'

/** An instance sends something each second. */
const SILENT_MS = 3_000
const RETRY_MS = 1_000
/** How long a new reader waits for instances that are not followed yet. */
const READY_MS = 800
/** One line. */
const MAX_LINE = 262_144

interface FollowedInstance {
  readonly log: PeerLog
  state: 'idle' | 'connecting' | 'connected'
  stop: AbortController
  /** Steady time. */
  receivedAt: number
  retryAt: number
}

/** Is notified of the events and the state of the followed instances. */
export interface PeerEventsListener {
  onEvents(): void
  /** Events of this instance may be missing. */
  onGap(instance: string): void
  /** `unreachable` is another list than before. */
  onReachability(): void
}

export class PeerEvents {
  readonly #others: OtherInstances
  readonly #now: () => number
  readonly #schedule: (work: () => void, delayMs: number) => () => void
  readonly #followed = new Map<string, FollowedInstance>()
  readonly #waiting = new Set<() => void>()
  #listener: PeerEventsListener | undefined

  /** `now` is steady time. */
  constructor(
    others: OtherInstances,
    now: () => number,
    schedule: (work: () => void, delayMs: number) => () => void,
  ) {
    this.#others = others
    this.#now = now
    this.#schedule = schedule
  }

  get self(): string {
    return this.#others.self
  }

  /** Yields the logs by instance: all that were ever followed since `start`. */
  *logs(): Iterable<readonly [string, PeerLog]> {
    for (const [name, { log }] of this.#followed) if (log.epoch !== undefined) yield [name, log]
  }

  start(listener: PeerEventsListener): void {
    this.#listener = listener
    this.tick()
  }

  stop(): void {
    this.#listener = undefined
    for (const { stop } of this.#followed.values()) stop.abort()
    this.#followed.clear()
    this.#settle()
  }

  /** Names of instances that are not followed now, dead ones included. */
  unreachable(): readonly string[] {
    return this.#others
      .peers()
      .map(({ name }) => name)
      .filter((name) => this.#followed.get(name)?.state !== 'connected')
  }

  /** Resolves when every instance that is alive is followed, or did not answer in time. */
  async ready(): Promise<void> {
    if (!this.#isConnecting()) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel()
        this.#waiting.delete(done)
        resolve()
      }
      const cancel = this.#schedule(done, READY_MS)
      this.#waiting.add(done)
    })
  }

  /** The stored events of each instance after a position, for a tenant (null: all tenants). */
  async parts(
    position: EventPosition,
    tenantId: number | null,
  ): Promise<readonly (readonly [string, LogPart])[]> {
    const { answers } = await this.#others.all((peer) => {
      const after = position.get(peer.name)
      return this.#others.questionOf({
        kind: 'events',
        tenantId,
        ...(after !== undefined && { after }),
      })
    })
    return answers.flatMap((answer) => {
      const part = bodyOf(answer, logPart)
      return part === undefined ? [] : [[answer.peer.name, part] as const]
    })
  }

  /**
   * Follows new instances, gives up silent ones, forgets those that are gone. Called as often as
   * readers are written to.
   */
  tick(): void {
    if (this.#listener === undefined) return
    const now = this.#now()
    const peers = this.#others.peers()
    const names = new Set(peers.map(({ name }) => name))
    for (const [name, { stop }] of this.#followed)
      if (!names.has(name)) {
        stop.abort()
        this.#followed.delete(name)
        this.#listener.onReachability()
      }
    for (const peer of peers) {
      const followed = this.#of(peer)
      if (
        followed.state === 'connected' &&
        (!peer.isAlive || now - followed.receivedAt > SILENT_MS)
      )
        followed.stop.abort()
      if (followed.state === 'idle' && peer.isAlive && now >= followed.retryAt)
        void this.#follow(peer, followed)
    }
  }

  #of({ name }: Peer): FollowedInstance {
    const known = this.#followed.get(name)
    if (known !== undefined) return known
    const made: FollowedInstance = {
      log: new PeerLog(),
      state: 'idle',
      stop: new AbortController(),
      receivedAt: 0,
      retryAt: 0,
    }
    this.#followed.set(name, made)
    return made
  }

  async #follow(peer: Peer, followed: FollowedInstance): Promise<void> {
    const { log } = followed
    followed.state = 'connecting'
    followed.stop = new AbortController()
    const { signal } = followed.stop
    const after = log.idOf(log.last)
    const question = { kind: 'follow' as const, ...(after !== undefined && { after }) }
    const request = this.#others.questionOf(question)
    const answer = await this.#others.client.open(peer, request, signal)
    if (answer?.status === 200)
      try {
        for await (const line of linesOf(
          answer.incoming,
          () => (followed.receivedAt = this.#now()),
        ))
          if (!this.#take(peer, followed, line)) break
      } catch {
        // The connection has ended: the next attempt goes on after the last event here.
      }
    answer?.incoming.destroy()
    const wasConnected = isConnected(followed)
    followed.state = 'idle'
    followed.retryAt = this.#now() + RETRY_MS
    this.#settle()
    if (wasConnected) this.#listener?.onReachability()
  }

  /** False: it is no line of an instance. */
  #take(peer: Peer, followed: FollowedInstance, line: string): boolean {
    if (line === '') return true
    const parsed = parseJson(line)
    const value = parsed.kind === 'value' ? parsed.value : undefined
    if (followed.state === 'connected') {
      const event = sharedEvent.safeParse(value)
      if (!event.success) return false
      followed.log.add(event.data)
      this.#listener?.onEvents()
      return true
    }
    const head = feedHead.safeParse(value)
    if (!head.success) return false
    followed.state = 'connected'
    const goesOn = followed.log.begin(head.data.epoch, head.data.after)
    if (!goesOn) this.#listener?.onGap(peer.name)
    this.#listener?.onReachability()
    this.#settle()
    return true
  }

  #isConnecting(): boolean {
    return [...this.#followed.values()].some(({ state }) => state === 'connecting')
  }

  #settle(): void {
    if (!this.#isConnecting()) for (const done of this.#waiting) done()
  }
}

const isConnected = ({ state }: FollowedInstance): boolean => state === 'connected'

async function* linesOf(
  incoming: AsyncIterable<Buffer>,
  onBytes: () => void,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of incoming) {
    onBytes()
    text += decoder.decode(bytes, { stream: true })
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    if (text.length > MAX_LINE) throw new Error('the line is too long')
    yield* lines
  }
}
