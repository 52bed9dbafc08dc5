/** The media of calls, where there are relays: the gate before the legs, and the sessions that it makes. */
import { hash } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { hostname } from 'node:os'
import type { Log } from '../../schema/contracts/log.ts'
import type { ActiveCalls } from '../call/active-calls.ts'
import type { Deadlines } from '../call/deadlines.ts'
import type { LegGate } from '../call/legs.ts'
import { ListeningLegs } from '../call/monitoring/listening-legs.ts'
import type { CallMedia } from './call-media.ts'
import { RelayDigits, openDigitSocket } from './digits/heard-digits.ts'
import { MediaGate } from './gate/media-gate.ts'
import { deleteOrphans, Sessions } from './gate/sessions.ts'
import { Parties } from './parties.ts'
import type { Relays } from './relay/relays.ts'
import type { RuleBooks } from './policy.ts'
import { Listening } from './spy/listening.ts'
import { MixerThread } from './spy/mixer-thread.ts'
import type { MediaPolicy, MediaRules } from '../../schema/contracts/field-values.ts'

/** What is asked at each call. */
export interface MediaSources {
  readonly relays: Pick<Relays, 'pick' | 'byName' | 'all'> | undefined
  readonly calls: ActiveCalls
  readonly routing: { readonly mediaOf: RuleBooks['routing'] }
  readonly dispatcher: { setRecord(setId: number): WithMediaRules | undefined }
  readonly registrar: { extensionAt(domain: string, extension: string): WithMediaRules | undefined }
  /** Absent: no call is recorded. */
  readonly recordings?:
    { mayRecord(callUuid: string): boolean; mustRecord(callUuid: string): boolean } | undefined
}

interface WithMediaRules {
  readonly media?: MediaRules | undefined
}

interface CreateMediaDeps {
  readonly config: {
    readonly mediaPolicy: MediaPolicy
    readonly databasePath: string
    readonly relays: readonly { readonly host: string }[]
    /** Undefined: relays do not tell of digits. */
    readonly mediaDtmfListen?: { readonly host: string; readonly port: number } | undefined
  }
  readonly hosts: { addressesOf(host: string): readonly string[] }
  readonly databaseId: string
  readonly deadlines: Deadlines
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
}

export interface Media {
  readonly gate: LegGate
  readonly calls: CallMedia
  readonly listening: Listening
  /** Deletes the sessions of calls that have not been restored. No other process of this installation may have calls. */
  deleteOrphans(): void
  /** Of digits in RTP. */
  readonly digits: RelayDigits
  /** Rejects with the reason why `MEDIA_DTMF_LISTEN` cannot be bound. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Whether a file of a relay is named after a session of this installation. */
  isOurs(name: string): boolean
}

/** Undefined without relays. */
export function createMedia(
  books: MediaSources,
  { config, databaseId, hosts, deadlines, now, randomBytes, log }: CreateMediaDeps,
): Media | undefined {
  const { relays, calls } = books
  if (relays === undefined) return undefined
  const after = (act: () => void, delayMs: number): (() => void) => {
    const deadline = deadlines.at(now() + delayMs, act)
    return () => deadlines.cancel(deadline)
  }
  const { databasePath } = config
  const prefix = prefixOf({ host: hostname(), databasePath, databaseId })
  const sessions = new Sessions({
    calls,
    prefix,
    run: randomBytes(4).toString('hex'),
    after,
    ask: (relay, request, done) => relay.ask(request, done),
  })
  const isRecorded = (callUuids: readonly string[]): boolean =>
    callUuids.some((callUuid) => books.recordings?.mayRecord(callUuid) === true)
  const mustBeRecorded = (callUuids: readonly string[]): boolean =>
    callUuids.some((callUuid) => books.recordings?.mustRecord(callUuid) === true)
  const parties = new Parties({
    calls,
    policy: config.mediaPolicy,
    isRecorded,
    mustBeRecorded,
    books: {
      routing: (party) => books.routing.mediaOf(party),
      set: (setId) => books.dispatcher.setRecord(setId)?.media,
      extension: (domain, number) => books.registrar.extensionAt(domain, number)?.media,
    },
  })
  const mixers = new MixerThread(log)
  const listening = new Listening({ media: sessions, mixers, calls })
  const gate = new MediaGate({ relays, sessions, parties, calls, now, after })
  const isRelay = (address: string): boolean =>
    config.relays.some(({ host }) => hosts.addressesOf(host).includes(address))
  const digits = new RelayDigits({ isRelay, now, take: (digit) => gate.takeDigit(digit) })
  const place = config.mediaDtmfListen
  let socket: Socket | undefined
  return {
    gate: {
      join: (legs, ...events) =>
        gate.join((emit) => new ListeningLegs(legs(emit), listening, emit), ...events),
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

interface Installation {
  readonly host: string
  readonly databasePath: string
  readonly databaseId: string
}

/**
 * Returns what the names of all sessions of an installation begin with; at its start it deletes those that are left. Pure.
 * Of others at the same relay containers may have the same names and paths, and copies of a database the same id.
 */
export const prefixOf = ({ host, databasePath, databaseId }: Installation): string =>
  hash('sha1', JSON.stringify([host, databasePath, databaseId]), 'hex').slice(0, 12)
