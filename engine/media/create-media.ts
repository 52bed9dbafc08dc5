/** The media of calls on relays: the gate before the legs, the sessions, listening and digits. */
import { hash } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { hostname } from 'node:os'
import type { Log } from '../../schema/contracts/log.ts'
import type { ActiveCalls } from '../call/active-calls.ts'
import type { CallDeadlines } from '../call/deadlines.ts'
import type { LegGate } from '../call/legs.ts'
import { ListeningLegs } from '../call/monitoring/listening-legs.ts'
import type { CallMedia } from './call-media.ts'
import { RelayDigits, openDigitSocket } from './gate/digits.ts'
import { MediaGate } from './gate/media-gate.ts'
import { deleteOrphans, MediaSessions } from './gate/sessions.ts'
import { Parties } from './parties.ts'
import type { Relays } from './relay/relays.ts'
import type { RuleSources } from './policy.ts'
import { Listening } from './spy/listening.ts'
import { MixerThread } from './spy/mixer-thread.ts'
import type { MediaPolicy } from '../../schema/contracts/field-values.ts'
import type { Store } from '../../schema/storage/store.ts'
import { mediaRulesOf } from '../../schema/rules/media.ts'
import { all } from '../../schema/sql/query.ts'

/** The parts that are asked at each call. */
interface MediaSources extends RuleSources {
  readonly relays: Pick<Relays, 'pick' | 'byName' | 'all'> | undefined
  readonly calls: Pick<ActiveCalls, 'call' | 'leg'>
  /** Absent: no call is recorded. */
  readonly recordings?:
    { mayRecord(callUuid: string): boolean; mustRecord(callUuid: string): boolean } | undefined
}

interface CreateMediaDeps {
  readonly config: {
    readonly mediaPolicy: MediaPolicy
    readonly databasePath: string
    readonly relays: readonly { readonly host: string }[]
    /** Undefined: relays do not report digits. */
    readonly mediaDtmfListen?: { readonly host: string; readonly port: number } | undefined
  }
  readonly hosts: { addressesOf(host: string): readonly string[] }
  readonly databaseId: string
  readonly deadlines: CallDeadlines
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
}

export interface Media {
  readonly gate: LegGate
  readonly calls: CallMedia
  readonly listening: Listening
  /**
   * Deletes the sessions of calls that were not restored. No other process of this installation may
   * have calls.
   */
  deleteOrphans(): void
  /** Receives the reports of digits in RTP. */
  readonly digits: RelayDigits
  /** Rejects with the reason why `MEDIA_DTMF_LISTEN` cannot be bound. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Whether a file of a relay is named after a session of this installation. */
  isOurs(name: string): boolean
}

/** Undefined without relays. */
export function createMedia(
  sources: MediaSources,
  { config, databaseId, hosts, deadlines, now, randomBytes, log }: CreateMediaDeps,
): Media | undefined {
  const { relays, calls } = sources
  if (relays === undefined) return undefined
  const after = (act: () => void, delayMs: number): (() => void) => {
    const deadline = deadlines.at(now() + delayMs, act)
    return () => deadlines.cancel(deadline)
  }
  const prefix = prefixOf(hostname(), config.databasePath, databaseId)
  const sessions = new MediaSessions({
    calls,
    prefix,
    run: randomBytes(4).toString('hex'),
    after,
    ask: (relay, request, done) => relay.ask(request, done),
  })
  const isRecorded = (callUuids: readonly string[]): boolean =>
    callUuids.some((callUuid) => sources.recordings?.mayRecord(callUuid) === true)
  const mustBeRecorded = (callUuids: readonly string[]): boolean =>
    callUuids.some((callUuid) => sources.recordings?.mustRecord(callUuid) === true)
  const parties = new Parties({
    calls,
    policy: config.mediaPolicy,
    isRecorded,
    mustBeRecorded,
    rules: sources,
  })
  const mixers = new MixerThread(log)
  const listening = new Listening({ media: sessions, mixers, calls })
  let gate: MediaGate | undefined
  const isRelay = (address: string): boolean =>
    config.relays.some(({ host }) => hosts.addressesOf(host).includes(address))
  const digits = new RelayDigits({
    isRelay,
    now,
    take: (digit) => gate?.digits.take(digit) === true,
  })
  const place = config.mediaDtmfListen
  let socket: Socket | undefined
  return {
    gate: {
      join: (legs, ...events) =>
        (gate = new MediaGate(
          { relays, sessions, parties, calls, now, after },
          (emit) => new ListeningLegs(legs(emit), listening, emit),
          ...events,
        )),
    },
    calls: sessions,
    listening,
    digits,
    start: async () => {
      if (place === undefined) return
      socket = await openDigitSocket(place, (...datagram) => digits.received(...datagram))
    },
    deleteOrphans: () => deleteOrphans(relays.all(), sessions, after),
    stop: () => {
      sessions.deleteClosed()
      socket?.close()
      return mixers.stop()
    },
    isOurs: (name) => name.startsWith(`${prefix}-`),
  }
}

/**
 * Returns the prefix of the names of all sessions of an installation, by which it deletes its old
 * sessions at a start. Other containers at the same relay may have the same names and paths, and
 * copies of a database the same id.
 */
export const prefixOf = (host: string, databasePath: string, databaseId: string): string =>
  hash('sha1', JSON.stringify([host, databasePath, databaseId]), 'hex').slice(0, 12)

/**
 * Warns at a start without relays of stored media rules that need one: one line for each kind of
 * resource.
 */
export async function noteRulesWithoutRelay(store: Store, log: Log): Promise<void> {
  for (const [table, noun] of tables) {
    const columns = ['media', 'media_profile', 'codecs', 'dtmf'] as const
    const rows = await all(store, store.db.selectFrom(table).select(columns))
    const idle = rows.filter((row) => {
      const rules = mediaRulesOf(row)
      if (rules === undefined) return false
      const { policy, profile, codecs, dtmf } = rules
      const isPlain = policy === null || policy === 'bypass'
      return !isPlain || profile !== 'auto' || codecs !== null || dtmf !== 'auto'
    })
    if (idle.length > 0)
      log('warn', `media rules of ${idle.length} ${noun} need RTPENGINE, and have no effect`)
  }
}

const tables = [
  ['carrier', 'carriers'],
  ['dispatcher_set', 'dispatcher sets'],
  ['extension', 'extensions'],
  ['tenant', 'tenants'],
  ['ai_agent', 'AI agents'],
] as const
