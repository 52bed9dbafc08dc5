/**
 * Ends answered calls whose media at a relay has stopped: no packet from either party for
 * `timeoutMs`, and no hold. Each call is polled once in that time: next when its last packet would
 * be too old.
 */
import type { CallDeadline, CallDeadlines } from '../../call/deadlines.ts'
import type { LiveCall } from '../../call/call-machine/state.ts'
import { isHold } from '../../call/sdp.ts'
import { ReleasingMap } from '../../../schema/sip/index.ts'
import type { CallMedia, MediaSession } from '../call-media.ts'
import { lastPacketOf } from './statistics.ts'

export interface MediaTimeoutDeps {
  readonly media: Pick<CallMedia, 'sessionsOf' | 'observe'>
  readonly calls: {
    call(callUuid: string): LiveCall | undefined
    leg(legId: string): { readonly media: string } | undefined
    list(): readonly { readonly callUuid: string }[]
  }
  /** Ends the call, charged up to `chargedTo`: the last packet, or now if `charge` is `end`. */
  readonly onLost: (callUuid: string, chargedTo: number) => void
  readonly deadlines: CallDeadlines
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Milliseconds UTC: relays report times by their own clocks. */
  readonly wallNow: () => number
  readonly timeoutMs: number
  /** `end`: a carrier charges for the silence, too. */
  readonly charge: 'last_packet' | 'end'
}

interface Watch {
  readonly callUuid: string
  deadline: CallDeadline | undefined
  /** The count of the last poll. */
  packets: number
  /** The time of the last poll, or of the pairing. */
  polledAt: number
  /**
   * The last time at which media was present or not expected: the pairing, the last known packet, a
   * hold.
   */
  activeAt: number
  /** When its sessions last existed. Infinite: they are lost. */
  knownAt: number
  /** The time of the first poll after a hold: silence counts from then on. */
  resumedAt: number
  isHeld: boolean
}

/** The packets of one session so far, and the time of the last one. */
interface SessionActivity {
  readonly packets: number
  readonly lastAt: number
  /** Nothing can come any more. */
  readonly isGone: boolean
}

/** The first poll of a call; packets flow by then. */
const FIRST_POLL_MS = 2_000
/** Relays report whole seconds. */
const CLOCK_ERROR_MS = 2_000
/** A call is ended only if two polls have found the same packets. */
const SECOND_POLL_MS = 1_000
/** rtpengine removes a session without packets after 60 s, and with it when the last one came. */
const POLL_MS = 60_000

export class MediaTimeout {
  readonly #deps: MediaTimeoutDeps
  readonly #watches = new ReleasingMap<string, Watch>()
  /**
   * By relay: the least age of a packet by our clock, which is the delay of the clock of the relay.
   * Packets are never younger, so that a call may live too long, but never too short.
   */
  readonly #behindMs = new Map<string, number>()

  constructor(deps: MediaTimeoutDeps) {
    this.#deps = deps
  }

  start(): void {
    const { media, deadlines, now } = this.#deps
    media.observe({
      connected: ({ callUuids }) => {
        for (const callUuid of callUuids) this.watch(callUuid)
      },
      closed: ({ callUuids }) => {
        for (const callUuid of callUuids)
          if (media.sessionsOf(callUuid).length === 0) this.#forget(callUuid)
      },
    })
    deadlines.at(now() + FIRST_POLL_MS, () => this.#watchRestored())
  }

  /** The media of restored calls causes no event: they are watched by polling. */
  #watchRestored(): void {
    const { calls, deadlines, media, now, timeoutMs } = this.#deps
    for (const { callUuid } of calls.list())
      if (!this.#watches.has(callUuid) && media.sessionsOf(callUuid).length > 0)
        this.watch(callUuid)
    deadlines.at(now() + timeoutMs, () => this.#watchRestored())
  }

  get size(): number {
    return this.#watches.size
  }

  /** The media of the call begins, or is paired anew. */
  watch(callUuid: string): void {
    this.#forget(callUuid)
    const { now, timeoutMs } = this.#deps
    const watch = {
      callUuid,
      deadline: undefined,
      packets: 0,
      polledAt: now(),
      activeAt: now(),
      knownAt: now(),
      resumedAt: 0,
      isHeld: false,
    }
    this.#watches.set(callUuid, watch)
    // While packets still come, the clock of a relay is learnt.
    const isKnown = this.#deps.media
      .sessionsOf(callUuid)
      .every(({ relay }) => this.#behindMs.has(relay.name))
    this.#pollAt(watch, now() + (isKnown ? timeoutMs : FIRST_POLL_MS))
  }

  #forget(callUuid: string): void {
    this.#deps.deadlines.cancel(this.#watches.get(callUuid)?.deadline)
    this.#watches.delete(callUuid)
  }

  #pollAt(watch: Watch, at: number): void {
    watch.deadline = this.#deps.deadlines.at(at, () => void this.#poll(watch))
  }

  async #poll(watch: Watch): Promise<void> {
    const { calls, media, now, timeoutMs } = this.#deps
    const { callUuid } = watch
    const sessions = media.sessionsOf(callUuid)
    const activities = await Promise.all(sessions.map((session) => this.#ask(session, watch)))
    const call = calls.call(callUuid)
    // The call was paired anew in the meantime, or is over.
    if (this.#watches.get(callUuid) !== watch) return
    if (call === undefined || call.end !== undefined || activities.length === 0)
      return this.#forget(callUuid)
    const packets = activities.reduce((sum, activity) => sum + activity.packets, 0)
    const isGone = activities.every((activity) => activity.isGone)
    const isSame = isGone || packets === watch.packets
    const lastAt = Math.max(...activities.map((activity) => activity.lastAt))
    // Packets have come since the last poll. If the times contradict that, a clock was set: its
    // delay is learnt anew.
    const activeAt = packets > watch.packets ? Math.max(lastAt, watch.polledAt) : lastAt
    if (activeAt > lastAt + CLOCK_ERROR_MS)
      for (const { relay } of sessions) this.#behindMs.delete(relay.name)
    watch.packets = packets
    watch.polledAt = now()
    watch.knownAt = isGone ? Infinity : now()
    watch.activeAt = Math.max(watch.activeAt, activeAt)
    noteHold(watch, call, this.#isSilenceExpected(call, sessions), now())
    const dueAt = Math.max(watch.activeAt, watch.resumedAt) + timeoutMs
    if (dueAt > now()) return this.#pollAt(watch, Math.min(dueAt, now() + POLL_MS))
    if (!isSame) return this.#pollAt(watch, now() + SECOND_POLL_MS)
    this.#forget(callUuid)
    const { charge, onLost } = this.#deps
    return onLost(callUuid, charge === 'end' ? now() : watch.activeAt)
  }

  /**
   * By a hold, or in the INVITE. Such a call continues and is charged, or its caller would have
   * minutes for nothing.
   */
  #isSilenceExpected({ display }: LiveCall, sessions: readonly MediaSession[]): boolean {
    const legs = sessions.flatMap((session) => session.legs)
    return display === 'HELD' || legs.some((id) => isHold(this.#deps.calls.leg(id)?.media ?? ''))
  }

  async #ask(
    { id, relay, legs }: MediaSession,
    { activeAt, knownAt }: Watch,
  ): Promise<SessionActivity> {
    const { now } = this.#deps
    const answer = relay.isAlive
      ? await relay.request({ command: 'query', 'call-id': id })
      : ({ kind: 'timeout' } as const)
    switch (answer.kind) {
      case 'ok': {
        const { seconds, packets } = lastPacketOf(answer.values, legs)
        if (packets === 0) return { packets, lastAt: activeAt, isGone: false }
        return { packets, lastAt: now() - this.#ageOf(relay.name, seconds), isGone: false }
      }
      case 'timeout':
        // The last sign of life of the relay is the last known time of packets.
        return { packets: 0, lastAt: relay.seenAt, isGone: true }
      case 'error':
      default: {
        // The relay has restarted without the session: until then packets may have come.
        const { lostAt = 0 } = relay
        return { packets: 0, lastAt: lostAt > knownAt ? lostAt : activeAt, isGone: true }
      }
    }
  }

  #ageOf(relay: string, seconds: number): number {
    const ageMs = this.#deps.wallNow() - seconds * 1_000
    const behindMs = Math.min(this.#behindMs.get(relay) ?? Infinity, ageMs)
    this.#behindMs.set(relay, behindMs)
    return ageMs - behindMs
  }
}

/** A call that is about to be answered has as little to expect as one on hold. */
function noteHold(
  watch: Watch,
  { answeredAt }: LiveCall,
  isSilenceExpected: boolean,
  now: number,
): void {
  const isHeld = isSilenceExpected || answeredAt === null
  if (isHeld) watch.activeAt = now
  else if (watch.isHeld) watch.resumedAt = now
  watch.isHeld = isHeld
}
